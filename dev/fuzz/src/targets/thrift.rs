//! Messages of the Thrift gateways.

use crate::Target;
use ::thrift::protocol::{MessageKind, Protocol, Writer};
use ::thrift::v2::types::{TColumn, TScan};
use ::thrift::wire::Wire;
use bytes::Bytes;

/// Both protocols, whole and in pieces.
pub const THRIFT: Target = Target {
    name: "thrift",
    about: "a Thrift message in the binary and the compact protocol: its end, its values, and the values again when they were written",
    max_len: 2048,
    words: &["\\x80\\x01", "get", "filterString"],
    seeds,
    run: ::thrift::decode_anything,
};

fn seeds() -> Vec<Vec<u8>> {
    let column = TColumn { family: "f".into(), qualifier: Some("q".into()), timestamp: Some(7) };
    let scan = TScan { start_row: Some("a".into()), columns: Some(vec![column]), limit: Some(9), ..TScan::default() };
    let mut seeds = Vec::new();
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let mut writer = Writer::new(protocol);
        scan.write(&mut writer);
        seeds.push(Bytes::from(writer.finish()).into());
        let mut writer = Writer::new(protocol);
        writer.message("openScanner", MessageKind::Call, 1);
        scan.write_field(&mut writer, 2, &mut 0);
        writer.stop();
        seeds.push(Bytes::from(writer.finish()).into());
    }
    seeds
}
