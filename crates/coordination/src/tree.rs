//! The tree of nodes. Pure: time and transaction ids are handed in, changes come back as [`Change`]s for the watches.
//!
//! Always true: every node but the root has its parent; an ephemeral node has no children; `bytes` is the sum of
//! names and data held. Follows ZooKeeper's `DataTree` and `PrepRequestProcessor`.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// Names and data that the tree holds at most; a write beyond is refused.
pub const MAX_TREE_BYTES: usize = 64 << 20;
/// Of them so many may be kept over restarts: each group of changes writes them all.
pub const MAX_KEPT_BYTES: usize = 8 << 20;
/// What a kept node costs in its file besides its path and its data.
const KEPT_NODE_BYTES: usize = 96;
/// Longest path.
const MAX_PATH_BYTES: usize = 4096;

/// Why an operation was refused; the numbers are ZooKeeper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The tree is full.
    #[error(
        "znode tree is full (64 MiB, 8 MiB of them kept over restarts), or its file cannot be written; delete znodes that are not needed"
    )]
    SystemError = -1,
    /// This endpoint does not do that.
    #[error("unimplemented")]
    Unimplemented = -6,
    /// Not a path, or not one that may be changed so.
    #[error("bad arguments")]
    BadArguments = -8,
    /// No such node, or no such parent.
    #[error("no node")]
    NoNode = -101,
    /// The version given is not the node's.
    #[error("bad version")]
    BadVersion = -103,
    /// The parent is ephemeral.
    #[error("ephemeral nodes have no children")]
    NoChildrenForEphemerals = -108,
    /// There already.
    #[error("node exists")]
    NodeExists = -110,
    /// Has children.
    #[error("not empty")]
    NotEmpty = -111,
    /// An ACL that this endpoint could not keep.
    #[error("invalid ACL")]
    InvalidAcl = -114,
    /// A way of proving oneself that this endpoint does not know.
    #[error("authentication failed")]
    AuthFailed = -115,
}

impl TreeError {
    /// ZooKeeper's number.
    pub fn code(self) -> i32 {
        self as i32
    }
}

/// How a node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateMode {
    /// The session that the node dies with; 0 for none.
    pub ephemeral_owner: i64,
    /// Whether ten digits of a running number are put behind the name.
    pub sequential: bool,
}

impl CreateMode {
    /// Stays until it is deleted.
    pub const PERSISTENT: CreateMode = CreateMode { ephemeral_owner: 0, sequential: false };
}

/// What is known of a node besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stat {
    /// Transaction that made it.
    pub czxid: i64,
    /// Transaction that last changed its data.
    pub mzxid: i64,
    /// Milliseconds of making.
    pub ctime: i64,
    /// Milliseconds of last change.
    pub mtime: i64,
    /// Changes of data.
    pub version: i32,
    /// Changes of children.
    pub cversion: i32,
    /// Changes of ACL.
    pub aversion: i32,
    /// Session of an ephemeral node.
    pub ephemeral_owner: i64,
    /// Bytes of data.
    pub data_length: i32,
    /// Number of children.
    pub num_children: i32,
    /// Transaction that last changed the children.
    pub pzxid: i64,
}

/// Bytes of a [`Stat`] on the wire.
pub const STAT_BYTES: usize = 68;

impl Stat {
    /// Appends the wire form.
    pub fn write(&self, out: &mut BytesMut) {
        out.put_i64(self.czxid);
        out.put_i64(self.mzxid);
        out.put_i64(self.ctime);
        out.put_i64(self.mtime);
        out.put_i32(self.version);
        out.put_i32(self.cversion);
        out.put_i32(self.aversion);
        out.put_i64(self.ephemeral_owner);
        out.put_i32(self.data_length);
        out.put_i32(self.num_children);
        out.put_i64(self.pzxid);
    }
}

