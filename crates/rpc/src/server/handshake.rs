//! The start of a connection: the preamble of six bytes and the `ConnectionHeader`.
//!
//! ```text
//! HBas 0 P    then len(4) ConnectionHeader     ordinary
//! Regist      answered with the cluster id, then closed
//! Securi      answered (here: security is off), then an ordinary preamble follows
//! ```
//! Follows `ServerRpcConnection#processPreamble`, `#processConnectionHeader`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Buf, Bytes, BytesMut};
use proto::methods::Service;
use proto::{Message, pb};

use super::Shared;
use crate::call::ConnInfo;
use crate::frame::{Front, put_frame, take_frame};
use crate::{CellCodec, Compressor, Exception, Kind};

const MAGIC: &[u8; 4] = b"HBas";
const VERSION: u8 = 0;
const AUTH_SIMPLE: u8 = 80;
const AUTH_KERBEROS: u8 = 81;
const AUTH_DIGEST: u8 = 82;
/// SASL success, then "use SIMPLE instead".
const SWITCH_TO_SIMPLE: [u8; 8] = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xa8];
/// Largest header, or SASL token that is passed over. Real ones have hundreds of bytes.
const MAX_HEADER_BYTES: u64 = 1024 * 1024;

/// How far a connection has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Waiting for six bytes.
    Preamble,
    /// A client that offered SASL has been told to use SIMPLE; its first token is still to come, unread.
    SkipToken,
    /// Waiting for the header.
    Header,
}

/// What a step led to.
pub(super) enum Step {
    /// More bytes are needed.
    Wait,
    /// Ready for calls.
    Done(Arc<ConnInfo>),
    /// A reply goes out, and the next step may be taken.
    Send(BytesMut),
    /// A reply goes out, and the connection ends.
    SendAndClose(BytesMut),
    /// The connection ends without a word.
    Close(String),
}

fn connection_error(exception: &Exception) -> BytesMut {
    let header =
        pb::ResponseHeader { call_id: Some(u32::MAX), exception: Some(exception.to_response()), cell_block_meta: None };
    let mut out = BytesMut::new();
    put_frame(&mut out, &header, None, 0);
    out
}

fn connection_reply(message: &impl Message) -> BytesMut {
    let header = pb::ResponseHeader { call_id: Some(u32::MAX), exception: None, cell_block_meta: None };
    let mut out = BytesMut::new();
    put_frame(&mut out, &header, Some(&message.encode_to_vec()), 0);
    out
}

fn refuse(kind: Kind, message: String) -> Step {
    Step::SendAndClose(connection_error(&Exception::bare(kind, message)))
}

/// Takes the next step with what has come so far.
pub(super) fn step(stage: &mut Stage, buffer: &mut BytesMut, shared: &Shared, peer: SocketAddr) -> Step {
    match stage {
        Stage::Preamble => {
            let Some(preamble) = buffer.first_chunk::<6>().copied() else { return Step::Wait };
            buffer.advance(6);
            read_preamble(stage, preamble, shared, peer)
        }
        Stage::SkipToken => match take_frame(buffer, MAX_HEADER_BYTES) {
            Front::Partial { .. } => Step::Wait,
            Front::TooLong { len } => Step::Close(format!("a SASL token of {len} bytes")),
            Front::Frame(_) => {
                *stage = Stage::Header;
                step(stage, buffer, shared, peer)
            }
        },
        Stage::Header => match take_frame(buffer, MAX_HEADER_BYTES) {
            Front::Partial { .. } => Step::Wait,
            Front::TooLong { len } => Step::Close(format!("a connection header of {len} bytes")),
            Front::Frame(frame) => read_header(frame, shared, peer),
        },
    }
}

fn read_preamble(stage: &mut Stage, preamble: [u8; 6], shared: &Shared, peer: SocketAddr) -> Step {
    if preamble == *b"Regist"
        && let Some(cluster_id) = shared.handler.cluster_id()
    {
        return Step::SendAndClose(connection_reply(&pb::GetConnectionRegistryResponse { cluster_id }));
    }
    if preamble == *b"Securi" {
        // Not an error for the client: it goes on without asking for the server's principal.
        let exception = Exception::bare(Kind::SecurityNotEnabled, "security is not enabled");
        return Step::Send(connection_error(&exception));
    }
    let [magic @ .., version, auth] = preamble;
    if magic != *MAGIC {
        let received = cell::print::to_string_binary(&magic);
        // A client without a cluster id knows an older server by this beginning.
        let message = format!("Expected HEADER=HBas but received HEADER={received} from {peer}");
        return refuse(Kind::FatalConnection, message);
    }
    let described = |name: &str| {
        format!("serverVersion={VERSION}, clientVersion={version}, authMethod={auth}, authName={name} from {peer}")
    };
    if version != VERSION {
        return refuse(Kind::WrongVersion, described("unknown"));
    }
    match auth {
        AUTH_SIMPLE => {
            *stage = Stage::Header;
            Step::Send(BytesMut::new())
        }
        AUTH_KERBEROS | AUTH_DIGEST => {
            *stage = Stage::SkipToken;
            shared.counters.authentication_fallbacks.fetch_add(1, Ordering::Relaxed);
            Step::Send(BytesMut::from(&SWITCH_TO_SIMPLE[..]))
        }
        _ => {
            shared.counters.authentication_failures.fetch_add(1, Ordering::Relaxed);
            refuse(Kind::BadAuth, described("unknown"))
        }
    }
}

fn read_header(frame: Bytes, shared: &Shared, peer: SocketAddr) -> Step {
    let header = match pb::ConnectionHeader::decode(frame) {
        Ok(header) => header,
        Err(error) => return refuse(Kind::FatalConnection, format!("cannot read the connection header: {error}")),
    };
    let name = header.service_name();
    if name.is_empty() {
        return refuse(Kind::EmptyServiceName, "the connection header names no service".to_owned());
    }
    let Some(service) = Service::from_name(name).filter(|s| shared.handler.serves(*s)) else {
        return refuse(Kind::UnknownService, name.to_owned());
    };
    let codec = match header.cell_block_codec_class() {
        "" => None,
        class => match CellCodec::from_class(class) {
            None => return refuse(Kind::UnsupportedCellCodec, class.to_owned()),
            codec => codec,
        },
    };
    let compressor = match header.cell_block_compressor_class() {
        // As HBase, which looks for a compressor only where there is a codec.
        _ if codec.is_none() => None,
        "" => None,
        class => match Compressor::from_class(class) {
            None => return refuse(Kind::UnsupportedCompressionCodec, class.to_owned()),
            compressor => compressor,
        },
    };
    let user: Arc<str> = header.user_info.as_ref().map_or("", |u| u.effective_user.as_str()).into();
    let id = shared.next_connection_id.fetch_add(1, Ordering::Relaxed);
    shared.counters.authorizations.fetch_add(1, Ordering::Relaxed);
    tracing::debug!(%peer, %user, service = service.name(), "connection");
    Step::Done(Arc::new(ConnInfo {
        id,
        peer,
        user,
        service,
        codec,
        compressor,
        version: header.version_info,
        attributes: header.attribute,
        load: std::sync::OnceLock::new(),
    }))
}
