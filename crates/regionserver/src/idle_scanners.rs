//! Idle scanners and the memory that they keep: once it is flushed they are moved onto the store files.
//!
//! Always true: no lock that a call waits for is held while files are read. A scanner that is being moved is taken by a call as ever, but
//! goes on on a lane, where it may wait. Follows: `HStore#notifyChangedReadersObservers`.

use crate::sessions::Sessions;
use region::Region;
use std::sync::Arc;

/// Scanners moved at once: with each some blocks may have to be read. The rest is moved when memory is short.
const MOST_AT_ONCE: usize = 256;

/// Has idle scanners (of `region`, if there is one) let go of memstores that are in files by now; returns how many did. Blocks.
pub(crate) fn update_readers(sessions: &Sessions, region: Option<&Region>) -> usize {
    let is_meant = |of: &Arc<Region>| region.is_none_or(|region| std::ptr::eq(&**of, region));
    let idle = sessions.scanners.idle_where(MOST_AT_ONCE, |scanner| {
        is_meant(scanner.region()) && !scanner.region().is_closing() && scanner.begin_move()
    });
    let moved = idle.iter().filter(|scanner| match scanner.update_readers() {
        Ok(moved) => moved,
        Err(error) => {
            // The scanner's next step tells its client.
            tracing::debug!(region = %scanner.region().name(), %error, "a scanner could not be moved onto flushed files");
            false
        }
    });
    moved.count()
}
