//! Names and files: as they are now, as they are durably, and the changes in between.

use crate::{DirEntry, FilePath};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

/// A file's bytes; appended only, so the durable contents are a prefix.
#[derive(Default, Clone)]
pub(super) struct FileBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) synced_len: usize,
}

#[derive(Default)]
pub(super) struct FileNode {
    pub(super) body: Mutex<FileBytes>,
}

/// Number of a directory in [`Tree::dirs`].
pub(super) type DirId = usize;

#[derive(Clone)]
pub(super) enum Node {
    File(Arc<FileNode>),
    Dir(DirId),
}

#[derive(Default, Clone)]
pub(super) struct Dir {
    pub(super) now: BTreeMap<String, Node>,
    pub(super) durable: BTreeMap<String, Node>,
}

/// A change of names that waits for a sync.
#[derive(Clone)]
pub(super) enum Change {
    Add { dir: DirId, name: String, node: Node },
    Remove { dir: DirId, name: String },
    Rename { from_dir: DirId, from: String, to_dir: DirId, to: String, node: Node },
}

pub(super) const ROOT: DirId = 0;

#[derive(Clone)]
pub(super) struct Tree {
    pub(super) dirs: Vec<Dir>,
    pub(super) waiting: Vec<Change>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { dirs: vec![Dir::default()], waiting: Vec::new() }
    }
}

pub(super) fn dir_entry(name: String, node: &Node) -> DirEntry {
    match node {
        Node::File(file) => DirEntry { name, is_dir: false, len: file.body.lock().bytes.len() as u64 },
        Node::Dir(_) => DirEntry { name, is_dir: true, len: 0 },
    }
}

