//! Nodes of ZooKeeper: read, listed, made, changed and deleted in a session of one's own, without watches. Follows: `ReadOnlyZKClient`,
//! `RecoverableZooKeeper#removeMetaData`, `ZooKeeperMain`.

use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use coordination::jute::{JutePut, JuteReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Replies longer than this are not HBase's nodes.
const MAX_FRAME_BYTES: u32 = 4 << 20;
/// Operations by ZooKeeper's numbers.
mod op {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const GET_CHILDREN: i32 = 8;
    pub const CLOSE: i32 = -11;
}
const NO_NODE: i32 = -101;
/// Every permission, for everybody.
const OPEN_ACL: (i32, &str, &str) = (31, "world", "anyone");

/// What ZooKeeper knows about a node besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStat {
    /// Transaction that made it.
    pub created_zxid: i64,
    /// Transaction that changed its data last.
    pub modified_zxid: i64,
    /// When it was made, in ms since 1970.
    pub created_ms: i64,
    /// When its data was changed last.
    pub modified_ms: i64,
    /// How often its data was changed.
    pub version: i32,
    /// How often its children were.
    pub children_version: i32,
    /// How often its permissions were.
    pub acl_version: i32,
    /// The session that it ends with; 0 where it stays.
    pub ephemeral_owner: i64,
    /// Bytes of its data.
    pub data_bytes: i32,
    /// Nodes below it.
    pub children: i32,
    /// Transaction that changed its children last.
    pub children_zxid: i64,
}

impl NodeStat {
    fn read(reply: &mut JuteReader) -> Result<NodeStat, coordination::jute::Malformed> {
        Ok(NodeStat {
            created_zxid: reply.long()?,
            modified_zxid: reply.long()?,
            created_ms: reply.long()?,
            modified_ms: reply.long()?,
            version: reply.int()?,
            children_version: reply.int()?,
            acl_version: reply.int()?,
            ephemeral_owner: reply.long()?,
            data_bytes: reply.int()?,
            children: reply.int()?,
            children_zxid: reply.long()?,
        })
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// What ZooKeeper says to a code that is not zero.
fn refusal(code: i32, path: &str) -> io::Error {
    let (kind, what) = match code {
        NO_NODE => (io::ErrorKind::NotFound, "there is no such node"),
        -110 => (io::ErrorKind::AlreadyExists, "there is such a node already"),
        -111 => (io::ErrorKind::DirectoryNotEmpty, "it has nodes below it"),
        -103 => (io::ErrorKind::InvalidInput, "its version is another"),
        -108 => (io::ErrorKind::InvalidInput, "a node that ends with its session has none below it"),
        -102 => (io::ErrorKind::PermissionDenied, "permission is denied"),
        -8 => (io::ErrorKind::InvalidInput, "this is no path"),
        _ => return io::Error::other(format!("ZooKeeper refuses {path}: code {code}")),
    };
    io::Error::new(kind, format!("ZooKeeper refuses {path}: {what} ({code})"))
}

/// A session with one member of the quorum. It ends with [`Session::close`], or some time after its connection.
pub struct Session {
    stream: TcpStream,
    next_xid: i32,
}

impl Session {
    /// Opens a session at `address`, `host:port`.
    ///
    /// # Errors
    /// Nobody answers there, or no ZooKeeper does.
    pub async fn open(address: &str) -> io::Result<Session> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut body = BytesMut::new();
        body.put_i32(0); // protocol version
        body.put_i64(0); // no zxid seen
        body.put_i32(30_000); // session timeout in ms
        body.put_i64(0); // a new session
        body.put_buffer(&[0; 16]);
        body.put_boolean(false); // not read-only
        write_frame(&mut stream, &body).await?;
        let mut reply = JuteReader::new(read_frame(&mut stream).await?);
        let granted = (|| {
            reply.int()?;
            reply.int()
        })();
        match granted {
            Ok(timeout_ms) if timeout_ms > 0 => Ok(Session { stream, next_xid: 1 }),
            Ok(_) => Err(invalid("no session was granted")),
            Err(malformed) => Err(invalid(malformed.to_string())),
        }
    }

    /// Calls an operation on `path`: what stands behind the reply's header, or the code of a refusal.
    async fn call(&mut self, op: i32, path: &str, rest: &[u8]) -> io::Result<Result<JuteReader, i32>> {
        let mut body = BytesMut::new();
        body.put_i32(self.next_xid);
        self.next_xid += 1;
        body.put_i32(op);
        body.put_string(path);
        body.put_slice(rest);
        write_frame(&mut self.stream, &body).await?;
        let mut reply = JuteReader::new(read_frame(&mut self.stream).await?);
        let header = (|| {
            reply.int()?;
            reply.long()?;
            reply.int()
        })();
        match header {
            Ok(0) => Ok(Ok(reply)),
            Ok(code) => Ok(Err(code)),
            Err(malformed) => Err(invalid(malformed.to_string())),
        }
    }

    /// The payload of the node at `path` (without HBase's prefix), or `None` when there is no such node.
    ///
    /// # Errors
    /// The connection breaks, or ZooKeeper refuses.
    pub async fn data(&mut self, path: &str) -> io::Result<Option<Bytes>> {
        Ok(self.node(path).await?.map(|(data, _)| without_metadata(data)))
    }

    /// The data of the node at `path` as they are, and what is known of it; `None` when there is no such node.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub async fn node(&mut self, path: &str) -> io::Result<Option<(Bytes, NodeStat)>> {
        match self.call(op::GET_DATA, path, &[0]).await? {
            Ok(mut reply) => {
                let read = reply.buffer().and_then(|data| Ok((data, NodeStat::read(&mut reply)?)));
                read.map(Some).map_err(|malformed| invalid(malformed.to_string()))
            }
            Err(NO_NODE) => Ok(None),
            Err(code) => Err(refusal(code, path)),
        }
    }

