//! What several processes see of a volume that they share, as a table: what who asks, and what is answered. Played on the model of HDFS that the
//! simulated cluster stands on, and on a real HDFS: so the model does not agree with its author only.

use fs::{Appender, FilePath, Settled, Volume};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// A server.
    A,
    /// Whoever takes over from it.
    B,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    MakeDir(&'static str),
    /// A file, which is written from then on under its first name.
    Create(&'static str),
    Append(&'static str, &'static str),
    Flush(&'static str),
    Finish(&'static str),
    /// The writer lets go of the file without a word.
    Drop(&'static str),
    Rename(&'static str, &'static str),
    RenameNew(&'static str, &'static str),
    Remove(&'static str),
    RemoveDir(&'static str),
    List(&'static str),
    Exists(&'static str),
    Read(&'static str),
    /// Again and again until it is final.
    Settle(&'static str),
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Done,
    Is(bool),
    Names(&'static [&'static str]),
    Text(&'static str),
    Len(u64),
    Fails(ErrorKind),
    /// It fails, and what of is not told the same by all.
    FailsSomehow,
}

use Ask::*;
use Said::*;
use Who::*;

/// The table.
pub const TABLE: &[(Who, Ask, Said)] = &[
    // Names.
    (A, Create("none/file"), Fails(ErrorKind::NotFound)),
    (A, Exists("none"), Is(false)),
    (A, MakeDir("a/b/c"), Done),
    (B, MakeDir("a/b/c"), Done),
    (B, List("a"), Names(&["b"])),
    (A, List("none"), Fails(ErrorKind::NotFound)),
    (A, Remove("none"), Fails(ErrorKind::NotFound)),
    (A, Remove("a/b"), Fails(ErrorKind::IsADirectory)),
    (A, RemoveDir("none"), Done),
    (A, Rename("none", "a/x"), Fails(ErrorKind::NotFound)),
    // A file that is finished.
    (A, Create("a/one"), Done),
    (B, Create("a/one"), FailsSomehow),
    (A, Append("a/one", "1234"), Done),
    (B, Read("a/one"), FailsSomehow),
    (A, Finish("a/one"), Done),
    (B, Read("a/one"), Text("1234")),
    (B, Create("a/one"), Fails(ErrorKind::AlreadyExists)),
    (B, Settle("a/one"), Len(4)),
    (B, Settle("none"), Fails(ErrorKind::NotFound)),
    (B, Settle("a"), Fails(ErrorKind::IsADirectory)),
    (A, MakeDir("a/one"), FailsSomehow),
    (A, List("a/one"), Fails(ErrorKind::NotADirectory)),
    // Renames.
    (A, Create("a/two"), Done),
    (A, Append("a/two", "two"), Done),
    (A, Finish("a/two"), Done),
    (B, RenameNew("a/one", "a/two"), Fails(ErrorKind::AlreadyExists)),
    (B, Read("a/two"), Text("two")),
    (B, Rename("a/one", "a/two"), Done),
    (A, Read("a/two"), Text("1234")),
    (A, Exists("a/one"), Is(false)),
    (A, Rename("a/two", "none/two"), Fails(ErrorKind::NotFound)),
    (A, Rename("a/two", "a/two"), Done),
    (A, RenameNew("a/two", "a/b/two"), Done),
    (B, List("a/b"), Names(&["c", "two"])),
    // A directory that is taken from a server under its open file: the fence.
    (A, MakeDir("WALs/s"), Done),
    (A, Create("WALs/s/1"), Done),
    (A, Append("WALs/s/1", "first"), Done),
    (A, Flush("WALs/s/1"), Done),
    (B, RenameNew("WALs/s", "WALs/s-splitting"), Done),
    (A, Create("WALs/s/2"), Fails(ErrorKind::NotFound)),
    (A, Append("WALs/s/1", "second"), Done),
    // Until the lease is recovered it writes on.
    (A, Flush("WALs/s/1"), Done),
    (B, Settle("WALs/s-splitting/1"), Len(11)),
    (A, Append("WALs/s/1", "third"), Done),
    (A, Flush("WALs/s/1"), FailsSomehow),
    (A, Finish("WALs/s/1"), FailsSomehow),
    (B, Read("WALs/s-splitting/1"), Text("firstsecond")),
    // A writer that goes away.
    (A, Create("a/left"), Done),
    (A, Append("a/left", "flushed"), Done),
    (A, Flush("a/left"), Done),
    (A, Append("a/left", " not"), Done),
    (A, Drop("a/left"), Done),
    (B, Settle("a/left"), Len(7)),
    (B, Read("a/left"), Text("flushed")),
    // A temporary directory that the next owner removes: what was written there is not published.
    (A, MakeDir("r/.tmp"), Done),
    (A, MakeDir("r/f"), Done),
    (A, Create("r/.tmp/file"), Done),
    (A, Append("r/.tmp/file", "cells"), Done),
    (A, Finish("r/.tmp/file"), Done),
    (B, RemoveDir("r/.tmp"), Done),
    (A, RenameNew("r/.tmp/file", "r/f/file"), Fails(ErrorKind::NotFound)),
    (A, Create("r/.tmp/other"), Fails(ErrorKind::NotFound)),
    (B, List("r"), Names(&["f"])),
];

/// Plays the table; `wait`: time passes, so that a lease's recovery goes on.
///
/// # Panics
/// Something else is answered.
pub fn play(a: &dyn Volume, b: &dyn Volume, mut wait: impl FnMut()) {
    let mut files: BTreeMap<&str, Box<dyn Appender>> = BTreeMap::new();
    for (line, (who, ask, wanted)) in TABLE.iter().enumerate() {
        let volume = match who {
            A => a,
            B => b,
        };
        let at = FilePath::new;
        let mut text = String::new();
        let said: fs::Result<Said> = match *ask {
            MakeDir(dir) => volume.create_dir_all(&at(dir)).map(|()| Done),
            Create(path) => volume.create(&at(path)).map(|file| {
                files.insert(path, file);
                Done
            }),
            Append(path, bytes) => files.get_mut(path).expect("open").append(bytes.as_bytes()).map(|()| Done),
            Flush(path) => files.get_mut(path).expect("open").flush().map(|()| Done),
            Finish(path) => files.remove(path).expect("open").finish().map(|()| Done),
            Ask::Drop(path) => {
                drop(files.remove(path).expect("open"));
                Ok(Done)
            }
            Rename(from, to) => volume.rename(&at(from), &at(to)).map(|()| Done),
            RenameNew(from, to) => volume.rename_new(&at(from), &at(to)).map(|()| Done),
            Remove(path) => volume.remove_file(&at(path)).map(|()| Done),
            RemoveDir(path) => volume.remove_dir_all(&at(path)).map(|()| Done),
            Exists(path) => volume.exists(&at(path)).map(Is),
            List(path) => volume.list(&at(path)).map(|entries| {
                let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
                let same = matches!(wanted, Names(wanted) if names == *wanted);
                text = format!("{names:?}");
                if same { *wanted } else { Done }
            }),
            Read(path) => volume.read(&at(path)).map(|bytes| {
                text = String::from_utf8_lossy(&bytes).into_owned();
                if matches!(wanted, Text(wanted) if text == *wanted) { *wanted } else { Done }
            }),
            Settle(path) => loop {
                match volume.settle(&at(path)) {
                    Ok(Settled::Final { len_bytes }) => break Ok(Len(len_bytes)),
                    Ok(Settled::Pending) => wait(),
                    Err(error) => break Err(error),
                }
            },
        };
        let matches = match (&said, wanted) {
            (Err(_), FailsSomehow) => true,
            (Err(error), Fails(kind)) => error.kind() == *kind,
            (Ok(said), wanted) => said == wanted,
            _ => false,
        };
        assert!(matches, "line {line}: {who:?} asks {ask:?}: {said:?} {text}, not {wanted:?}");
    }
}
