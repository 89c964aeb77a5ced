//! Users' persistent nodes over restarts: their bytes in a file, and what of the tree is to be made durable when.
//!
//! Always true: an answer or a watch event that tells of a kept change leaves after the change is durable; transaction ids begin above
//! [`Kept::zxid_limit`] of the earlier life; ephemeral nodes are never kept. Nodes that the server makes from its own state are not kept,
//! so that there is one truth of each. Must not know: files. Who has one restores the tree from it before the endpoint runs
//! ([`TreeHandle::restore`]) and writes what [`TreeHandle::next_to_keep`] hands out.
//!
//! The file: `BSLTZNOD`, version(4), zxid limit(8), count(4), CRC-32C(4) of these; then `count` records
//! `length(4) CRC-32C(4) body`, parents first, and nothing behind them. A body is kind(1) (1 a user's node, 2 one that the server makes, kept
//! for its running number), path, data, czxid, mzxid, pzxid, ctime, mtime (8 each), version, children made, aversion (4 each); big-endian, strings and
//! buffers as ZooKeeper's with their length(4).

use crate::jute::{JutePut, JuteReader, Malformed};
use crate::state::{Keeping, TreeHandle};
use crate::tree::{CreateMode, KeptNode, Stat, Tree, TreeError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

const MAGIC: &[u8; 8] = b"BSLTZNOD";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 8 + 4;
const CHECKSUM_BYTES: usize = 4;
/// Transaction ids that are set aside for a life in one go.
const ZXID_RESERVE: i64 = 1 << 24;
/// No life begins above: there is room for as many restarts as anybody makes.
const MAX_ZXID_LIMIT: i64 = i64::MAX / 2;
const USERS: u8 = 1;
const DERIVED: u8 = 2;

/// What outlives the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// No transaction id of the life that wrote it is above.
    pub zxid_limit: i64,
    /// The nodes, parents first.
    pub nodes: Vec<KeptNode>,
}

/// The bytes are not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {what}")]
pub struct Damaged {
    /// Where, in the file.
    pub offset: usize,
    /// What is wrong there.
    pub what: String,
}

