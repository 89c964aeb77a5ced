//! What the slow log adds to a get that is neither slow nor large: what is kept of the call until it is answered, and the look at how long it took
//! and how large the answer is. An operation is a get.

use crate::Group;
use crate::measure::{Done, Session, Size};
use base::{Clock, Config, SystemClock};
use bytes::Bytes;
use proto::methods::Method;
use proto::{Message, pb};
use rpc::{AnsweredCall, CallReads, CallResult, ConnInfo, Reply};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};

pub const GROUP: Group = Group { names: &["slow_log.get"], needs_server: false, run };

/// Gets between two looks at whether time is over.
const STEP: u64 = 1000;

fn call(clock: &SystemClock) -> AnsweredCall {
    let get = pb::GetRequest {
        region: pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
            value: Bytes::from_static(b"t,,1.0123456789abcdef0123456789abcdef."),
        },
        get: pb::Get { row: Bytes::from_static(b"row"), ..pb::Get::default() },
    };
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
    AnsweredCall {
        method,
        param: Bytes::from(get.encode_to_vec()),
        conn: Arc::new(conn),
        attributes: Vec::new(),
        received_at_us: clock.monotonic_us(),
        reads: CallReads::default(),
    }
}

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let clock = Arc::new(SystemClock::default());
    let slow_log = regionserver::slow_log(&Config::default(), clock.clone());
    let call = call(&clock);
    let result: CallResult = Ok(Reply { message: Bytes::from_static(&[0; 100]), ..Reply::default() });
    session.measure(
        "slow_log.get",
        Size::Timed { most: u64::MAX, step: STEP },
        |_| Ok(()),
        |(), n| {
            for _ in 0..n {
                // The call itself goes to whoever answers it.
                let watched = black_box(call.clone());
                // However long this is measured, it is never slow.
                slow_log.answered(&watched, u64::MAX, &result);
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}
