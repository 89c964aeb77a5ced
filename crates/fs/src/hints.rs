//! What a volume, a reader or an appender may be told beside the contract: where bytes come from and go to in the memory and on the disk of one
//! machine. A volume that knows none of it is as right, and perhaps slower: every hint has a default.
//!
//! Callers ask the trait objects ([`Volume`], [`ReadAt`], [`Appender`]), which do the plain thing where there are no hints.

use crate::tiered::{Drained, VolumeSpec, VolumeStatus};
use crate::{Appender, BlockHosts, FilePart, FilePath, Placement, ReadAt, Result, Volume};
use std::collections::BTreeMap;

/// What is said where files have one place.
const NO_VOLUMES: &str = "basalt.volumes is for a root directory on the local disk";

/// Hints of a volume.
pub trait VolumeHints: Volume {
    /// As [`Volume::create`] for a large file that is written in one go and not read at once: as far as the volume can, its bytes do
    /// not pass through the operating system's memory, and reads find it on the disk. A write that fails is not to be repeated: the file
    /// is to be given up.
    fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.create(path)
    }

    /// Creates a file where one of its kind and policy belongs: with `past_cache` as [`VolumeHints::create_past_cache`], else as
    /// [`Volume::create`]. A volume that is one place has no choice, and one that keeps no copies of its own leaves those to others.
    fn create_placed(&self, path: &FilePath, placement: &Placement, past_cache: bool) -> Result<Box<dyn Appender>> {
        let _ = placement;
        if past_cache { VolumeHints::create_past_cache(self, path) } else { self.create(path) }
    }

    /// Gives back room that was reserved for a file beyond its end by an appender that did not live to do it itself; nothing else
    /// changes. Volumes that reserve nothing have nothing to do.
    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// The places beside that of the names, as [`ReadHints::lost_with`] calls them. Asks nobody.
    fn places(&self) -> Vec<String> {
        Vec::new()
    }

    /// To be called for each of [`VolumeHints::places`] about once a second, where it may wait for that one: looks whether it can be used, and whether it
    /// is slow.
    fn look_after_place(&self, place: &str) {
        let _ = place;
    }

    /// The places beside that of the names, as they are now; none for a volume that is one place. May wait for file systems to answer.
    fn volumes(&self) -> Vec<VolumeStatus> {
        Vec::new()
    }

    /// How often a place beside that of the names failed or came back, since the start. Costs next to nothing.
    fn failures_and_returns(&self) -> u64 {
        0
    }

    /// Those of [`VolumeHints::places`] that have failed and are not back. Asks nobody.
    fn failed_places(&self) -> Vec<String> {
        Vec::new()
    }

    /// Has these be the places beside that of the names from now on, and kinds of files go to their tiers, by their names. Whether that is a change.
    /// Waits for places that are new.
    ///
    /// # Errors
    /// A sentence: what is wrong with it, a place that is left out and has files among that. Nothing has changed then.
    fn change_volumes(
        &self,
        volumes: &[VolumeSpec],
        kinds: &BTreeMap<&'static str, String>,
    ) -> std::result::Result<bool, String> {
        let _ = kinds;
        if volumes.is_empty() { Ok(false) } else { Err(NO_VOLUMES.to_owned()) }
    }

    /// Moves files off a place that is to be emptied, by its directory: one round over all that are there. `goes_on` is told of bytes that were copied, may
    /// wait, and ends the round with false.
    ///
    /// # Errors
    /// A sentence: there is no such place, or it is not to be emptied.
    fn drain(&self, directory: &str, goes_on: &dyn Fn(u64) -> bool) -> std::result::Result<Drained, String> {
        let _ = (directory, goes_on);
        Err(NO_VOLUMES.to_owned())
    }

    /// Whether new files may go to another place when one grows slow.
    fn has_several_places(&self) -> bool {
        false
    }

    /// Bytes that can still be written before the volume is full; `None` when there is no telling.
    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// What reads came to that asked another copy when the first took long; zeros where none does. Asks nobody.
    fn hedged_reads(&self) -> HedgedReads {
        HedgedReads::default()
    }

    /// On which machines a part of a file lies; `None` when there is no telling. Cost, where capabilities say `remote`: one call over
    /// the network.
    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        let _ = (path, part);
        Ok(None)
    }
}

