//! Messages of Basalt's own endpoint for the volumes of a region server's root directory. Apache HBase has none: a client that asks there is told
//! that the service is unknown.

/// Its name in a `CoprocessorServiceCall`.
pub const SERVICE: &str = "BasaltVolumeService";
/// Its method that says what each volume has.
pub const STATUS: &str = "Status";
/// Its method that has files moved off a volume.
pub const DRAIN: &str = "Drain";

/// Request of `Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StatusRequest {}

/// What volumes there are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StatusResponse {
    /// The process that answers.
    #[prost(uint32, tag = "1")]
    pub pid: u32,
    /// The volumes beside the root directory's.
    #[prost(message, repeated, tag = "2")]
    pub volumes: Vec<Volume>,
    /// Regions that are closed until a volume is back.
    #[prost(uint64, tag = "3")]
    pub waiting_regions: u64,
}

/// A volume.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Volume {
    /// Its directory.
    #[prost(string, tag = "1")]
    pub directory: String,
    /// Its tier.
    #[prost(string, tag = "2")]
    pub tier: String,
    /// `ram`, `ssd` or `hdd`.
    #[prost(string, tag = "3")]
    pub class: String,
    /// Whether it can be used.
    #[prost(bool, tag = "4")]
    pub is_there: bool,
    /// Why it cannot, or can only be read.
    #[prost(string, optional, tag = "5")]
    pub trouble: Option<String>,
    /// Whether it has grown slow.
    #[prost(bool, tag = "6")]
    pub is_slow: bool,
    /// How long the oldest call waits that has not returned.
    #[prost(uint64, tag = "7")]
    pub waits_us: u64,
    /// Of a hundred syncs of the last minute, ninety-nine took no longer.
    #[prost(uint64, optional, tag = "8")]
    pub sync_p99_us: Option<u64>,
    /// Files on it.
    #[prost(uint64, tag = "9")]
    pub files: u64,
    /// Bytes of files on it.
    #[prost(uint64, tag = "10")]
    pub used_bytes: u64,
    /// Bytes that are left; none when there is no telling.
    #[prost(uint64, optional, tag = "11")]
    pub free_bytes: Option<u64>,
    /// Whether it is to be emptied.
    #[prost(bool, tag = "12")]
    pub drains: bool,
    /// Files that were moved off it since the server's start.
    #[prost(uint64, tag = "13")]
    pub moved_files: u64,
    /// Bytes of those.
    #[prost(uint64, tag = "14")]
    pub moved_bytes: u64,
    /// Whether files are being moved off it.
    #[prost(bool, tag = "15")]
    pub is_moving: bool,
    /// Why that ended with files left.
    #[prost(string, optional, tag = "16")]
    pub moving_ended: Option<String>,
    /// Regions that are closed until it is back.
    #[prost(uint64, tag = "17")]
    pub waiting_regions: u64,
}

/// Request of `Drain`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DrainRequest {
    /// The volume's directory.
    #[prost(string, tag = "1")]
    pub directory: String,
}

/// Files are moved off it from now on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DrainResponse {}
