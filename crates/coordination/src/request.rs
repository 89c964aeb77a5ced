//! One request: read, done, answered.

use crate::jute::{JutePut, JuteReader, Malformed};
use crate::state::{EventType, State, WatchKind};
use crate::tree::{CreateMode, STAT_BYTES, Stat, TreeError};
use bytes::{BufMut, Bytes, BytesMut};

/// Operations by ZooKeeper's numbers.
mod op {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const GET_ACL: i32 = 6;
    pub const SET_ACL: i32 = 7;
    pub const GET_CHILDREN: i32 = 8;
    pub const SYNC: i32 = 9;
    pub const PING: i32 = 11;
    pub const GET_CHILDREN2: i32 = 12;
    pub const CREATE2: i32 = 15;
    pub const AUTH: i32 = 100;
    pub const SET_WATCHES: i32 = 101;
    pub const SET_WATCHES2: i32 = 105;
    pub const CLOSE_SESSION: i32 = -11;
}

const FLAG_EPHEMERAL: i32 = 1;
const FLAG_SEQUENTIAL: i32 = 2;
/// Reading, writing, creating, deleting, administering.
const PERMISSION_ALL: i32 = 31;
/// Bytes of the frame length and the reply header.
const REPLY_HEADER_BYTES: usize = 4 + 16;

/// Who asks, and when.
pub(crate) struct Caller {
    pub connection: u64,
    pub session: i64,
    pub now_ms: i64,
}

/// Whether the connection goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Close,
}

/// Does what `frame` asks and appends the whole reply frame to `out`.
pub(crate) fn handle(state: &mut State, caller: &Caller, frame: Bytes, out: &mut BytesMut) -> Result<Flow, Malformed> {
    let mut request = JuteReader::new(frame);
    let (xid, op) = (request.int()?, request.int()?);
    let mut body = BytesMut::new();
    state.depends_on = 0;
    let done = run(state, caller, op, &mut request, &mut body)?;
    if done == Err(TreeError::SystemError) {
        // It tells of no node.
        state.depends_on = 0;
    }
    let code = done.err().map_or(0, TreeError::code);
    let body = if code == 0 { &body[..] } else { &[] };
    out.reserve(REPLY_HEADER_BYTES + body.len());
    out.put_u32((16 + body.len()) as u32);
    out.put_i32(xid);
    out.put_i64(state.zxid());
    out.put_i32(code);
    out.put_slice(body);
    let ends = op == op::CLOSE_SESSION || done == Err(TreeError::AuthFailed);
    Ok(if ends { Flow::Close } else { Flow::Continue })
}

type Done = Result<(), TreeError>;

fn run(
    state: &mut State,
    caller: &Caller,
    op: i32,
    request: &mut JuteReader,
    body: &mut BytesMut,
) -> Result<Done, Malformed> {
    Ok(match op {
        op::PING => Ok(()),
        op::EXISTS => {
            let (path, watch) = (request.string()?, request.boolean()?);
            state.depend_on(&path);
            let stat = state.tree.stat(&path);
            if watch && matches!(stat, Ok(_) | Err(TreeError::NoNode)) {
                state.watch(caller.connection, WatchKind::Data, &path);
            }
            stat.map(|stat| stat.write(body))
        }
        op::GET_DATA => {
            let (path, watch) = (request.string()?, request.boolean()?);
            state.depend_on(&path);
            state.tree.data(&path).map(|(data, stat)| {
                body.reserve(4 + data.len() + STAT_BYTES);
                body.put_buffer(&data);
                stat.write(body);
                if watch {
                    state.watch(caller.connection, WatchKind::Data, &path);
                }
            })
        }
        op::GET_CHILDREN | op::GET_CHILDREN2 => {
            let (path, watch) = (request.string()?, request.boolean()?);
            state.depend_on(&path);
            let found = state.tree.children(&path).map(|(names, stat)| {
                body.put_u32(u32::try_from(names.len()).unwrap_or(u32::MAX));
                names.for_each(|name| body.put_string(name));
                if op == op::GET_CHILDREN2 {
                    stat.write(body);
                }
            });
            if watch && found.is_ok() {
                state.watch(caller.connection, WatchKind::Children, &path);
            }
            found
        }
        op::SYNC => {
            let path = request.string()?;
            crate::tree::check_path(&path).map(|()| body.put_string(&path))
        }
        op::CREATE | op::CREATE2 => create(state, caller, op, request, body)?,
        op::DELETE => {
            let (path, version) = (request.string()?, request.int()?);
            let done = state.delete_for_user(&path, version);
            state.depend_on_change(&path);
            done
        }
        op::SET_DATA => {
            let (path, data, version) = (request.string()?, request.buffer()?, request.int()?);
            // A copy, so that the node does not keep the whole read buffer alive.
            let data = Bytes::copy_from_slice(&data);
            let done = state.set_data_for_user(&path, data, version, caller.now_ms).map(|stat| stat.write(body));
            state.depend_on_change(&path);
            done
        }
        op::GET_ACL => {
            let path = request.string()?;
            state.depend_on(&path);
            state.tree.stat(&path).map(|stat| {
                body.put_u32(1);
                body.put_i32(PERMISSION_ALL);
                body.put_string("world");
                body.put_string("anyone");
                stat.write(body);
            })
        }
        op::SET_ACL => {
            let (path, acl, version) = (request.string()?, read_acl(request)?, request.int()?);
            let done = acl.and_then(|()| state.set_acl(&path, version)).map(|stat: Stat| stat.write(body));
            state.depend_on_change(&path);
            done
        }
        op::SET_WATCHES | op::SET_WATCHES2 => set_watches(state, caller, op, request)?,
        op::AUTH => {
            let (_type, scheme, _proof) = (request.int()?, request.string()?, request.buffer()?);
            // A digest proves nothing here, for no node asks for one; it is taken as ZooKeeper takes it.
            if matches!(scheme.as_str(), "digest" | "ip" | "world") { Ok(()) } else { Err(TreeError::AuthFailed) }
        }
        op::CLOSE_SESSION => {
            // The reply still has to leave: the session ends without cutting the connection off.
            state.sessions.detach(caller.session, caller.connection);
            state.end_session(caller.session);
            Ok(())
        }
        _ => Err(TreeError::Unimplemented),
    })
}

