//! Reads nodes of HBase out of ZooKeeper: a session of one's own for each look, no watches. Follows:
//! `ReadOnlyZKClient`, `RecoverableZooKeeper#removeMetaData`.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use coordination::jute::{JutePut, JuteReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Replies longer than this are not HBase's nodes.
const MAX_FRAME_BYTES: u32 = 4 << 20;
const OP_GET_DATA: i32 = 4;
const OP_CLOSE: i32 = -11;
const NO_NODE: i32 = -101;

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// A session with one member of the quorum.
pub(crate) struct Session {
    stream: TcpStream,
    next_xid: i32,
}

impl Session {
    /// Opens a session at `address`.
    pub(crate) async fn open(address: &str) -> io::Result<Session> {
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

    /// The payload of the node at `path` (without HBase's prefix), or `None` when there is no such node.
    pub(crate) async fn data(&mut self, path: &str) -> io::Result<Option<Bytes>> {
        let mut body = BytesMut::new();
        body.put_i32(self.next_xid);
        self.next_xid += 1;
        body.put_i32(OP_GET_DATA);
        body.put_string(path);
        body.put_boolean(false);
        write_frame(&mut self.stream, &body).await?;
        let mut reply = JuteReader::new(read_frame(&mut self.stream).await?);
        let read = (|| {
            reply.int()?;
            reply.long()?;
            match reply.int()? {
                0 => reply.buffer().map(|data| Ok(Some(data))),
                NO_NODE => Ok(Ok(None)),
                code => Ok(Err(code)),
            }
        })();
        match read {
            Ok(Ok(data)) => Ok(data.map(without_metadata)),
            Ok(Err(code)) => Err(invalid(format!("ZooKeeper answers {code} to a look at {path}"))),
            Err(malformed) => Err(invalid(malformed.to_string())),
        }
    }

    /// Ends the session.
    pub(crate) async fn close(mut self) {
        let mut body = BytesMut::new();
        body.put_i32(self.next_xid);
        body.put_i32(OP_CLOSE);
        // The session ends with the connection anyway, a little later.
        if write_frame(&mut self.stream, &body).await.is_ok() {
            let _ = read_frame(&mut self.stream).await;
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
