//! On which machines the bytes of files lie. Follows: `HDFSBlocksDistribution`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The machine of a volume that knows of no other: whoever asks is on it. Follows: `FileSystem#getFileBlockLocations`.
pub const LOCALHOST: &str = "localhost";

/// Which part of a file is meant: what stands for one half of it is taken to be in the one half of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilePart {
    /// All of it.
    #[default]
    Whole,
    /// The first half of its bytes.
    FirstHalf,
    /// The other half.
    SecondHalf,
}

impl FilePart {
    /// Its bytes in a file of this length.
    pub fn of(self, len_bytes: u64) -> Range<u64> {
        match self {
            FilePart::Whole => 0..len_bytes,
            FilePart::FirstHalf => 0..len_bytes / 2,
            FilePart::SecondHalf => len_bytes / 2..len_bytes,
        }
    }
}

/// Bytes on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBytes {
    /// On any disk.
    pub bytes: u64,
    /// On an SSD.
    pub ssd_bytes: u64,
}

/// A copy of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica<'a> {
    /// Its machine.
    pub host: &'a str,
    /// Whether it is on an SSD.
    pub is_ssd: bool,
}

/// How many bytes of some files lie on which machines. Memory: some 60 bytes a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockHosts {
    total_bytes: u64,
    hosts: BTreeMap<Arc<str>, HostBytes>,
}

impl BlockHosts {
    /// A part of a file that is on this machine alone.
    pub fn here(part: FilePart, len_bytes: u64) -> BlockHosts {
        let bytes = part.of(len_bytes);
        let mut all = BlockHosts::default();
        all.add_block(bytes.end - bytes.start, [Replica { host: LOCALHOST, is_ssd: false }]);
        all
    }

    /// Adds a block with its copies. One that is nowhere does not count, as with HBase; one that a machine has twice counts once there, so
    /// that nothing is local to more than its whole (HBase counts it twice).
    pub fn add_block<'a>(&mut self, bytes: u64, replicas: impl IntoIterator<Item = Replica<'a>>) {
        let mut machines: Vec<Replica<'a>> = Vec::with_capacity(3);
        for replica in replicas {
            match machines.iter_mut().find(|machine| machine.host == replica.host) {
                Some(machine) => machine.is_ssd |= replica.is_ssd,
                None => machines.push(replica),
            }
        }
        for machine in &machines {
            let ssd_bytes = if machine.is_ssd { bytes } else { 0 };
            self.add_host(machine.host, HostBytes { bytes, ssd_bytes });
        }
        if !machines.is_empty() {
            self.total_bytes = self.total_bytes.saturating_add(bytes);
        }
    }

    fn add_host(&mut self, host: &str, more: HostBytes) {
        if let Some(all) = self.hosts.get_mut(host) {
            all.bytes = all.bytes.saturating_add(more.bytes);
            all.ssd_bytes = all.ssd_bytes.saturating_add(more.ssd_bytes);
        } else {
            self.hosts.insert(host.into(), more);
        }
    }

    /// Adds what lies where of other files.
    pub fn add(&mut self, other: &BlockHosts) {
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        for (host, bytes) in &other.hosts {
            self.add_host(host, *bytes);
        }
    }

    /// Bytes of the files, each counted once however many copies there are.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes of which a copy is on this machine.
    pub fn on(&self, host: &str) -> HostBytes {
        self.hosts.get(host).copied().unwrap_or_default()
    }

    /// The same for the machine that asks: what has no machine but `localhost` is there. Follows:
    /// `HDFSBlocksDistribution#getBlocksLocalityWeightInternal`.
    pub fn here_on(&self, host: &str) -> HostBytes {
        self.hosts.get(host).or_else(|| self.hosts.get(LOCALHOST)).copied().unwrap_or_default()
    }

    /// Every machine, by name.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, HostBytes)> {
        self.hosts.iter().map(|(host, bytes)| (&**host, *bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(host: &str) -> Replica<'_> {
        Replica { host, is_ssd: host.ends_with("ssd") }
    }

    #[test]
    fn a_block_counts_once_and_on_each_machine_that_has_a_copy() {
        let mut all = BlockHosts::default();
        all.add_block(10, [replica("a"), replica("b-ssd"), replica("a")]);
        all.add_block(5, [replica("a")]);
        all.add_block(100, []);
        assert_eq!(all.total_bytes(), 15, "a block that is nowhere does not count");
        assert_eq!(all.on("a"), HostBytes { bytes: 15, ssd_bytes: 0 });
        assert_eq!(all.on("b-ssd"), HostBytes { bytes: 10, ssd_bytes: 10 });
        assert_eq!(all.on("c"), HostBytes::default());
        let mut both = all.clone();
        both.add(&all);
        assert_eq!((both.total_bytes(), both.on("a").bytes), (30, 30));
        assert_eq!(both.hosts().map(|(host, _)| host).collect::<Vec<_>>(), ["a", "b-ssd"]);
    }

    #[test]
    fn what_is_on_no_named_machine_is_where_one_asks() {
        let local = BlockHosts::here(FilePart::Whole, 7);
        assert_eq!((local.here_on("a").bytes, local.on("a").bytes, local.total_bytes()), (7, 0, 7));
        let mut elsewhere = BlockHosts::default();
        elsewhere.add_block(7, [replica("b")]);
        assert_eq!(elsewhere.here_on("a").bytes, 0);
    }

    #[test]
    fn the_halves_of_a_file_are_all_of_it() {
        assert_eq!(FilePart::FirstHalf.of(7), 0..3);
        assert_eq!(FilePart::SecondHalf.of(7), 3..7);
        assert_eq!(FilePart::Whole.of(7), 0..7);
        assert_eq!(FilePart::SecondHalf.of(0), 0..0);
    }
}
