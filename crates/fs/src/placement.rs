//! What a file is for, said when it is created: a volume that has several places chooses one by it.

use std::sync::Arc;

/// What a file is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A log: every acknowledged write waits for its syncs.
    Log,
    /// What a memory was written out to.
    Flush,
    /// Some files merged into one.
    Minor,
    /// All files merged into one.
    Major,
    /// Large values, kept apart.
    Large,
    /// Whatever else there is; it stays with the names.
    #[default]
    Other,
}

impl FileKind {
    /// Every kind that can be given a place.
    pub const PLACED: [FileKind; 5] =
        [FileKind::Log, FileKind::Flush, FileKind::Minor, FileKind::Major, FileKind::Large];

    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Log => "wal",
            FileKind::Flush => "flush",
            FileKind::Minor => "minor",
            FileKind::Major => "major",
            FileKind::Large => "mob",
            FileKind::Other => "other",
        }
    }
}

/// What a new file is for, and what its owner wishes. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// What for.
    pub kind: FileKind,
    /// A storage policy by one of HDFS's names, or the name of a tier; `None` where nobody chose: the kind decides.
    pub policy: Option<Arc<str>>,
    /// Copies that a distributed file system is to keep; `None`: as many as it does of itself.
    pub copies: Option<u32>,
    /// Bytes after which a distributed file system begins another block of the file, which those who write then wait for; `None`: as it does of
    /// itself.
    pub block_bytes: Option<u64>,
}

impl Placement {
    /// Of a file of this kind for which nobody chose.
    pub fn of(kind: FileKind) -> Placement {
        Placement { kind, ..Placement::default() }
    }

    /// With the policy of that name; an empty one and NONE choose nothing.
    #[must_use]
    pub fn with_policy(self, policy: Option<&str>) -> Placement {
        let chosen = policy.map(str::trim).filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("NONE"));
        Placement { policy: chosen.map(Arc::from), ..self }
    }
}
