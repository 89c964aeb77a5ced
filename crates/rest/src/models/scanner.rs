//! What a scanner is made of. Follows: `ScannerModel`.

use super::{Readable, members, object, plain_text};
use crate::text::from_base64;
use crate::xml::{number, text_of};
use bytes::Bytes;
use proto::{Message, rest};
use serde_json::Value;

/// A scanner to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannerModel {
    /// First row; empty is the table's start.
    pub start_row: Bytes,
    /// Whether `start_row` itself counts.
    pub include_start_row: bool,
    /// Last row; empty is the table's end.
    pub end_row: Bytes,
    /// Whether `end_row` itself counts.
    pub include_stop_row: bool,
    /// `family[:qualifier]`.
    pub columns: Vec<Bytes>,
    /// Cells of one answer.
    pub batch: i32,
    /// First time, inclusive.
    pub start_time: i64,
    /// Last time, exclusive.
    pub end_time: i64,
    /// Versions of a column.
    pub max_versions: i32,
    /// Rows of one reply of a server; not positive: the server's.
    pub caching: i32,
    /// A filter in JSON.
    pub filter: Option<String>,
    /// Visibility labels.
    pub labels: Vec<String>,
    /// Whether blocks read go to the cache.
    pub cache_blocks: bool,
}

impl Default for ScannerModel {
    fn default() -> ScannerModel {
        ScannerModel {
            start_row: Bytes::new(),
            include_start_row: true,
            end_row: Bytes::new(),
            include_stop_row: false,
            columns: Vec::new(),
            batch: i32::MAX,
            start_time: 0,
            end_time: i64::MAX,
            max_versions: i32::MAX,
            caching: -1,
            filter: None,
            labels: Vec::new(),
            cache_blocks: true,
        }
    }
}

fn integer<T: TryFrom<i64>>(name: &str, value: &Value) -> Result<T, String> {
    let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| format!("JSON: {name} is not such a number"))
}

impl Readable for ScannerModel {
    const ROOT: &'static str = "Scanner";

    fn from_xml(node: roxmltree::Node<'_, '_>) -> Result<Self, String> {
        let default = ScannerModel::default();
        let key = |name: &str| node.attribute(name).map(from_base64).transpose().map(Option::unwrap_or_default);
        let is_true = |text: &str| matches!(text.trim(), "true" | "1");
        let flag = |name: &str, default: bool| node.attribute(name).map_or(default, is_true);
        let children = |name: &'static str| node.children().filter(move |child| child.has_tag_name(name));
        Ok(ScannerModel {
            start_row: key("startRow")?,
            include_start_row: flag("includeStartRow", default.include_start_row),
            end_row: key("endRow")?,
            include_stop_row: flag("includeStopRow", default.include_stop_row),
            columns: children("column").map(|column| from_base64(text_of(column).trim())).collect::<Result<_, _>>()?,
            batch: number(node, "batch")?.unwrap_or(default.batch),
            start_time: number(node, "startTime")?.unwrap_or(default.start_time),
            end_time: number(node, "endTime")?.unwrap_or(default.end_time),
            max_versions: number(node, "maxVersions")?.unwrap_or(default.max_versions),
            caching: number(node, "caching")?.unwrap_or(default.caching),
            filter: children("filter").next().map(text_of),
            labels: children("labels").map(text_of).collect(),
            cache_blocks: flag("cacheBlocks", default.cache_blocks),
        })
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let mut scanner = ScannerModel::default();
        for (name, value) in object("a scanner", value)? {
            let flag =
                |name: &str, value: &Value| Ok::<_, String>(plain_text(name, value)?.eq_ignore_ascii_case("true"));
            let bytes = |value: &Value| from_base64(value.as_str().ok_or("JSON: base64 is text")?);
            match name.as_str() {
                "startRow" => scanner.start_row = bytes(value)?,
                "endRow" => scanner.end_row = bytes(value)?,
                "column" => scanner.columns = members(value).iter().map(bytes).collect::<Result<_, String>>()?,
                "batch" => scanner.batch = integer(name, value)?,
                "startTime" => scanner.start_time = integer(name, value)?,
                "endTime" => scanner.end_time = integer(name, value)?,
                "maxVersions" => scanner.max_versions = integer(name, value)?,
                "caching" => scanner.caching = integer(name, value)?,
                "filter" if value.is_null() => {}
                "filter" => scanner.filter = Some(plain_text(name, value)?),
                "labels" => {
                    let labels = members(value).iter().map(|label| plain_text(name, label));
                    scanner.labels = labels.collect::<Result<_, String>>()?;
                }
                "cacheBlocks" => scanner.cache_blocks = flag(name, value)?,
                "includeStartRow" => scanner.include_start_row = flag(name, value)?,
                "includeStopRow" => scanner.include_stop_row = flag(name, value)?,
                other => return Err(format!("JSON: a scanner has no field {other:?}")),
            }
        }
        Ok(scanner)
    }