/// Only `world:anyone` with every permission can be kept.
fn read_acl(request: &mut JuteReader) -> Result<Done, Malformed> {
    let acl = request.vector(|r| Ok((r.int()?, r.string()?, r.string()?)))?;
    let open = |(permissions, scheme, id): &(i32, String, String)| {
        *permissions == PERMISSION_ALL && scheme == "world" && id == "anyone"
    };
    Ok(if !acl.is_empty() && acl.iter().all(open) { Ok(()) } else { Err(TreeError::InvalidAcl) })
}

fn create(
    state: &mut State,
    caller: &Caller,
    op: i32,
    request: &mut JuteReader,
    body: &mut BytesMut,
) -> Result<Done, Malformed> {
    let (path, data) = (request.string()?, request.buffer()?);
    let acl = read_acl(request)?;
    let flags = request.int()?;
    if flags & !(FLAG_EPHEMERAL | FLAG_SEQUENTIAL) != 0 {
        return Ok(Err(TreeError::Unimplemented));
    }
    let ephemeral_owner = if flags & FLAG_EPHEMERAL == 0 { 0 } else { caller.session };
    let mode = CreateMode { ephemeral_owner, sequential: flags & FLAG_SEQUENTIAL != 0 };
    let data = Bytes::copy_from_slice(&data);
    let made = acl.and_then(|()| state.create_for_user(&path, data, mode, caller.now_ms));
    state.depend_on_change(made.as_ref().map_or(&path, |(made, _)| made));
    Ok(made.map(|(path, stat)| {
        body.put_string(&path);
        if op == op::CREATE2 {
            stat.write(body);
        }
    }))
}

/// A client that came back sets its watches anew; what happened meanwhile is told at once.
fn set_watches(state: &mut State, caller: &Caller, op: i32, request: &mut JuteReader) -> Result<Done, Malformed> {
    let seen_zxid = request.long()?;
    let data = request.vector(JuteReader::string)?;
    let exists = request.vector(JuteReader::string)?;
    let children = request.vector(JuteReader::string)?;
    if op == op::SET_WATCHES2 {
        let persistent = request.vector(JuteReader::string)?;
        let recursive = request.vector(JuteReader::string)?;
        if !persistent.is_empty() || !recursive.is_empty() {
            return Ok(Err(TreeError::Unimplemented));
        }
    }
    for path in data.iter().chain(&exists).chain(&children) {
        state.depend_on(path);
    }
    for path in data {
        match state.tree.stat(&path) {
            Err(_) => state.send_event(caller.connection, EventType::Deleted, &path),
            Ok(stat) if stat.mzxid > seen_zxid => {
                state.send_event(caller.connection, EventType::DataChanged, &path);
            }
            Ok(_) => state.watch(caller.connection, WatchKind::Data, &path),
        }
    }
    for path in exists {
        match state.tree.stat(&path) {
            Ok(_) => state.send_event(caller.connection, EventType::Created, &path),
            Err(_) => state.watch(caller.connection, WatchKind::Data, &path),
        }
    }
    for path in children {
        match state.tree.stat(&path) {
            Err(_) => state.send_event(caller.connection, EventType::Deleted, &path),
            Ok(stat) if stat.pzxid > seen_zxid => {
                state.send_event(caller.connection, EventType::ChildrenChanged, &path);
            }
            Ok(_) => state.watch(caller.connection, WatchKind::Children, &path),
        }
    }
    Ok(Ok(()))
}
