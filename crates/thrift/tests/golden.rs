//! The answers of Apache HBase's Thrift servers to two corpora of calls (`tests/golden/thrift/record.py`), and ours: results as they are on
//! the wire but for the order of maps, exceptions of the IDL by their number and the first line of their message.

use crate::socket::Gateway;
use basalt_thrift::Version;
use basalt_thrift::protocol::{Kind, MessageKind, Protocol, Reader};
use basalt_thrift::wire::Wire;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

/// What stands in a call for the number of the scanner that was opened last.
const SCANNER: [u8; 4] = 0x7A7B_7C7D_u32.to_be_bytes();

/// A value as it is on the wire, but for the order of maps and sets.
#[derive(Debug, PartialEq, PartialOrd, Eq, Ord)]
enum Wired {
    Number(i64),
    Binary(Bytes),
    Struct(Vec<(i16, Wired)>),
    Map(Vec<(Wired, Wired)>),
    Set(Vec<Wired>),
    List(Vec<Wired>),
}

impl Wired {
    fn read(reader: &mut Reader<'_>, kind: Kind) -> Wired {
        match kind {
            Kind::Bool => Wired::Number(reader.bool().expect("a value").into()),
            Kind::Byte => Wired::Number(reader.byte().expect("a value").into()),
            Kind::I16 => Wired::Number(reader.i16().expect("a value").into()),
            Kind::I32 => Wired::Number(reader.i32().expect("a value").into()),
            Kind::I64 => Wired::Number(reader.i64().expect("a value")),
            Kind::Double => panic!("neither IDL has one"),
            Kind::Binary => Wired::Binary(reader.binary().expect("a value")),
            Kind::Struct => {
                let (mut fields, mut last) = (Vec::new(), 0);
                while let Some((kind, number)) = reader.field(&mut last).expect("a field") {
                    fields.push((number, Wired::read(reader, kind)));
                }
                Wired::Struct(fields)
            }
            Kind::Map => {
                let mut pairs = Vec::new();
                if let Some((key, value, count)) = reader.map().expect("a map") {
                    pairs.extend((0..count).map(|_| (Wired::read(reader, key), Wired::read(reader, value))));
                }
                pairs.sort();
                Wired::Map(pairs)
            }
            Kind::Set => {
                let (kind, count) = reader.list().expect("a set");
                let mut elements: Vec<Wired> = (0..count).map(|_| Wired::read(reader, kind)).collect();
                elements.sort();
                Wired::Set(elements)
            }
            Kind::List => {
                let (kind, count) = reader.list().expect("a list");
                Wired::List((0..count).map(|_| Wired::read(reader, kind)).collect())
            }
        }
    }
}

impl Wired {
    /// See [`Brought::comparable`].
    fn without(self, method: &str) -> Wired {
        let all = |values: Vec<Wired>| values.into_iter().map(|value| value.without(method)).collect();
        match self {
            Wired::Struct(fields) => {
                Wired::Struct(fields.into_iter().map(|(number, value)| (number, value.without(method))).collect())
            }
            Wired::List(values) => Wired::List(all(values)),
            Wired::Set(values) => Wired::Set(all(values)),
            Wired::Map(mut pairs) => {
                let is_tracker =
                    |key: &Wired| matches!(key, Wired::Binary(key) if key == "hbase.store.file-tracker.impl");
                pairs.retain(|(key, _)| method != "getTableDescriptor" || !is_tracker(key));
                Wired::Map(pairs)
            }
            value => value,
        }
    }
}

/// What a call brought.
#[derive(Debug, PartialEq)]
enum Brought {
    /// The fields of the result.
    Result(Wired),
    /// An exception of the IDL: its number, and what it says.
    Thrown(i64, String),
    /// A `TApplicationException`.
    Application(String),
}