#[derive(Debug, Default)]
struct Node {
    data: Bytes,
    stat: Stat,
    /// Children ever made; also the number of the next sequential child.
    children_made: i32,
    children: BTreeSet<Box<str>>,
    keeping: Keeping,
    /// The last transaction that a restart must find, of this node and the names of its children.
    kept_zxid: i64,
}

/// What of a node outlives the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Keeping {
    /// Nothing: it is made anew from the server's state, or goes with a session.
    #[default]
    Nothing,
    /// The number of its next sequential child: it is made from the server's state, and users have nodes below it.
    Counter,
    /// All of it: a user's.
    Everything,
}

/// A node as it outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNode {
    /// Where.
    pub path: Box<str>,
    /// It is here for its running number, and for who is below it; its data is made from the server's state.
    pub is_derived: bool,
    /// Its data; empty of a derived one.
    pub data: Bytes,
    /// What is known of it. Lengths, counts and `cversion` follow from the rest.
    pub stat: Stat,
    /// Children ever made.
    pub children_made: i32,
}

impl Node {
    fn stat(&self) -> Stat {
        let num_children = i32::try_from(self.children.len()).unwrap_or(i32::MAX);
        Stat {
            data_length: i32::try_from(self.data.len()).unwrap_or(i32::MAX),
            num_children,
            // Makings plus deletions.
            cversion: self.children_made.wrapping_mul(2).wrapping_sub(num_children),
            ..self.stat
        }
    }
}

/// Something that watches are fired for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The node was made.
    Created(String),
    /// The node was deleted.
    Deleted(String),
    /// The node's data changed.
    Data(String),
}

/// The nodes by path.
#[derive(Debug)]
pub struct Tree {
    nodes: BTreeMap<Box<str>, Node>,
    bytes: usize,
    kept_bytes: usize,
    kept_change: i64,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

/// Parent's path and last name; the root is its own parent.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((parent, name)) => (parent, name),
        None => ("/", path),
    }
}

fn kept_cost(path: &str, node: &Node) -> usize {
    let data = if node.keeping == Keeping::Everything { node.data.len() } else { 0 };
    KEPT_NODE_BYTES + path.len() + data
}

/// The directory above `path`.
pub fn parent_of(path: &str) -> &str {
    split(path).0
}

/// Whether `path` is absolute, without empty names, `.`, `..` or control characters, and not too long.
pub fn check_path(path: &str) -> Result<(), TreeError> {
    let Some(names) = path.strip_prefix('/') else { return Err(TreeError::BadArguments) };
    let bad_name = |name: &str| matches!(name, "" | "." | "..") || name.chars().any(char::is_control);
    if path.len() > MAX_PATH_BYTES || (path != "/" && names.split('/').any(bad_name)) {
        return Err(TreeError::BadArguments);
    }
    Ok(())
}

impl Tree {
    /// A tree with the nodes that every ZooKeeper has.
    pub fn new() -> Tree {
        let mut tree = Tree { nodes: BTreeMap::new(), bytes: 0, kept_bytes: 0, kept_change: 0 };
        tree.nodes.insert(Box::from("/"), Node::default());
        let made = tree.create("/zookeeper", Bytes::new(), CreateMode::PERSISTENT, 0, 0);
        debug_assert!(made.is_ok());
        tree
    }

