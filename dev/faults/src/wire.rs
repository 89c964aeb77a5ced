//! A bare connection: requests in any number without waiting for replies, which may be read or left lying.

use anyhow::{Context, bail};
use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::methods::Method;
use proto::pb;
use rpc::frame::{Front, put_frame, take_delimited, take_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::remote::{Address, specifier};

/// Replies longer than this are not read.
const MAX_REPLY_BYTES: u64 = 1 << 31;

/// A regular expression that costs a backtracking engine some tenths of a millisecond for each value `aaa...`, and
/// matches none.
const COSTLY_PATTERN: &str = "(?:(?=a)(?:a|aa))+b";

/// One connection to one service.
pub struct Wire {
    stream: TcpStream,
    received: BytesMut,
    next_id: u32,
}

impl Wire {
    /// Connects to a service, cells as KeyValues and compressed as asked.
    pub async fn connect(
        address: &Address,
        service: &str,
        compressor: Option<rpc::Compressor>,
    ) -> anyhow::Result<Wire> {
        let mut stream = TcpStream::connect(address.get().context("no address")?).await?;
        stream.set_nodelay(true)?;
        let header = pb::ConnectionHeader {
            user_info: Some(pb::UserInformation { effective_user: "faults".to_owned(), real_user: None }),
            service_name: Some(service.to_owned()),
            cell_block_codec_class: Some(rpc::CellCodec::KeyValue.class().to_owned()),
            cell_block_compressor_class: compressor.map(|compressor| compressor.class().to_owned()),
            ..pb::ConnectionHeader::default()
        };
        let header = header.encode_to_vec();
        let hello = [b"HBas\0P".as_slice(), &u32::try_from(header.len())?.to_be_bytes(), &header].concat();
        stream.write_all(&hello).await?;
        Ok(Wire { stream, received: BytesMut::new(), next_id: 0 })
    }

    /// Appends a request to `out`; a timeout of 0 is none.
    pub fn request(&mut self, out: &mut BytesMut, method: Method, message: &[u8], cells: &[u8], timeout_ms: u32) {
        let header = pb::RequestHeader {
            call_id: Some(self.next_id),
            method_name: Some(method.info().name.to_owned()),
            request_param: Some(true),
            cell_block_meta: (!cells.is_empty()).then_some(pb::CellBlockMeta { length: Some(cells.len() as u32) }),
            timeout: (timeout_ms > 0).then_some(timeout_ms),
            ..pb::RequestHeader::default()
        };
        self.next_id += 1;
        put_frame(out, &header, Some(message), cells.len());
        out.extend_from_slice(cells);
    }

    /// Sends requests.
    pub async fn send(&mut self, requests: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(requests).await?)
    }

    /// Sends one request.
    pub async fn ask(&mut self, method: Method, message: &impl Message) -> anyhow::Result<()> {
        let mut out = BytesMut::new();
        self.request(&mut out, method, &message.encode_to_vec(), &[], 0);
        self.send(&out).await
    }

    /// The next reply: its message, or the exception's class and text.
    pub async fn reply(&mut self) -> anyhow::Result<Result<Bytes, String>> {
        loop {
            match take_frame(&mut self.received, MAX_REPLY_BYTES) {
                Front::Frame(mut frame) => {
                    let header = pb::ResponseHeader::decode(take_delimited(&mut frame)?)?;
                    if let Some(exception) = header.exception {
                        let said = exception.stack_trace().lines().next().unwrap_or_default().to_owned();
                        return Ok(Err(format!("{}: {said}", exception.exception_class_name())));
                    }
                    return Ok(Ok(take_delimited(&mut frame)?));
                }
                Front::TooLong { .. } => bail!("a reply of more than {MAX_REPLY_BYTES} bytes"),
                Front::Partial { .. } => {
                    self.received.reserve(64 << 10);
                    if self.stream.read_buf(&mut self.received).await? == 0 {
                        bail!("the server closed the connection");
                    }
                }
            }
        }
    }
}

/// A scan of a region that answers all it finds at once, and does not go on after that.
pub fn whole_scan(region: &[u8], filter: Option<pb::Filter>) -> pb::ScanRequest {
    pb::ScanRequest {
        region: Some(specifier(region)),
        scan: Some(pb::Scan { filter, ..pb::Scan::default() }),
        number_of_rows: Some(100_000),
        close_scanner: Some(true),
        ..pb::ScanRequest::default()
    }
}

/// A filter on values that passes none, at a price for each value of `a`s.
pub fn costly_filter() -> pb::Filter {
    let regex = pb::RegexStringComparator {
        pattern: COSTLY_PATTERN.to_owned(),
        pattern_flags: 0,
        charset: "UTF-8".to_owned(),
        engine: Some("JAVA".to_owned()),
    };
    value_filter("RegexStringComparator", &regex)
}

/// A filter on values that passes none, at the price of a comparison.
pub fn cheap_filter() -> pb::Filter {
    value_filter("SubstringComparator", &pb::SubstringComparator { substr: "no such thing".to_owned() })
}

fn value_filter(comparator: &str, message: &impl Message) -> pb::Filter {
    let comparator = pb::Comparator {
        name: format!("org.apache.hadoop.hbase.filter.{comparator}"),
        serialized_comparator: Some(message.encode_to_vec().into()),
    };
    let filter = pb::ValueFilter {
        compare_filter: pb::CompareFilter { compare_op: pb::CompareType::Equal as i32, comparator: Some(comparator) },
    };
    pb::Filter {
        name: "org.apache.hadoop.hbase.filter.ValueFilter".to_owned(),
        serialized_filter: Some(filter.encode_to_vec().into()),
    }
}

/// A mutation of one row whose cells are in the message. Values are of the family `f`.
pub fn mutation(
    kind: pb::mutation_proto::MutationType,
    row: &[u8],
    columns: impl Iterator<Item = (Bytes, Bytes)>,
    durability: pb::mutation_proto::Durability,
) -> pb::MutationProto {
    use pb::mutation_proto::ColumnValue;
    use pb::mutation_proto::column_value::QualifierValue;
    let value = |(qualifier, value)| QualifierValue {
        qualifier: Some(qualifier),
        value: Some(value),
        ..QualifierValue::default()
    };
    pb::MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(kind as i32),
        column_value: vec![ColumnValue { family: "f".into(), qualifier_value: columns.map(value).collect() }],
        durability: Some(durability as i32),
        ..pb::MutationProto::default()
    }
}

/// A request with one mutation.
pub fn mutate(region: &[u8], mutation: pb::MutationProto) -> pb::MutateRequest {
    pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() }
}