impl Brought {
    fn read(answer: &Bytes) -> Brought {
        let mut reader = Reader::new(Protocol::Binary, answer);
        let message = reader.message().expect("a message");
        // A head of version, name and sequence id.
        let body = answer.slice(4 + 4 + message.name.len() + 4..);
        let text = |reader: &mut Reader<'_>| match reader.field(&mut 0).expect("a field") {
            Some((Kind::Binary, 1)) => String::read(reader).expect("a text"),
            _ => String::new(),
        };
        if message.kind == MessageKind::Exception {
            return Brought::Application(text(&mut reader));
        }
        match reader.field(&mut 0).expect("a field") {
            Some((Kind::Struct, number)) if number != 0 => {
                Brought::Thrown(number.into(), first_line(&text(&mut reader)))
            }
            _ => Brought::Result(Wired::read(&mut Reader::new(Protocol::Binary, &body), Kind::Struct)),
        }
    }

    /// The number of a scanner: the result's only field, an `i32`.
    fn scanner(&self) -> Option<[u8; 4]> {
        match self {
            Brought::Result(Wired::Struct(fields)) => match fields[..] {
                [(0, Wired::Number(number))] => Some(i32::try_from(number).ok()?.to_be_bytes()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Without what differs for a reason: Java says which rows a batch cut short, and drops the tracker of a table that is modified without it.
    fn comparable(self, method: &str) -> Brought {
        match self {
            Brought::Result(value) => Brought::Result(value.without(method)),
            other => other,
        }
    }

    /// Equal but for names and times that no two clusters share.
    fn is_like(&self, theirs: &Brought) -> bool {
        match (self, theirs) {
            (Brought::Thrown(ours, said), Brought::Thrown(number, message)) => {
                ours == number && common_part(said) == common_part(message)
            }
            // What Java did not foresee, say a NullPointerException: anything that leaves the connection whole will do.
            (_, Brought::Application(_)) => true,
            (ours, theirs) => ours == theirs,
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The message up to the name of a region or a server.
fn common_part(message: &str) -> &str {
    [" in region ", ", servers with issues"].iter().fold(message, |part, end| part.split(end).next().unwrap_or(part))
}

/// Whether a call is one that we answer otherwise, for a reason.
fn is_ours(method: &str, theirs: &Brought, ours: &Brought) -> bool {
    let Brought::Thrown(number, message) = theirs else { return false };
    let is_thrown = matches!(ours, Brought::Thrown(ours, _) if ours == number);
    match method {
        // Java's client wraps what it gave up on; ours says what it was.
        _ if message.starts_with("Failed 1 action: ") || message.starts_with("Failed after attempts=") => is_thrown,
        // A condition without an operator: Java fails at the server, ours does not hold.
        "checkAndMutate" => message.starts_with("Failed 2 actions: IOException"),
        // Java's client learns of it from the procedure, ours from the master's answer: the class stands once more.
        "enableTable" => is_thrown,
        // Refused by both: here the client finds that the rows differ, and the server that a family has no name.
        "checkAndPut" | "mutateRowTs" => !matches!(ours, Brought::Result(_)),
        _ => false,
    }
}

async fn answers_are_those_of_apache_hbase(version: Version, answers: &str) {
    let gateway = Gateway::start(version, |options| options.framed = true).await;
    let mut client = gateway.connect().await;
    let mut scanner = [0; 4];
    let (mut count, mut differences) = (0, Vec::new());
    for line in answers.lines() {
        let exchange: Value = serde_json::from_str(line).expect("JSON");
        let bytes = |name: &str| exchange[name].as_str().map(|text| STANDARD.decode(text).expect("base64"));
        let method = exchange["method"].as_str().expect("a method");
        let theirs = match bytes("answer") {
            Some(answer) => Brought::read(&answer.into()),
            None => Brought::Thrown(
                exchange["thrown"].as_i64().expect("a number"),
                exchange["message"].as_str().unwrap_or_default().to_owned(),
            ),
        };
        let mut call = bytes("call").expect("a call");
        if let Some(at) = call.windows(4).position(|part| part == SCANNER) {
            call[at..at + 4].copy_from_slice(&scanner);
        }
        client.send(&call).await;
        let (ours, theirs) = (Brought::read(&client.receive().await).comparable(method), theirs.comparable(method));
        count += 1;
        if (method.starts_with("scannerOpen") || method == "openScanner")
            && let (Some(number), Some(_)) = (ours.scanner(), theirs.scanner())
        {
            scanner = number;
            continue;
        }
        if !ours.is_like(&theirs) && !is_ours(method, &theirs, &ours) {
            let call = Bytes::from(call);
            differences.push(format!("line {count}: {method} {call:?}\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    gateway.stop().await;
    assert!(count >= 350, "{count} exchanges");
    assert!(differences.is_empty(), "{} of {count} differ\n{}", differences.len(), differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_thrift1_are_those_of_apache_hbase() {
    answers_are_those_of_apache_hbase(Version::One, include_str!("../../../tests/golden/thrift/thrift1.jsonl")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_thrift2_are_those_of_apache_hbase() {
    answers_are_those_of_apache_hbase(Version::Two, include_str!("../../../tests/golden/thrift/thrift2.jsonl")).await;
}
