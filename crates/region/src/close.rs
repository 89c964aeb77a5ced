//! Closing a region, and the file that tells the next opening which sequence ids are used.

use crate::compact::RetiredFiles;
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::flush::Flusher;
use crate::marker;
use base::SeqId;
use proto::pb::region_event_descriptor::EventType;

/// How a region is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseMode {
    /// Write the memstores to files first.
    Flush,
    /// Leave everything as it is: the log will be replayed.
    Abort,
}

/// Stops serving; may be repeated after an error.
pub(crate) fn close(core: &RegionCore, mode: CloseMode) -> Result<()> {
    if core.serving.is_closed() {
        return Ok(());
    }
    // A read replica has written nothing, and its files are its primary's.
    let flushes = mode == CloseMode::Flush && !core.info.is_replica();
    if flushes && core.serving.is_open() && !core.table.read_only() {
        // The bulk goes while writes are still taken, so that the time without service is short.
        Flusher::new(core).flush_all("before close")?;
    }
    {
        // Writers that are past their check end before this lock is had.
        let _no_updates = core.updates.write();
        core.serving.set_closing();
    }
    // A compaction that is about to publish does so now or never.
    drop(core.flushing.lock());
    if flushes {
        core.sequencer.check()?;
        Flusher::new(core).flush_all("close")?;
        let (seq_id, _) = marker::append(core, &marker::region_event(core, EventType::RegionClose))?;
        write_seq_id_file(core, seq_id)?;
        core.env.log.region_closed(core.name());
        let retired = RetiredFiles::new(core);
        retired.sync_markers()?;
        retired.archive(true)?;
    }
    core.serving.set_closed();
    if !core.info.is_replica() {
        for store in core.stores.iter().filter(|store| store.cache_switches().evict_on_close) {
            store.view().files.iter().for_each(|file| file.reader.evict_for_good());
        }
    }
    core.accounting.forget();
    core.forget_debt();
    Ok(())
}

/// Tells the next opening, durably, that ids up to here are used and no edit with one of them is needed from the log any more: ids
/// grow even where no file says so, and what a family held that is deleted now does not come back when one of its name is added.
pub(crate) fn write_seq_id_file(core: &RegionCore, seq_id: SeqId) -> Result<()> {
    let error = |e| RegionError::volume(core.name(), e);
    let volume = &*core.env.volume;
    let dir = rootdir::region_dir(&core.info).join(rootdir::recovered_edits::DIR);
    let old: Vec<String> = match volume.list(&dir) {
        Ok(entries) => entries.into_iter().map(|e| e.name).filter(|name| name.ends_with("seqid")).collect(),
        Err(_) => {
            volume.create_dir_all_durable(&dir).map_err(error)?;
            Vec::new()
        }
    };
    let name = format!("{seq_id}.seqid");
    if !old.contains(&name) {
        drop(volume.create(&dir.join(&name)).map_err(error)?);
    }
    volume.sync_dir(&dir).map_err(error)?;
    for other in old.iter().filter(|other| **other != name) {
        volume.remove_file(&dir.join(other)).map_err(error)?;
    }
    Ok(())
}