impl Kept {
    /// The file's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_slice(MAGIC);
        out.put_u32(VERSION);
        out.put_i64(self.zxid_limit);
        out.put_u32(u32::try_from(self.nodes.len()).expect("a tree is held in 64 MiB"));
        let checksum = crc32c::crc32c(&out);
        out.put_u32(checksum);
        let mut body = BytesMut::new();
        for node in &self.nodes {
            body.clear();
            encode_node(node, &mut body);
            out.put_u32(u32::try_from(body.len()).expect("a node is smaller than a frame"));
            out.put_u32(crc32c::crc32c(&body));
            out.put_slice(&body);
        }
        out.freeze()
    }

    /// What [`Kept::encode`] wrote. Any bytes may come in.
    ///
    /// # Errors
    /// Where they are not that.
    pub fn decode(bytes: &Bytes) -> Result<Kept, Damaged> {
        let damaged = |offset, what: &str| Damaged { offset, what: what.to_owned() };
        let Some((mut header, sum)) = bytes
            .get(..HEADER_BYTES)
            .zip(bytes.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk::<CHECKSUM_BYTES>()))
        else {
            return Err(damaged(bytes.len(), "the file ends in its header"));
        };
        if !header.starts_with(MAGIC) {
            return Err(damaged(0, "it does not begin with BSLTZNOD"));
        }
        if crc32c::crc32c(header) != u32::from_be_bytes(*sum) {
            return Err(damaged(0, "the header's checksum is wrong"));
        }
        header.advance(MAGIC.len());
        let version = header.get_u32();
        if version != VERSION {
            return Err(Damaged {
                offset: 8,
                what: format!("version {version} is of a later Basalt; this one knows 1"),
            });
        }
        let (zxid_limit, count) = (header.get_i64(), header.get_u32());
        if !(0..=MAX_ZXID_LIMIT).contains(&zxid_limit) {
            return Err(damaged(12, "an impossible transaction id"));
        }
        let mut nodes = Vec::new();
        let mut at = HEADER_BYTES + CHECKSUM_BYTES;
        for _ in 0..count {
            let cut = || damaged(at, "the file ends in a record");
            let mut record = bytes.slice(at..);
            if record.len() < 8 {
                return Err(cut());
            }
            let (len, sum) = (record.get_u32() as usize, record.get_u32());
            let body = record.get(..len).ok_or_else(cut)?;
            if crc32c::crc32c(body) != sum {
                return Err(damaged(at, "the record's checksum is wrong"));
            }
            let node = decode_node(record.slice(..len)).ok_or_else(|| damaged(at, "the record is no node"))?;
            let last = node.stat.czxid.max(node.stat.mzxid).max(node.stat.pzxid);
            if last > zxid_limit {
                return Err(damaged(at, "a transaction id above the file's limit"));
            }
            nodes.push(node);
            at += 8 + len;
        }
        if at != bytes.len() {
            return Err(damaged(at, "there are bytes behind the last record"));
        }
        let kept = Kept { zxid_limit, nodes };
        // Whether they are a tree is said with the place, too.
        kept.tree().map_err(|(number, what)| {
            let lengths = kept.nodes[..number].iter().map(|node| {
                let mut body = BytesMut::new();
                encode_node(node, &mut body);
                8 + body.len()
            });
            damaged(HEADER_BYTES + CHECKSUM_BYTES + lengths.sum::<usize>(), what)
        })?;
        Ok(kept)
    }

    /// The nodes as a tree; which is in the way, and why.
    fn tree(&self) -> Result<Tree, (usize, &'static str)> {
        let mut tree = Tree::new();
        for (number, node) in self.nodes.iter().enumerate() {
            tree.restore(node).map_err(|what| (number, what))?;
        }
        Ok(tree)
    }
}

fn encode_node(node: &KeptNode, out: &mut BytesMut) {
    out.put_u8(if node.is_derived { DERIVED } else { USERS });
    out.put_string(&node.path);
    out.put_buffer(&node.data);
    let Stat { czxid, mzxid, pzxid, ctime, mtime, version, aversion, .. } = node.stat;
    [czxid, mzxid, pzxid, ctime, mtime].into_iter().for_each(|number| out.put_i64(number));
    [version, node.children_made, aversion].into_iter().for_each(|number| out.put_i32(number));
}

fn decode_node(mut body: Bytes) -> Option<KeptNode> {
    if body.is_empty() {
        return None;
    }
    let is_derived = match body.get_u8() {
        USERS => false,
        DERIVED => true,
        _ => return None,
    };
    let mut read = JuteReader::new(body);
    let mut node = || -> Result<KeptNode, Malformed> {
        let path = read.string()?.into_boxed_str();
        // A copy, so that the node does not keep the whole file alive.
        let data = Bytes::copy_from_slice(&read.buffer()?);
        let (czxid, mzxid, pzxid) = (read.long()?, read.long()?, read.long()?);
        let (ctime, mtime, version) = (read.long()?, read.long()?, read.int()?);
        let (children_made, aversion) = (read.int()?, read.int()?);
        let stat = Stat { czxid, mzxid, pzxid, ctime, mtime, version, aversion, ..Stat::default() };
        Ok(KeptNode { path, is_derived, data, stat, children_made })
    };
    let node = node().ok()?;
    let is_whole = read.is_empty() && (node.data.is_empty() || !is_derived);
    is_whole.then_some(node)
}

/// What [`TreeHandle::next_to_keep`] hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToKeep {
    /// What is to be made durable.
    pub kept: Kept,
    up_to: i64,
}

