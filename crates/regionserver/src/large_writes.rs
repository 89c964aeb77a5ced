//! Large writes wait their turn: piece by piece, until log and memstores have room, so that a small write of somebody else is never
//! behind more than a megabyte of theirs, nor refused because of them. See docs/decisions/0020.

use crate::background;
use crate::server::RegionServer;
use base::PausePoint;
use parking_lot::{Condvar, Mutex};
use region::{Region, RegionError, WritePace};
use std::time::Duration;

/// Bytes of a piece: one entry in the log, and what a row lock is held for.
const PIECE_BYTES: usize = 256 << 10;
/// What may be on its way to the disk with a piece: some milliseconds of a disk's time, and enough for it to work without a pause.
const LOG_BYTES: u64 = 1 << 20;
/// How soon one that waits asks whether anybody waits for it.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// One whose client named no deadline is refused after so long.
const PATIENCE_US: u64 = 60_000_000;

/// Tells those who wait for room in the memstores that a flush has ended.
#[derive(Debug, Default)]
pub(crate) struct FlushesEnded {
    count: Mutex<u64>,
    changed: Condvar,
}

impl FlushesEnded {
    /// A flush has ended.
    pub(crate) fn tell(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits until `has_room` after a flush, or for a while.
    fn wait(&self, has_room: impl Fn() -> bool) {
        let mut count = self.count.lock();
        if !has_room() {
            self.changed.wait_for(&mut count, ASK_AGAIN);
        }
    }
}

/// The pace of one large write to a region, on a lane.
pub(crate) struct LargeWrite<'a> {
    pub server: &'a RegionServer,
    pub region: &'a Region,
    pub pause: &'a dyn PausePoint,
}

impl LargeWrite<'_> {
    fn wait_for_memory(&self, bytes: u64, since_us: u64) -> Result<(), RegionError> {
        while !self.has_memory(bytes) {
            background::flush_largest(self.server);
            self.server.maintenance.flushes_ended.wait(|| self.has_memory(bytes));
            self.go_on_waiting(since_us, "flushes to make room in the memstores")?;
        }
        Ok(())
    }

    fn has_memory(&self, bytes: u64) -> bool {
        let (held, marks) = (self.server.memstores_hold_bytes(), self.server.marks());
        // What is larger than all the room there is goes alone.
        held < marks.low_bytes || held + bytes <= marks.for_large_writes()
    }

    /// # Errors
    /// Nobody waits for the write any more, or it has waited for too long.
    fn go_on_waiting(&self, since_us: u64, what: &str) -> Result<(), RegionError> {
        self.pause.check()?;
        if self.server.env.clock.monotonic_us().saturating_sub(since_us) < PATIENCE_US {
            return Ok(());
        }
        Err(RegionError::TooBusy(format!("a large write has waited for {what} for {} s", PATIENCE_US / 1_000_000)))
    }
}

impl WritePace for LargeWrite<'_> {
    fn piece_bytes(&self) -> usize {
        PIECE_BYTES
    }

    fn admit(&self, bytes: u64) -> Result<(), RegionError> {
        let server = self.server;
        // What hbase:meta says nobody holds up; and without threads nobody would make room.
        if self.region.info().table.is_meta() || server.scheduler.is_stepped() {
            return Ok(());
        }
        let since_us = server.env.clock.monotonic_us();
        if !self.has_memory(bytes) {
            let waited = self.wait_for_memory(bytes, since_us);
            server.operations.updates_blocked(server.env.clock.monotonic_us().saturating_sub(since_us));
            waited?;
        }
        let mut wait_us = self.region.write_wait_us(bytes);
        server.operations.updates_blocked(wait_us);
        // It has its lane's thread anyway, and looks whether anybody waits for it.
        while wait_us > 0 {
            let step_us = wait_us.min(ASK_AGAIN.as_micros() as u64);
            if server.stop.wait(Duration::from_micros(step_us)) {
                break;
            }
            self.pause.check()?;
            wait_us -= step_us;
        }
        while !self.region.env().log.wait_for_room(bytes, LOG_BYTES, ASK_AGAIN) {
            self.go_on_waiting(since_us, "the log to reach the disk")?;
        }
        Ok(())
    }
}
