//! What the slow log adds to a get that is neither slow nor large: its message's handle kept until it is answered, and the look at how long it
//! took and how large the answer is. An operation is a get.

use crate::Group;
use crate::measure::{Done, Session, Size};
use base::{Config, SystemClock};
use bytes::Bytes;
use proto::methods::Method;
use proto::{Message, pb};
use rpc::{AnsweredCall, CallReads, ConnInfo};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};

pub const GROUP: Group = Group { names: &["slow_log.get"], needs_server: false, run };

/// Gets between two looks at whether time is over.
const STEP: u64 = 1000;

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let slow_log = regionserver::slow_log(&Config::default(), Arc::new(SystemClock::default()));
    let get = pb::GetRequest {
        region: pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
            value: Bytes::from_static(b"t,,1.0123456789abcdef0123456789abcdef."),
        },
        get: pb::Get { row: Bytes::from_static(b"row"), ..pb::Get::default() },
    };
    let param = Bytes::from(get.encode_to_vec());
    let method = Method::ClientGet.info();
    let conn = ConnInfo {
        id: 1,
        peer: ([127, 0, 0, 1], 1).into(),
        user: Arc::from("bob"),
        service: method.service,
        codec: None,
        compressor: None,
        version: None,
        attributes: Vec::new(),
        load: OnceLock::new(),
    };
    session.measure(
        "slow_log.get",
        Size::Timed { most: u64::MAX, step: STEP },
        |_| Ok(()),
        |(), n| {
            for _ in 0..n {
                // The call itself goes to whoever answers it.
                let param = black_box(param.clone());
                let (response_bytes, reads) = (Some(100), CallReads::default());
                let call = AnsweredCall {
                    method,
                    param: &param,
                    conn: &conn,
                    attributes: &[],
                    queued_us: 0,
                    processed_us: 10,
                    response_bytes,
                    reads,
                };
                slow_log.answered(black_box(&call));
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}