impl TreeHandle {
    /// Puts the nodes of an earlier life back, before anybody is served. From now on users' nodes are kept: what tells of them waits until
    /// they are durable.
    ///
    /// # Errors
    /// Nodes that are no tree, by their number.
    pub fn restore(&self, kept: &Kept) -> Result<(), Damaged> {
        let mut state = self.shared.lock();
        for (number, node) in kept.nodes.iter().enumerate() {
            let damaged = |what: &str| Damaged { offset: 0, what: format!("node {number}: {what}") };
            state.tree.restore(node).map_err(damaged)?;
        }
        state.begin_above(kept.zxid_limit);
        state.keeping = Some(Keeping { zxid_limit: kept.zxid_limit, is_failing: false });
        // Ids must be set aside before the first change; what waits for that waits for the first write.
        self.shared.durable.send_replace(state.zxid());
        Ok(())
    }

    /// What is to be made durable now, as soon as there is something: users' changes, or more transaction ids.
    pub async fn next_to_keep(&self) -> ToKeep {
        let mut changes = self.shared.lock().changes();
        loop {
            changes.mark_unchanged();
            if let Some(to_keep) = self.to_keep_now() {
                return to_keep;
            }
            if changes.changed().await.is_err() {
                // The tree outlives its handles, so this is not reached while there is a handle.
                std::future::pending::<()>().await;
            }
        }
    }

    /// As [`TreeHandle::next_to_keep`]; `None` when there is nothing.
    pub fn to_keep_now(&self) -> Option<ToKeep> {
        let state = self.shared.lock();
        let limit = state.keeping.as_ref()?.zxid_limit;
        let durable = *self.shared.durable.borrow();
        let up_to = state.zxid();
        let needs_ids = up_to > limit - ZXID_RESERVE / 2;
        (state.tree.kept_change() > durable || needs_ids).then(|| {
            let zxid_limit = up_to.saturating_add(ZXID_RESERVE).min(MAX_ZXID_LIMIT);
            ToKeep { kept: Kept { zxid_limit, nodes: state.tree.kept_nodes() }, up_to }
        })
    }

    /// This is durable: what waited for it may leave.
    pub fn is_kept(&self, to_keep: &ToKeep) {
        if let Some(keeping) = &mut self.shared.lock().keeping {
            *keeping = Keeping { zxid_limit: to_keep.kept.zxid_limit, is_failing: false };
        }
        self.shared.durable.send_replace(to_keep.up_to);
    }

    /// It could not be made durable: until it can, no user's change is taken.
    pub fn is_not_kept(&self) {
        if let Some(keeping) = &mut self.shared.lock().keeping {
            keeping.is_failing = true;
        }
    }

    /// Makes a node as a user does, without a connection. Nobody waits until it is durable.
    ///
    /// # Errors
    /// As a user is told.
    pub fn create_for_user(&self, path: &str, data: Bytes, mode: CreateMode) -> Result<String, TreeError> {
        let now_ms = self.shared.clock.now_ms().0;
        self.shared.lock().create_for_user(path, data, mode, now_ms).map(|(path, _)| path)
    }

    /// Replaces a node's data as a user does.
    ///
    /// # Errors
    /// As a user is told.
    pub fn set_for_user(&self, path: &str, data: Bytes) -> Result<Stat, TreeError> {
        let now_ms = self.shared.clock.now_ms().0;
        self.shared.lock().set_data_for_user(path, data, -1, now_ms)
    }

    /// Deletes a node as a user does.
    ///
    /// # Errors
    /// As a user is told.
    pub fn delete_for_user(&self, path: &str) -> Result<(), TreeError> {
        self.shared.lock().delete_for_user(path, -1)
    }

    /// The last transaction's id.
    pub fn last_zxid(&self) -> i64 {
        self.shared.lock().zxid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ManualClock, Rng};
    use std::sync::Arc;

    const PERSISTENT: CreateMode = CreateMode::PERSISTENT;
    const SEQUENTIAL: CreateMode = CreateMode { ephemeral_owner: 0, sequential: true };

