//! What a power failure leaves.

use super::tree::{Dir, DirId, FileBytes, FileNode, Node, ROOT, Tree, apply};
use base::Rng;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Which of the allowed states a crash gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashPolicy {
    /// Everything that was not synced is gone: the harshest state that is whole.
    LoseUnsynced,
    /// Everything that was handed over is there: what a killed process leaves.
    KeepAll,
    /// Each waiting change of a name happened or not; each file keeps its synced bytes and a random part of the rest,
    /// cut at any byte.
    Torn,
    /// As `Torn`, and the rest may have holes of zeros, 512 bytes at a time: sectors that were not written although
    /// later ones were.
    TornWithHoles,
}

const SECTOR_BYTES: usize = 512;

pub(super) fn after(tree: &Tree, rng: &Rng, policy: CrashPolicy) -> Tree {
    let mut dirs: Vec<Dir> = tree.dirs.clone();
    for change in &tree.waiting {
        let keep = match policy {
            CrashPolicy::LoseUnsynced => false,
            CrashPolicy::KeepAll => true,
            CrashPolicy::Torn | CrashPolicy::TornWithHoles => rng.one_in(2),
        };
        if keep && can_apply(&dirs, change) {
            apply(&mut dirs, change, |dir| &mut dir.durable);
        }
    }
    let mut after = Tree { dirs: Vec::new(), waiting: Vec::new() };
    let mut files = HashMap::new();
    copy(&dirs, ROOT, &mut after, &mut |bytes| cut(bytes, rng, policy), &mut files);
    after
}

/// A rename whose source never became durable has nothing to move, unless its file is there under the name's own right.
fn can_apply(dirs: &[Dir], change: &super::tree::Change) -> bool {
    match change {
        super::tree::Change::Rename { from_dir, from, .. } => dirs[*from_dir].durable.contains_key(from),
        _ => true,
    }
}

fn cut(file: &FileBytes, rng: &Rng, policy: CrashPolicy) -> Vec<u8> {
    let unsynced = file.bytes.len() - file.synced_len;
    let kept = match policy {
        CrashPolicy::LoseUnsynced => 0,
        CrashPolicy::KeepAll => unsynced,
        // Both ends are likely enough to be met.
        CrashPolicy::Torn | CrashPolicy::TornWithHoles => match rng.below(4) {
            0 => 0,
            1 => unsynced,
            _ => rng.below(unsynced as u64 + 1) as usize,
        },
    };
    let mut bytes = file.bytes[..file.synced_len + kept].to_vec();
    if policy == CrashPolicy::TornWithHoles && rng.one_in(2) {
        let mut at = file.synced_len;
        while at < bytes.len() {
            let end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(bytes.len());
            if rng.one_in(3) {
                bytes[at..end].fill(0);
            }
            at = end;
        }
    }
    bytes
}

/// Copies the durable view below `dir` into `out`; two names of one file stay two names of one file.
fn copy(
    dirs: &[Dir],
    dir: DirId,
    out: &mut Tree,
    cut: &mut impl FnMut(&FileBytes) -> Vec<u8>,
    files: &mut HashMap<*const FileNode, Arc<FileNode>>,
) -> DirId {
    let id = out.dirs.len();
    out.dirs.push(Dir::default());
    for (name, node) in &dirs[dir].durable {
        let node = match node {
            Node::File(file) => Node::File(Arc::clone(files.entry(Arc::as_ptr(file)).or_insert_with(|| {
                let bytes = cut(&file.body.lock());
                Arc::new(FileNode { body: Mutex::new(FileBytes { synced_len: bytes.len(), bytes }) })
            }))),
            Node::Dir(below) => Node::Dir(copy(dirs, *below, out, cut, files)),
        };
        out.dirs[id].now.insert(name.clone(), node.clone());
        out.dirs[id].durable.insert(name.clone(), node);
    }
    id
}