    /// What is known of the node at `path`; `None` when there is no such node.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub async fn stat(&mut self, path: &str) -> io::Result<Option<NodeStat>> {
        match self.call(op::EXISTS, path, &[0]).await? {
            Ok(mut reply) => NodeStat::read(&mut reply).map(Some).map_err(|malformed| invalid(malformed.to_string())),
            Err(NO_NODE) => Ok(None),
            Err(code) => Err(refusal(code, path)),
        }
    }

    /// Names of the nodes below the one at `path`, sorted; `None` when there is no such node.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub async fn children(&mut self, path: &str) -> io::Result<Option<Vec<String>>> {
        match self.call(op::GET_CHILDREN, path, &[0]).await? {
            Ok(mut reply) => {
                let names = reply.vector(JuteReader::string).map_err(|malformed| invalid(malformed.to_string()))?;
                let mut names: Vec<String> = names;
                names.sort_unstable();
                Ok(Some(names))
            }
            Err(NO_NODE) => Ok(None),
            Err(code) => Err(refusal(code, path)),
        }
    }

    /// Makes a node that everybody may read and change; its name, which ZooKeeper completes where it is `sequential`.
    ///
    /// # Errors
    /// There is one, or there is none above it; and as [`Session::data`].
    pub async fn create(&mut self, path: &str, data: &[u8], ephemeral: bool, sequential: bool) -> io::Result<String> {
        let mut rest = BytesMut::new();
        rest.put_buffer(data);
        rest.put_i32(1);
        rest.put_i32(OPEN_ACL.0);
        rest.put_string(OPEN_ACL.1);
        rest.put_string(OPEN_ACL.2);
        rest.put_i32(i32::from(ephemeral) | i32::from(sequential) << 1);
        match self.call(op::CREATE, path, &rest).await? {
            Ok(mut reply) => reply.string().map_err(|malformed| invalid(malformed.to_string())),
            Err(code) => Err(refusal(code, path)),
        }
    }

    /// Changes a node's data, where it is of this version if one is given.
    ///
    /// # Errors
    /// There is no such node, or it is of another version; and as [`Session::data`].
    pub async fn set_data(&mut self, path: &str, data: &[u8], version: Option<i32>) -> io::Result<()> {
        let mut rest = BytesMut::new();
        rest.put_buffer(data);
        rest.put_i32(version.unwrap_or(-1));
        self.call(op::SET_DATA, path, &rest).await?.map(|_| ()).map_err(|code| refusal(code, path))
    }

    /// Deletes a node that has none below it, where it is of this version if one is given.
    ///
    /// # Errors
    /// There is no such node, it has others below it, or it is of another version; and as [`Session::data`].
    pub async fn delete(&mut self, path: &str, version: Option<i32>) -> io::Result<()> {
        let version = version.unwrap_or(-1).to_be_bytes();
        self.call(op::DELETE, path, &version).await?.map(|_| ()).map_err(|code| refusal(code, path))
    }

    /// Ends the session.
    pub async fn close(mut self) {
        let mut body = BytesMut::new();
        body.put_i32(self.next_xid);
        body.put_i32(op::CLOSE);
        // The session ends with the connection anyway, a little later.
        if write_frame(&mut self.stream, &body).await.is_ok() {
            let _ = read_frame(&mut self.stream).await;
        }
    }
}

/// What a member of the quorum answers to a word of four letters, such as `stat`.
///
/// # Errors
/// Nobody answers there within `patience`.
pub async fn four_letter_word(address: &str, word: &str, patience: Duration) -> io::Result<String> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(word.as_bytes()).await?;
        let mut answer = Vec::new();
        (&mut stream).take(u64::from(MAX_FRAME_BYTES)).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    match tokio::time::timeout(patience, ask).await {
        Ok(answer) => answer,
        Err(_) => {
            let why = format!("{address}: no answer within {} ms", patience.as_millis());
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
    }
}

/// What stands behind `FF len(4) id`.
fn without_metadata(mut data: Bytes) -> Bytes {
    let whole = data.clone();
    if data.first() != Some(&0xFF) {
        return whole;
    }
    data.advance(1);
    let Some(len) = data.first_chunk::<4>().map(|len| u32::from_be_bytes(*len) as usize) else { return whole };
    if data.len() < 4 + len { whole } else { data.slice(4 + len..) }
}

async fn write_frame(stream: &mut TcpStream, body: &[u8]) -> io::Result<()> {
    let mut frame = BytesMut::with_capacity(4 + body.len());
    frame.put_buffer(body);
    stream.write_all(&frame).await
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Bytes> {
    let len = stream.read_u32().await?;
    if len > MAX_FRAME_BYTES {
        return Err(invalid(format!("a reply of {len} bytes")));
    }
    let mut body = vec![0; len as usize];
    stream.read_exact(&mut body).await?;
    Ok(Bytes::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_taken_off_and_odd_data_is_left_alone() {
        let data = Bytes::from_static(b"\xff\0\0\0\x03abcPBUF");
        assert_eq!(without_metadata(data), "PBUF");
        for odd in [&b"PBUF"[..], b"", b"\xff\0", b"\xff\0\0\0\x09abc", b"\xff\xff\xff\xff\xff"] {
            assert_eq!(without_metadata(Bytes::copy_from_slice(odd)), odd);
        }
    }
}