    fn life(now_ms: i64, kept: &Kept) -> TreeHandle {
        let tree = TreeHandle::unserved(Arc::new(ManualClock::new(now_ms)), Arc::new(Rng::seeded(1)));
        tree.restore(kept).expect("a tree");
        tree
    }

    /// Writes what there is to write; what a restart reads.
    fn written(tree: &TreeHandle) -> Kept {
        let to_keep = tree.to_keep_now().expect("something to keep");
        tree.is_kept(&to_keep);
        Kept::decode(&to_keep.kept.encode()).expect("what was written")
    }

    #[test]
    fn users_nodes_and_what_is_known_of_them_outlive_a_restart_and_ephemeral_and_derived_ones_do_not() {
        let tree = life(1_000_000, &Kept::default());
        tree.publish("/hbase/table/t", Bytes::from_static(b"derived"), false).expect("a path");
        tree.create_for_user("/app", Bytes::from_static(b"1"), PERSISTENT).expect("made");
        tree.set_for_user("/app", Bytes::from_static(b"22")).expect("set");
        tree.create_for_user("/app/n-", Bytes::new(), SEQUENTIAL).expect("made");
        tree.delete_for_user("/app/n-0000000000").expect("deleted");
        let fleeting = CreateMode { ephemeral_owner: 9, sequential: true };
        assert_eq!(tree.create_for_user("/app/e-", Bytes::new(), fleeting), Ok("/app/e-0000000001".into()));
        assert_eq!(
            tree.create_for_user("/hbase/table/e-", Bytes::new(), fleeting),
            Ok("/hbase/table/e-0000000001".into())
        );
        tree.create_for_user("/hbase/table/users", Bytes::from_static(b"u"), PERSISTENT).expect("made");
        let before = tree.stat("/app").expect("there");
        let kept = written(&tree);
        assert_eq!(tree.to_keep_now(), None, "all is kept");
        // The clock has gone back; ids have not.
        let again = life(1, &kept);
        assert!(again.last_zxid() > tree.last_zxid());
        let after = again.stat("/app").expect("there");
        // One child less: the ephemeral one has gone, which counts as its deletion.
        assert_eq!(after, Stat { num_children: 0, cversion: before.cversion + 1, ..before });
        assert_eq!(again.get("/app").as_deref(), Ok(&b"22"[..]));
        assert_eq!(again.create_for_user("/app/n-", Bytes::new(), SEQUENTIAL), Ok("/app/n-0000000002".into()));
        assert_eq!(again.get("/hbase/table/t"), Err(TreeError::NoNode), "the server makes it anew");
        assert_eq!(again.get("/hbase/table/users").as_deref(), Ok(&b"u"[..]));
        assert_eq!(
            again.create_for_user("/hbase/table/e-", Bytes::new(), fleeting),
            Ok("/hbase/table/e-0000000003".into())
        );
    }

    #[test]
    fn what_the_server_publishes_is_the_servers_and_what_it_deletes_stays_deleted() {
        let tree = life(1_000_000, &Kept::default());
        for path in ["/peers", "/peers/1", "/peers/2"] {
            tree.create_for_user(path, Bytes::from_static(b"user"), PERSISTENT).expect("made");
        }
        tree.publish("/peers/1", Bytes::from_static(b"server"), false).expect("a path");
        tree.delete("/peers/2").expect("deleted");
        let again = life(1_000_000, &written(&tree));
        assert_eq!(again.get("/peers/1").as_deref(), Ok(&b""[..]), "the server publishes it again");
        assert_eq!(again.get("/peers/2"), Err(TreeError::NoNode));
    }

    #[test]
    fn ids_are_set_aside_before_they_are_used_up() {
        let tree = life(1_000_000, &Kept::default());
        // Nothing is kept yet, and the ids of this life are not set aside.
        let first = written(&tree);
        assert!(first.nodes.is_empty());
        assert!(first.zxid_limit >= tree.last_zxid() + ZXID_RESERVE / 2);
        assert_eq!(tree.to_keep_now(), None);
        tree.shared.lock().begin_above(first.zxid_limit - ZXID_RESERVE / 2);
        tree.shared.lock().note_transaction();
        assert!(written(&tree).zxid_limit > first.zxid_limit);
    }