/// Reads that asked another copy when the first took long, since the start. Follows: `DFSHedgedReadMetrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgedReads {
    /// Requests to another copy.
    pub asked: u64,
    /// Those of them that answered first.
    pub won: u64,
    /// Reads that waited for the first copy alone, as so many requests as there may be were under way.
    pub alone: u64,
}

/// Hints of a file that is read.
pub trait ReadHints: ReadAt {
    /// `len` bytes from `offset` on will be read soon.
    fn will_need(&self, _offset: u64, _len: u64) {}
    /// The file will hardly be read again: its place in the operating system's memory may go to others.
    fn forget(&self) {}
    /// As [`ReadHints::forget`] for `len` bytes from `offset` on.
    fn forget_range(&self, _offset: u64, _len: u64) {}
    /// On which machines a part of the file lay when it was opened or located anew; `None` when there is no telling. Asks nobody.
    fn block_hosts(&self, _part: FilePart) -> Option<BlockHosts> {
        None
    }
    /// Who reads keeps for himself what is read again: from now on bytes do not pass through the operating system's memory, as far as the volume can.
    fn past_cache(&self) {}
    /// The place that failed since the file was opened, if one did: the file is to be opened anew when that is back. Asks nobody.
    fn lost_with(&self) -> Option<String> {
        None
    }
    /// The place that has its bytes, where that is another than that of its name: one of [`VolumeHints::places`]. Asks nobody.
    fn place(&self) -> Option<String> {
        None
    }
}

/// Hints of a file that is written.
pub trait AppendHints: Appender {
    /// For who gathers bytes in memory of their own: so many at a time are best handed to [`AppendHints::append_straight`]. 0: none,
    /// [`Appender::append`] is as good.
    fn straight_bytes(&self) -> usize {
        0
    }

    /// Appends the first of `bytes`, as many as go out whole, without a copy if they lie at a multiple of 4096 in memory and nothing waits in
    /// the appender's buffer; says how many they were. The rest is still to be appended. After a failure the file is to be given up.
    fn append_straight(&mut self, bytes: &[u8]) -> Result<usize> {
        self.append(bytes).map(|()| bytes.len())
    }

    /// The file will grow to about `len` bytes. What is not used is given back when the appender goes.
    fn preallocate(&mut self, _len: u64) {}

    /// What was flushed since the last such call may go to the disk now, so that a later sync finds little to do, and nobody is going to
    /// read the file soon: what was written long ago need not stay in memory. Returns the work of saying so, for another thread and without
    /// the appender: on a busy disk even asking takes milliseconds. `None`: there is nothing to do.
    fn behind(&mut self) -> Option<Behind> {
        None
    }

    /// How many copies of what is appended now are made; `None` where nobody counts them, and before the first bytes left. Asks nobody.
    fn copies(&self) -> Option<Copies> {
        None
    }
}

/// Copies of a file that are kept on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// So many are made,
    pub now: u32,
    /// of so many that there should be.
    pub wanted: u32,
}

/// See [`AppendHints::behind`].
pub type Behind = Box<dyn FnOnce() + Send>;

