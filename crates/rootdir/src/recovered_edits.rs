//! The names of the small files in a region's `recovered.edits`, and what they say. Follows: `WALSplitUtil`; the notes are Basalt's own.

use base::SeqId;

/// The directory.
pub const DIR: &str = model::name::RECOVERED_EDITS;

const DELETED_SUFFIX: &str = ".deleted";

/// The highest id that a `<n>.seqid` file among `names` tells of: up to it ids are used. Follows: `WALSplitUtil#getMaxRegionSequenceId`.
pub fn max_seq_id_file<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<SeqId> {
    let number = |name: &str| name.strip_suffix(".seqid").or_else(|| name.strip_suffix("_seqid"))?.parse().ok();
    names.into_iter().filter_map(number).max().map(SeqId)
}

/// A note that a family was deleted: what logs have for it is of no use to another of its name. It counts until somebody, who may be HBase,
/// has opened or closed the region since: both leave a higher id in the name of a `<n>.seqid` file. HBase passes over notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedFamily {
    /// The name of the family's directory.
    pub dir: String,
    /// What [`max_seq_id_file`] said when the note was written.
    pub closed_seq_id: SeqId,
}

impl DeletedFamily {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("{}{DELETED_SUFFIX}", self.dir)
    }

    /// What its file holds.
    pub fn contents(&self) -> String {
        format!("{}\n", self.closed_seq_id)
    }

    /// The family directory for which a file of this name is a note.
    pub fn dir_of(file_name: &str) -> Option<&str> {
        // The name of one that is being written begins with a period, as no family's does.
        file_name.strip_suffix(DELETED_SUFFIX).filter(|dir| !dir.is_empty() && !dir.starts_with('.'))
    }

    /// The note that a file is; `None` when it is no note, or holds something else.
    pub fn read(file_name: &str, contents: &[u8]) -> Option<DeletedFamily> {
        let dir = DeletedFamily::dir_of(file_name)?.to_owned();
        let id = std::str::from_utf8(contents).ok()?.strip_suffix('\n')?.parse().ok()?;
        Some(DeletedFamily { dir, closed_seq_id: SeqId(id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_seqid_file_counts() {
        assert_eq!(max_seq_id_file(["3.seqid", "12.seqid", "9_seqid", "00000005"]), Some(SeqId(12)));
        assert_eq!(max_seq_id_file([]), None);
    }

    #[test]
    fn a_note_reads_back() {
        for dir in ["f", "12", "a.deleted", "7.seqid"] {
            let note = DeletedFamily { dir: dir.to_owned(), closed_seq_id: SeqId(17) };
            assert_eq!(DeletedFamily::read(&note.file_name(), note.contents().as_bytes()), Some(note));
        }
        for other in ["12", "12.seqid", "f", ".deleted", ".tmp-f.deleted"] {
            assert_eq!(DeletedFamily::dir_of(other), None, "{other}");
        }
        for contents in ["", "17", "x\n", "-1\n"] {
            assert_eq!(DeletedFamily::read("f.deleted", contents.as_bytes()), None, "{contents:?}");
        }
    }
}