impl Tree {
    pub(super) fn find(&self, path: &FilePath) -> Option<Node> {
        let mut node = Node::Dir(ROOT);
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            let Node::Dir(dir) = node else { return None };
            node = self.dirs[dir].now.get(name)?.clone();
        }
        Some(node)
    }

    fn find_dir(&self, path: &FilePath) -> io::Result<DirId> {
        match self.find(path) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn add(&mut self, dir: DirId, name: &str, node: Node) {
        self.dirs[dir].now.insert(name.to_owned(), node.clone());
        self.waiting.push(Change::Add { dir, name: name.to_owned(), node });
    }

    fn remove(&mut self, dir: DirId, name: &str) {
        self.dirs[dir].now.remove(name);
        self.waiting.push(Change::Remove { dir, name: name.to_owned() });
    }

    pub(super) fn create_file(&mut self, path: &FilePath) -> io::Result<Arc<FileNode>> {
        let dir = self.find_dir(&path.parent())?;
        if path.as_str().is_empty() || self.dirs[dir].now.contains_key(path.name()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = Arc::new(FileNode::default());
        self.add(dir, path.name(), Node::File(Arc::clone(&node)));
        Ok(node)
    }

    pub(super) fn create_dir_all(&mut self, path: &FilePath) -> io::Result<DirId> {
        let mut at = ROOT;
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            at = match self.dirs[at].now.get(name) {
                Some(Node::Dir(dir)) => *dir,
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => {
                    self.dirs.push(Dir::default());
                    let new = self.dirs.len() - 1;
                    self.add(at, name, Node::Dir(new));
                    new
                }
            };
        }
        Ok(at)
    }

    pub(super) fn rename(&mut self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        let (from_dir, to_dir) = (self.find_dir(&from.parent())?, self.find_dir(&to.parent())?);
        let node = self.dirs[from_dir].now.get(from.name()).cloned().ok_or(io::ErrorKind::NotFound)?;
        if from == to {
            return Ok(());
        }
        match (&node, self.dirs[to_dir].now.get(to.name())) {
            (_, None) | (Node::File(_), Some(Node::File(_))) => {}
            (Node::File(_), Some(Node::Dir(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            (Node::Dir(_), Some(Node::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Node::Dir(_), Some(Node::Dir(old))) if self.dirs[*old].now.is_empty() => {}
            (Node::Dir(_), Some(Node::Dir(_))) => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
        }
        if matches!(node, Node::Dir(_)) && to.starts_with(from) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.dirs[from_dir].now.remove(from.name());
        self.dirs[to_dir].now.insert(to.name().to_owned(), node.clone());
        let (from, to) = (from.name().to_owned(), to.name().to_owned());
        self.waiting.push(Change::Rename { from_dir, from, to_dir, to, node });
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &FilePath) -> io::Result<()> {
        let dir = self.find_dir(&path.parent())?;
        match self.dirs[dir].now.get(path.name()) {
            Some(Node::File(_)) => {
                self.remove(dir, path.name());
                Ok(())
            }
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn remove_dir_all(&mut self, path: &FilePath) {
        let Some(Node::Dir(dir)) = self.find(path) else { return };
        self.empty_dir(dir);
        if dir != ROOT
            && let Ok(parent) = self.find_dir(&path.parent())
        {
            self.remove(parent, path.name());
        }
    }

    fn empty_dir(&mut self, dir: DirId) {
        let entries: Vec<(String, Node)> = self.dirs[dir].now.iter().map(|(n, e)| (n.clone(), e.clone())).collect();
        for (name, node) in entries {
            if let Node::Dir(below) = node {
                self.empty_dir(below);
            }
            self.remove(dir, &name);
        }
    }

    pub(super) fn list(&self, path: &FilePath) -> io::Result<Vec<DirEntry>> {
        let dir = self.find_dir(path)?;
        Ok(self.dirs[dir].now.iter().map(|(name, node)| dir_entry(name.clone(), node)).collect())
    }

    pub(super) fn sync_dir(&mut self, path: &FilePath) -> io::Result<()> {
        let synced = self.find_dir(path)?;
        let mut still_waiting = Vec::new();
        for change in std::mem::take(&mut self.waiting) {
            match change {
                Change::Add { dir, .. } | Change::Remove { dir, .. } if dir == synced => {
                    if let Change::Add { name, .. } = &change {
                        keep_name(&mut still_waiting, synced, name);
                    }
                    apply(&mut self.dirs, &change, |dir| &mut dir.durable);
                }
                Change::Rename { from_dir, ref from, to_dir, ref to, .. } if to_dir == synced => {
                    keep_name(&mut still_waiting, synced, to);
                    // The new name is safe now; the old one is, when it lies in the same directory.
                    apply_new_name(&mut self.dirs, &change);
                    if from_dir == synced {
                        self.dirs[synced].durable.remove(from);
                    } else {
                        still_waiting.push(Change::Remove { dir: from_dir, name: from.clone() });
                    }
                }
                other => still_waiting.push(other),
            }
        }
        self.waiting = still_waiting;
        Ok(())
    }

    pub(super) fn put_durable(&mut self, path: &FilePath, bytes: &[u8]) {
        let dir = self.create_dir_all(&path.parent()).expect("the parents are directories");
        let body = FileBytes { bytes: bytes.to_vec(), synced_len: bytes.len() };
        self.add(dir, path.name(), Node::File(Arc::new(FileNode { body: Mutex::new(body) })));
        let mut at = path.parent();
        loop {
            self.sync_dir(&at).expect("the directory was made above");
            if at.as_str().is_empty() {
                return;
            }
            at = at.parent();
        }
    }

    pub(super) fn used_bytes(&self) -> u64 {
        fn walk(tree: &Tree, dir: DirId) -> u64 {
            let entries = tree.dirs[dir].now.values();
            entries
                .map(|node| match node {
                    Node::File(file) => file.body.lock().bytes.len() as u64,
                    Node::Dir(below) => walk(tree, *below),
                })
                .sum()
        }
        walk(self, ROOT)
    }

    pub(super) fn all_files(&self) -> Vec<FilePath> {
        fn walk(tree: &Tree, dir: DirId, at: &FilePath, out: &mut Vec<FilePath>) {
            for (name, node) in &tree.dirs[dir].now {
                match node {
                    Node::File(_) => out.push(at.join(name)),
                    Node::Dir(below) => walk(tree, *below, &at.join(name), out),
                }
            }
        }
        let mut out = Vec::new();
        walk(self, ROOT, &FilePath::root(), &mut out);
        out.sort();
        out
    }

    /// The same tree with files of its own.
    pub(super) fn deep_copy(&self) -> Tree {
        let mut copies: HashMap<*const FileNode, Arc<FileNode>> = HashMap::new();
        let mut tree = self.clone();
        tree.each_node(|node| {
            if let Node::File(file) = node {
                let copy = copies
                    .entry(Arc::as_ptr(file))
                    .or_insert_with(|| Arc::new(FileNode { body: Mutex::new(file.body.lock().clone()) }));
                *file = Arc::clone(copy);
            }
        });
        tree
    }

    fn each_node(&mut self, mut visit: impl FnMut(&mut Node)) {
        for dir in &mut self.dirs {
            dir.now.values_mut().chain(dir.durable.values_mut()).for_each(&mut visit);
        }
        for change in &mut self.waiting {
            match change {
                Change::Add { node, .. } | Change::Rename { node, .. } => visit(node),
                Change::Remove { .. } => {}
            }
        }
    }
}

/// Carries out a change on one of the two views.
pub(super) fn apply(dirs: &mut [Dir], change: &Change, view: fn(&mut Dir) -> &mut BTreeMap<String, Node>) {
    match change {
        Change::Add { dir, name, node } => {
            view(&mut dirs[*dir]).insert(name.clone(), node.clone());
        }
        Change::Remove { dir, name } => {
            view(&mut dirs[*dir]).remove(name);
        }
        Change::Rename { from_dir, from, to_dir, to, node } => {
            view(&mut dirs[*from_dir]).remove(from);
            view(&mut dirs[*to_dir]).insert(to.clone(), node.clone());
        }
    }
}

/// A name that is made durable was given away before, by a rename whose new name waits still: that rename must not take it any more.
fn keep_name(waiting: &mut [Change], dir: DirId, name: &str) {
    for change in waiting {
        if let Change::Rename { from_dir, from, to_dir, to, node } = change
            && (*from_dir, from.as_str()) == (dir, name)
        {
            *change = Change::Add { dir: *to_dir, name: std::mem::take(to), node: node.clone() };
        }
    }
}

fn apply_new_name(dirs: &mut [Dir], change: &Change) {
    if let Change::Rename { to_dir, to, node, .. } = change {
        dirs[*to_dir].durable.insert(to.clone(), node.clone());
    }
}