impl dyn Volume + '_ {
    /// [`VolumeHints::create_past_cache`], else [`Volume::create`].
    pub fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.hints().map_or_else(|| self.create(path), |hints| hints.create_past_cache(path))
    }

    /// [`VolumeHints::create_placed`], else [`Volume::create`].
    pub fn create_placed(&self, path: &FilePath, placement: &Placement, past_cache: bool) -> Result<Box<dyn Appender>> {
        self.hints().map_or_else(|| self.create(path), |hints| hints.create_placed(path, placement, past_cache))
    }

    /// [`VolumeHints::release_reserved`].
    pub fn release_reserved(&self, path: &FilePath) -> Result<()> {
        self.hints().map_or(Ok(()), |hints| hints.release_reserved(path))
    }

    /// [`VolumeHints::places`].
    pub fn places(&self) -> Vec<String> {
        self.hints().map_or(Vec::new(), |hints| hints.places())
    }

    /// [`VolumeHints::look_after_place`].
    pub fn look_after_place(&self, place: &str) {
        if let Some(hints) = self.hints() {
            hints.look_after_place(place);
        }
    }

    /// [`VolumeHints::volumes`].
    pub fn volumes(&self) -> Vec<VolumeStatus> {
        self.hints().map_or(Vec::new(), |hints| hints.volumes())
    }

    /// [`VolumeHints::failures_and_returns`].
    pub fn failures_and_returns(&self) -> u64 {
        self.hints().map_or(0, |hints| hints.failures_and_returns())
    }

    /// [`VolumeHints::failed_places`].
    pub fn failed_places(&self) -> Vec<String> {
        self.hints().map_or(Vec::new(), |hints| hints.failed_places())
    }

    /// [`VolumeHints::change_volumes`].
    ///
    /// # Errors
    /// As there.
    pub fn change_volumes(
        &self,
        volumes: &[VolumeSpec],
        kinds: &BTreeMap<&'static str, String>,
    ) -> std::result::Result<bool, String> {
        match self.hints() {
            Some(hints) => hints.change_volumes(volumes, kinds),
            None if volumes.is_empty() => Ok(false),
            None => Err(NO_VOLUMES.to_owned()),
        }
    }

    /// [`VolumeHints::drain`].
    ///
    /// # Errors
    /// As there.
    pub fn drain(&self, directory: &str, goes_on: &dyn Fn(u64) -> bool) -> std::result::Result<Drained, String> {
        self.hints().map_or(Err(NO_VOLUMES.to_owned()), |hints| hints.drain(directory, goes_on))
    }

    /// [`VolumeHints::has_several_places`].
    pub fn has_several_places(&self) -> bool {
        self.hints().is_some_and(|hints| hints.has_several_places())
    }

    /// [`VolumeHints::free_bytes`].
    pub fn free_bytes(&self) -> Result<Option<u64>> {
        self.hints().map_or(Ok(None), |hints| hints.free_bytes())
    }

    /// [`VolumeHints::hedged_reads`].
    pub fn hedged_reads(&self) -> HedgedReads {
        self.hints().map_or(HedgedReads::default(), |hints| hints.hedged_reads())
    }

    /// [`VolumeHints::block_hosts`].
    pub fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        self.hints().map_or(Ok(None), |hints| hints.block_hosts(path, part))
    }
}

impl dyn ReadAt + '_ {
    /// [`ReadHints::place`].
    pub fn place(&self) -> Option<String> {
        self.hints().and_then(|hints| hints.place())
    }

    /// [`ReadHints::lost_with`].
    pub fn lost_with(&self) -> Option<String> {
        self.hints().and_then(|hints| hints.lost_with())
    }

    /// [`ReadHints::past_cache`].
    pub fn past_cache(&self) {
        if let Some(hints) = self.hints() {
            hints.past_cache();
        }
    }

    /// [`ReadHints::will_need`].
    pub fn will_need(&self, offset: u64, len: u64) {
        if let Some(hints) = self.hints() {
            hints.will_need(offset, len);
        }
    }

    /// [`ReadHints::forget`].
    pub fn forget(&self) {
        if let Some(hints) = self.hints() {
            hints.forget();
        }
    }

    /// [`ReadHints::forget_range`].
    pub fn forget_range(&self, offset: u64, len: u64) {
        if let Some(hints) = self.hints() {
            hints.forget_range(offset, len);
        }
    }

    /// [`ReadHints::block_hosts`].
    pub fn block_hosts(&self, part: FilePart) -> Option<BlockHosts> {
        self.hints().and_then(|hints| hints.block_hosts(part))
    }
}

impl dyn Appender + '_ {
    /// [`AppendHints::straight_bytes`].
    pub fn straight_bytes(&mut self) -> usize {
        self.hints().map_or(0, |hints| hints.straight_bytes())
    }

    /// [`AppendHints::append_straight`], else [`Appender::append`].
    pub fn append_straight(&mut self, bytes: &[u8]) -> Result<usize> {
        if let Some(hints) = self.hints() {
            return hints.append_straight(bytes);
        }
        self.append(bytes).map(|()| bytes.len())
    }

    /// [`AppendHints::preallocate`].
    pub fn preallocate(&mut self, len: u64) {
        if let Some(hints) = self.hints() {
            hints.preallocate(len);
        }
    }

    /// [`AppendHints::behind`].
    pub fn behind(&mut self) -> Option<Behind> {
        self.hints().and_then(|hints| hints.behind())
    }

    /// [`AppendHints::copies`].
    pub fn copies(&mut self) -> Option<Copies> {
        self.hints().and_then(|hints| hints.copies())
    }

    /// Does at once what [`AppendHints::behind`] returns.
    pub fn write_behind(&mut self) {
        if let Some(work) = self.behind() {
            work();
        }
    }
}