    /// Nodes held.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes of names and data held.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    fn node(&self, path: &str) -> Result<&Node, TreeError> {
        self.nodes.get(path).ok_or(TreeError::NoNode)
    }

    /// What is known of a node.
    ///
    /// # Errors
    /// [`TreeError::NoNode`], [`TreeError::BadArguments`].
    pub fn stat(&self, path: &str) -> Result<Stat, TreeError> {
        check_path(path)?;
        self.node(path).map(Node::stat)
    }

    /// A node's data.
    ///
    /// # Errors
    /// As [`Tree::stat`].
    pub fn data(&self, path: &str) -> Result<(Bytes, Stat), TreeError> {
        check_path(path)?;
        self.node(path).map(|node| (node.data.clone(), node.stat()))
    }

    /// Names of a node's children in byte order.
    ///
    /// # Errors
    /// As [`Tree::stat`].
    pub fn children(&self, path: &str) -> Result<(impl ExactSizeIterator<Item = &str>, Stat), TreeError> {
        check_path(path)?;
        self.node(path).map(|node| (node.children.iter().map(|name| &**name), node.stat()))
    }

    /// Makes a node; returns its path (with the running number of a sequential one) and what is known of it.
    ///
    /// # Errors
    /// Any but the session's.
    pub fn create(
        &mut self,
        path: &str,
        data: Bytes,
        mode: CreateMode,
        zxid: i64,
        now_ms: i64,
    ) -> Result<(String, Stat), TreeError> {
        // A sequential node's name may be nothing but its number.
        let checked = if mode.sequential && path.ends_with('/') { format!("{path}0") } else { path.to_owned() };
        check_path(&checked)?;
        if path == "/" && !mode.sequential {
            return Err(TreeError::NodeExists);
        }
        let (parent_path, _) = split(path);
        let parent = self.nodes.get(parent_path).ok_or(TreeError::NoNode)?;
        if parent.stat.ephemeral_owner != 0 {
            return Err(TreeError::NoChildrenForEphemerals);
        }
        let path = if mode.sequential { format!("{path}{:010}", parent.children_made) } else { path.to_owned() };
        if self.nodes.contains_key(&*path) {
            return Err(TreeError::NodeExists);
        }
        let cost = 2 * path.len() + data.len() + size_of::<Node>();
        if self.bytes + cost > MAX_TREE_BYTES {
            return Err(TreeError::SystemError);
        }
        let stat = Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: now_ms,
            mtime: now_ms,
            ephemeral_owner: mode.ephemeral_owner,
            ..Stat::default()
        };
        let node = Node { data, stat, ..Node::default() };
        let stat = node.stat();
        let (parent_path, name) = split(&path);
        let parent = self.nodes.get_mut(parent_path).expect("looked up above");
        parent.children.insert(Box::from(name));
        parent.children_made = parent.children_made.wrapping_add(1);
        parent.stat.pzxid = zxid;
        self.bytes += cost;
        self.nodes.insert(Box::from(&*path), node);
        Ok((path, stat))
    }

    /// Deletes a node without children. `version` -1 means any.
    ///
    /// # Errors
    /// [`TreeError::NoNode`], [`TreeError::BadVersion`], [`TreeError::NotEmpty`], [`TreeError::BadArguments`].
    pub fn delete(&mut self, path: &str, version: i32, zxid: i64) -> Result<(), TreeError> {
        check_path(path)?;
        if path == "/" || path == "/zookeeper" {
            return Err(TreeError::BadArguments);
        }
        let node = self.node(path)?;
        if version != -1 && version != node.stat.version {
            return Err(TreeError::BadVersion);
        }
        if !node.children.is_empty() {
            return Err(TreeError::NotEmpty);
        }
        let (kept, kept_bytes) = (node.keeping != Keeping::Nothing, kept_cost(path, node));
        let bytes = 2 * path.len() + node.data.len() + size_of::<Node>();
        self.bytes -= bytes;
        self.nodes.remove(path);
        let (parent_path, name) = split(path);
        let parent = self.nodes.get_mut(parent_path).expect("every node has its parent");
        parent.children.remove(name);
        parent.stat.pzxid = zxid;
        if kept {
            parent.kept_zxid = zxid;
            self.kept_bytes -= kept_bytes;
            self.kept_change = zxid;
        }
        Ok(())
    }

    /// Replaces a node's data. `version` -1 means any.
    ///
    /// # Errors
    /// [`TreeError::NoNode`], [`TreeError::BadVersion`], [`TreeError::SystemError`] when the tree is full.
    pub fn set_data(
        &mut self,
        path: &str,
        data: Bytes,
        version: i32,
        zxid: i64,
        now_ms: i64,
    ) -> Result<Stat, TreeError> {
        check_path(path)?;
        let bytes = self.bytes;
        let node = self.nodes.get_mut(path).ok_or(TreeError::NoNode)?;
        if version != -1 && version != node.stat.version {
            return Err(TreeError::BadVersion);
        }
        let bytes = bytes - node.data.len() + data.len();
        if bytes > MAX_TREE_BYTES {
            return Err(TreeError::SystemError);
        }
        if node.keeping == Keeping::Everything {
            self.kept_bytes = self.kept_bytes - node.data.len() + data.len();
            self.kept_change = zxid;
            node.kept_zxid = zxid;
        }
        node.data = data;
        node.stat.version = node.stat.version.wrapping_add(1);
        node.stat.mzxid = zxid;
        node.stat.mtime = now_ms;
        let stat = node.stat();
        self.bytes = bytes;
        Ok(stat)
    }

    /// Counts a change of the ACL, which is always the same. `version` -1 means any.
    ///
    /// # Errors
    /// [`TreeError::NoNode`], [`TreeError::BadVersion`], [`TreeError::BadArguments`].
    pub fn set_acl(&mut self, path: &str, version: i32, zxid: i64) -> Result<Stat, TreeError> {
        check_path(path)?;
        let node = self.nodes.get_mut(path).ok_or(TreeError::NoNode)?;
        if version != -1 && version != node.stat.aversion {
            return Err(TreeError::BadVersion);
        }
        node.stat.aversion = node.stat.aversion.wrapping_add(1);
        if node.keeping == Keeping::Everything {
            self.kept_change = zxid;
            node.kept_zxid = zxid;
        }
        Ok(node.stat())
    }

    /// A user made this node: it is kept, unless it is ephemeral, and so is the running number above it where it must not be given twice.
    pub fn keep_created(&mut self, path: &str, mode: CreateMode, zxid: i64) {
        let is_persistent = mode.ephemeral_owner == 0;
        let (parent_path, _) = split(path);
        let Some(parent) = self.nodes.get_mut(parent_path) else { return };
        if !is_persistent && !mode.sequential && parent.keeping == Keeping::Nothing {
            return;
        }
        if parent.keeping == Keeping::Nothing {
            parent.keeping = Keeping::Counter;
            self.kept_bytes += kept_cost(parent_path, parent);
        }
        parent.kept_zxid = zxid;
        self.kept_change = zxid;
        let node = self.nodes.get_mut(path).filter(|_| is_persistent);
        if let Some(node) = node {
            node.keeping = Keeping::Everything;
            node.kept_zxid = zxid;
            self.kept_bytes += kept_cost(path, node);
        }
    }

    /// The server made this node from its state: its data is not kept, even where a user had made the node before.
    pub fn derive(&mut self, path: &str, zxid: i64) {
        let Some(node) = self.nodes.get_mut(path).filter(|node| node.keeping == Keeping::Everything) else { return };
        self.kept_bytes -= kept_cost(path, node);
        node.keeping = Keeping::Counter;
        node.kept_zxid = zxid;
        self.kept_bytes += kept_cost(path, node);
        self.kept_change = zxid;
    }

    /// Whether something of the node outlives the process.
    pub fn is_kept(&self, path: &str) -> bool {
        self.nodes.get(path).is_some_and(|node| node.keeping != Keeping::Nothing)
    }

    /// Whether a user's node of this path and so many bytes would still be kept.
    pub fn keeps_room_for(&self, path: &str, data_bytes: usize) -> bool {
        // Its parent may be kept with it.
        self.kept_bytes + 2 * (path.len() + KEPT_NODE_BYTES) + data_bytes <= MAX_KEPT_BYTES
    }

    /// The last transaction that a restart must find.
    pub fn kept_change(&self) -> i64 {
        self.kept_change
    }

    /// Up to which transaction what is kept must be durable for an answer about this node to be true after a crash.
    pub fn depends_on(&self, path: &str) -> i64 {
        // Of a node that is not there it is not known what took it away.
        self.nodes.get(path).map_or(self.kept_change, |node| node.kept_zxid)
    }

    /// What outlives the process, parents first.
    pub fn kept_nodes(&self) -> Vec<KeptNode> {
        let mut paths = BTreeSet::new();
        for (path, _) in self.nodes.iter().filter(|(_, node)| node.keeping != Keeping::Nothing) {
            let mut path: &str = path;
            while paths.insert(path) && path != "/" {
                path = parent_of(path);
            }
        }
        let kept = |path: &str| {
            let node = self.nodes.get(path)?;
            let is_derived = node.keeping != Keeping::Everything;
            let data = if is_derived { Bytes::new() } else { node.data.clone() };
            let path = Box::from(path);
            Some(KeptNode { path, is_derived, data, stat: node.stat, children_made: node.children_made })
        };
        paths.into_iter().filter_map(kept).collect()
    }

    /// Puts a node of an earlier life back, parents before their children.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn restore(&mut self, kept: &KeptNode) -> Result<(), &'static str> {
        let path = &*kept.path;
        check_path(path).map_err(|_| "its path is none")?;
        let node = Node {
            data: kept.data.clone(),
            stat: Stat { ephemeral_owner: 0, ..kept.stat },
            children_made: kept.children_made,
            children: BTreeSet::new(),
            keeping: if kept.is_derived { Keeping::Counter } else { Keeping::Everything },
            kept_zxid: 0,
        };
        self.kept_bytes += kept_cost(path, &node);
        if let Some(there) = self.nodes.get_mut(path) {
            // Only those that every tree has are there before.
            if !kept.is_derived || there.keeping != Keeping::Nothing {
                return Err("its path is there twice");
            }
            let (data, children) = (std::mem::take(&mut there.data), std::mem::take(&mut there.children));
            *there = Node { data, children, ..node };
            return Ok(());
        }
        let cost = 2 * path.len() + node.data.len() + size_of::<Node>();
        if self.bytes + cost > MAX_TREE_BYTES {
            return Err("with it the tree is full");
        }
        let (parent_path, name) = split(path);
        let parent = self.nodes.get_mut(parent_path).ok_or("its parent is not before it")?;
        if parent.keeping == Keeping::Nothing {
            return Err("its parent is not before it");
        }
        parent.children.insert(Box::from(name));
        self.bytes += cost;
        self.nodes.insert(Box::from(path), node);
        Ok(())
    }

    /// Paths of the nodes that die with a session.
    pub fn ephemerals_of(&self, session_id: i64) -> Vec<String> {
        let own = |node: &Node| session_id != 0 && node.stat.ephemeral_owner == session_id;
        self.nodes.iter().filter(|(_, node)| own(node)).map(|(path, _)| path.to_string()).collect()
    }

    /// Number of ephemeral nodes.
    pub fn ephemeral_count(&self) -> usize {
        self.nodes.values().filter(|node| node.stat.ephemeral_owner != 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(tree: &mut Tree, path: &str, mode: CreateMode, zxid: i64) -> Result<String, TreeError> {
        tree.create(path, Bytes::from_static(b"d"), mode, zxid, 1000 + zxid).map(|(path, _)| path)
    }

    #[test]
    fn a_node_needs_its_parent_and_goes_only_when_empty() {
        let mut tree = Tree::new();
        let p = CreateMode::PERSISTENT;
        assert_eq!(create(&mut tree, "/a/b", p, 1), Err(TreeError::NoNode));
        assert_eq!(create(&mut tree, "/a", p, 2), Ok("/a".into()));
        assert_eq!(create(&mut tree, "/a/b", p, 3), Ok("/a/b".into()));
        assert_eq!(create(&mut tree, "/a/b", p, 4), Err(TreeError::NodeExists));
        assert_eq!(tree.delete("/a", -1, 5), Err(TreeError::NotEmpty));
        assert_eq!(tree.delete("/a/b", 7, 5), Err(TreeError::BadVersion));
        assert_eq!(tree.delete("/a/b", 0, 5), Ok(()));
        let stat = tree.stat("/a").expect("is there");
        assert_eq!((stat.cversion, stat.num_children, stat.pzxid, stat.czxid), (2, 0, 5, 2));
        assert_eq!(tree.delete("/a", -1, 6), Ok(()));
        assert_eq!(
            tree.children("/").map(|(names, _)| names.map(str::to_owned).collect()),
            Ok(vec!["zookeeper".to_owned()])
        );
        let empty = Tree::new();
        assert_eq!((tree.byte_count(), tree.node_count()), (empty.byte_count(), empty.node_count()));
    }

    #[test]
    fn data_has_versions() {
        let mut tree = Tree::new();
        create(&mut tree, "/a", CreateMode::PERSISTENT, 1).expect("made");
        assert_eq!(tree.set_data("/a", Bytes::from_static(b"xyz"), 1, 2, 5), Err(TreeError::BadVersion));
        let stat = tree.set_data("/a", Bytes::from_static(b"xyz"), 0, 2, 5).expect("version 0 is current");
        assert_eq!((stat.version, stat.mzxid, stat.mtime, stat.data_length, stat.czxid), (1, 2, 5, 3, 1));
        assert_eq!(tree.data("/a").expect("is there").0, "xyz");
    }

    #[test]
    fn sequential_and_ephemeral_nodes() {
        let mut tree = Tree::new();
        create(&mut tree, "/q", CreateMode::PERSISTENT, 1).expect("made");
        let mode = CreateMode { ephemeral_owner: 77, sequential: true };
        assert_eq!(create(&mut tree, "/q/n-", mode, 2), Ok("/q/n-0000000000".into()));
        assert_eq!(tree.delete("/q/n-0000000000", -1, 3), Ok(()));
        assert_eq!(create(&mut tree, "/q/", mode, 4), Ok("/q/0000000001".into()));
        assert_eq!(
            create(&mut tree, "/q/0000000001/x", CreateMode::PERSISTENT, 5),
            Err(TreeError::NoChildrenForEphemerals)
        );
        assert_eq!(tree.ephemerals_of(77), ["/q/0000000001"]);
        assert_eq!(tree.ephemerals_of(0), Vec::<String>::new());
    }

    #[test]
    fn odd_paths_are_refused() {
        for bad in ["", "a", "/a/", "//a", "/a//b", "/a/./b", "/..", "/a\0b", &format!("/{}", "x".repeat(5000))] {
            assert_eq!(check_path(bad), Err(TreeError::BadArguments), "{bad:?}");
        }
        for good in ["/", "/hbase", "/hbase/table/ns:t", "/hbase/rs/host,16020,1"] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        assert_eq!(Tree::new().delete("/", -1, 1), Err(TreeError::BadArguments));
    }

    #[test]
    fn a_full_tree_refuses_more() {
        let mut tree = Tree::new();
        let big = Bytes::from(vec![0; 1 << 20]);
        let mut made = 0;
        while tree.create(&format!("/n{made}"), big.clone(), CreateMode::PERSISTENT, 1, 1).is_ok() {
            made += 1;
        }
        assert_eq!(made, 63);
        assert_eq!(
            tree.create("/more", big.clone(), CreateMode::PERSISTENT, 1, 1).map(|_| ()),
            Err(TreeError::SystemError)
        );
        tree.delete("/n0", -1, 2).expect("delete makes room");
        tree.create("/more", big, CreateMode::PERSISTENT, 1, 1).expect("room again");
    }
}