    fn from_protobuf(body: Bytes) -> Result<Self, String> {
        let message = rest::Scanner::decode(body).map_err(|error| format!("protobuf: {error}"))?;
        let default = ScannerModel::default();
        Ok(ScannerModel {
            start_row: message.start_row.unwrap_or_default(),
            include_start_row: message.include_start_row.unwrap_or(default.include_start_row),
            end_row: message.end_row.unwrap_or_default(),
            include_stop_row: message.include_stop_row.unwrap_or(default.include_stop_row),
            columns: message.columns,
            batch: message.batch.unwrap_or(default.batch),
            start_time: message.start_time.unwrap_or(default.start_time),
            end_time: message.end_time.unwrap_or(default.end_time),
            max_versions: message.max_versions.unwrap_or(default.max_versions),
            caching: message.caching.unwrap_or(default.caching),
            filter: message.filter,
            labels: message.labels,
            cache_blocks: message.cache_blocks.unwrap_or(default.cache_blocks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;
    use crate::media::Media;

    /// The documents in HBase's `TestScannerModel`.
    #[test]
    fn every_encoding_is_read() {
        let xml = "<Scanner batch=\"100\" cacheBlocks=\"false\" caching=\"1000\" endRow=\"enp5eng=\" \
                   endTime=\"1245393318192\" maxVersions=\"2147483647\" startRow=\"YWJyYWNhZGFicmE=\" \
                   startTime=\"1245219839331\"><column>Y29sdW1uMQ==</column><column>Y29sdW1uMjpmb28=</column>\
                   <labels>private</labels><labels>public</labels></Scanner>";
        let json = "{\"batch\":100,\"caching\":1000,\"cacheBlocks\":false,\"endRow\":\"enp5eng=\",\
                    \"endTime\":1245393318192,\"maxVersions\":2147483647,\"startRow\":\"YWJyYWNhZGFicmE=\",\
                    \"startTime\":1245219839331,\"column\":[\"Y29sdW1uMQ==\",\"Y29sdW1uMjpmb28=\"],\
                    \"labels\":[\"private\",\"public\"]}";
        let from_xml: ScannerModel = decode(&Bytes::from(xml), Media::Xml).expect("legal");
        let from_json: ScannerModel = decode(&Bytes::from(json), Media::Json).expect("legal");
        assert_eq!(from_xml, from_json);
        assert_eq!((from_xml.batch, from_xml.caching, from_xml.cache_blocks), (100, 1000, false));
        assert_eq!((&from_xml.end_row[..], &from_xml.columns[1][..]), (&b"zzyzx"[..], &b"column2:foo"[..]));
        assert_eq!((from_xml.include_start_row, from_xml.include_stop_row), (true, false));
        let xml = "<Scanner includeStartRow=\"false\" includeStopRow=\"true\"/>";
        let json = "{\"includeStartRow\":false,\"includeStopRow\":true}";
        let message =
            rest::Scanner { include_start_row: Some(false), include_stop_row: Some(true), ..Default::default() };
        let bodies = [(Bytes::from(xml), Media::Xml), (Bytes::from(json), Media::Json)];
        for (body, media) in bodies.into_iter().chain([(Bytes::from(message.encode_to_vec()), Media::Protobuf)]) {
            let bounds: ScannerModel = decode(&body, media).expect("legal");
            assert_eq!((bounds.include_start_row, bounds.include_stop_row), (false, true), "{media:?}");
        }
        let empty: ScannerModel = decode(&Bytes::new(), Media::Protobuf).expect("legal");
        assert_eq!(empty, ScannerModel::default());
    }
}