    #[test]
    fn no_damage_is_read_as_something_else() {
        let tree = life(1_000_000, &Kept::default());
        tree.create_for_user("/a", Bytes::from_static(b"data"), PERSISTENT).expect("made");
        tree.create_for_user("/a/b", Bytes::from_static(b"more"), PERSISTENT).expect("made");
        let kept = written(&tree);
        let bytes = kept.encode();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= 1 << bit;
                let found = Kept::decode(&Bytes::from(damaged)).expect_err("a flipped bit");
                assert!(found.offset <= at, "{found} for a bit of byte {at}");
            }
            let cut = Kept::decode(&bytes.slice(..at)).expect_err("a cut file");
            assert!(cut.offset <= at, "{cut}");
        }
        assert!(Kept::decode(&Bytes::from([&bytes[..], b"x"].concat())).is_err());
        // Whole records that are no tree.
        let wrong = |change: &dyn Fn(&mut Kept)| {
            let mut kept = kept.clone();
            change(&mut kept);
            Kept::decode(&kept.encode()).expect_err("no tree").to_string()
        };
        let header = HEADER_BYTES + CHECKSUM_BYTES;
        assert_eq!(wrong(&|kept| drop(kept.nodes.remove(0))), format!("at byte {header}: its parent is not before it"));
        assert!(wrong(&|kept| kept.nodes[2].path = "/a".into()).ends_with("its path is there twice"));
        assert!(wrong(&|kept| kept.nodes[2].path = "/a/../b".into()).ends_with("its path is none"));
        assert!(
            wrong(&|kept| kept.nodes[2].stat.mzxid = i64::MAX).ends_with("a transaction id above the file's limit")
        );
        assert!(wrong(&|kept| kept.zxid_limit = -1).ends_with("an impossible transaction id"));
    }

    #[test]
    fn what_is_kept_is_bounded_and_room_comes_back() {
        let tree = life(1_000_000, &Kept::default());
        let big = Bytes::from(vec![0; 1 << 20]);
        let mut made = 0;
        let refused = loop {
            match tree.create_for_user(&format!("/n{made}"), big.clone(), PERSISTENT) {
                Ok(_) => made += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((refused, made), (TreeError::SystemError, 7));
        assert!(tree.set_for_user("/n0", Bytes::from(vec![0; 2 << 20])).is_err());
        assert!(written(&tree).encode().len() <= crate::tree::MAX_KEPT_BYTES);
        tree.delete_for_user("/n0").expect("deleted");
        tree.create_for_user("/n0", big, PERSISTENT).expect("room again");
        // Ephemeral ones are not kept, and the server's own need no room there.
        let fleeting = CreateMode { ephemeral_owner: 9, sequential: false };
        tree.create_for_user("/e", Bytes::from(vec![0; 2 << 20]), fleeting).expect("not kept");
        tree.publish("/derived", Bytes::from(vec![0; 2 << 20]), false).expect("not kept");
    }

    #[test]
    fn nothing_more_is_taken_while_nothing_can_be_kept() {
        let tree = life(1_000_000, &Kept::default());
        tree.create_for_user("/a", Bytes::new(), PERSISTENT).expect("made");
        tree.is_not_kept();
        assert_eq!(tree.create_for_user("/b", Bytes::new(), PERSISTENT), Err(TreeError::SystemError));
        assert_eq!(tree.set_for_user("/a", Bytes::new()), Err(TreeError::SystemError));
        assert_eq!(tree.delete_for_user("/a"), Err(TreeError::SystemError));
        written(&tree);
        tree.create_for_user("/b", Bytes::new(), PERSISTENT).expect("made");
    }
}
