//! Rows and cells. Follows: `CellSetModel`, `RowModel`, `CellModel`, `TableScanResource.CellSetModelStream`.

use super::{Model, Readable, members, object};
use crate::media::Media;
use crate::text::{from_base64, push_base64};
use crate::xml::{Writer, number, text_of};
use bytes::Bytes;
use cell::CellRef;
use client::Row;
use proto::{Message, rest};
use serde_json::{Map, Value};

/// A cell without a time of its own.
const LATEST: i64 = i64::MAX;

/// What stands around a document's rows, a row's cells and a cell's bytes, at most, in any encoding. XML has the most:
/// `<Cell column="" timestamp="-9223372036854775808"></Cell>`, and four bytes for what base64 rounds up of its column.
const SET_FRAME_BYTES: usize = 96;
const ROW_FRAME_BYTES: usize = 32;
const CELL_FRAME_BYTES: usize = 72;

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellModel {
    /// `family[:qualifier]`; a body may leave it to the path.
    pub column: Option<Bytes>,
    /// The time; `i64::MAX` is the server's.
    pub timestamp: i64,
    /// The value.
    pub value: Bytes,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowModel {
    /// The key; a body may leave it to the path.
    pub key: Option<Bytes>,
    /// The cells.
    pub cells: Vec<CellModel>,
}

/// Rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellSet {
    /// The rows.
    pub rows: Vec<RowModel>,
}

impl CellModel {
    /// A cell of `run`, with whose bytes it shares its value.
    pub fn of(cell: CellRef<'_>, run: &Bytes) -> CellModel {
        let column = [cell.family(), b":", cell.qualifier()].concat();
        CellModel { column: Some(column.into()), timestamp: cell.timestamp(), value: run.slice_ref(cell.value()) }
    }

    fn byte_len(&self) -> usize {
        self.value.len() + self.column.as_ref().map_or(0, Bytes::len)
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("Cell", |xml| {
            if let Some(column) = &self.column {
                xml.base64_attribute("column", column);
            }
            xml.attribute("timestamp", self.timestamp);
            // An empty value has an end tag, too.
            xml.base64(&self.value);
        });
    }

    fn json(&self, out: &mut String) {
        out.push_str("{\"column\":");
        push_json(out, self.column.as_deref());
        out.push_str(",\"timestamp\":");
        out.push_str(&self.timestamp.to_string());
        out.push_str(",\"$\":");
        push_json(out, Some(&self.value));
        out.push('}');
    }

    fn message(&self) -> rest::Cell {
        rest::Cell {
            row: None,
            column: Some(self.column.clone().unwrap_or_default()),
            timestamp: Some(self.timestamp).filter(|time| *time != LATEST),
            data: Some(self.value.clone()),
        }
    }

    fn from_xml(node: roxmltree::Node<'_, '_>) -> Result<CellModel, String> {
        let column = node.attribute("column").map(from_base64).transpose()?;
        let timestamp = number(node, "timestamp")?.unwrap_or(LATEST);
        let text: String = text_of(node).split_ascii_whitespace().collect();
        Ok(CellModel { column, timestamp, value: from_base64(&text)? })
    }

    fn from_json(value: &Value) -> Result<CellModel, String> {
        let mut cell = CellModel { column: None, timestamp: LATEST, value: Bytes::new() };
        for (name, value) in object("a cell", value)? {
            match name.as_str() {
                "column" => cell.column = bytes(name, value)?,
                "$" => cell.value = bytes(name, value)?.unwrap_or_default(),
                "timestamp" => {
                    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                    cell.timestamp = number.ok_or("JSON: timestamp is not a number")?;
                }
                other => return Err(format!("JSON: a cell has no field {other:?}")),
            }
        }
        Ok(cell)
    }
}

/// Bytes as JSON: base64 has nothing that a string would escape.
fn push_json(out: &mut String, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return out.push_str("null") };
    out.push('"');
    push_base64(out, bytes);
    out.push('"');
}

fn bytes(name: &str, value: &Value) -> Result<Option<Bytes>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => from_base64(text).map(Some),
        _ => Err(format!("JSON: {name} is not text in base64")),
    }
}

impl RowModel {
    /// A row that was read.
    pub fn of(row: &Row) -> RowModel {
        let run = row.cells().bytes();
        let cells = row.iter().map(|cell| CellModel::of(cell, run)).collect();
        RowModel { key: Some(run.slice_ref(row.row())), cells }
    }

    /// About what it takes.
    pub fn byte_len(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.byte_len() + 16);
        self.key.as_ref().map_or(0, Bytes::len) + cells.sum::<usize>()
    }

    /// No encoding of it is longer.
    fn most_encoded_bytes(&self) -> usize {
        let base64 = |bytes: usize| bytes.div_ceil(3) * 4;
        let cells = self.cells.iter().map(|cell| base64(cell.byte_len()) + CELL_FRAME_BYTES);
        base64(self.key.as_ref().map_or(0, Bytes::len)) + ROW_FRAME_BYTES + cells.sum::<usize>()
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("Row", |xml| {
            if let Some(key) = &self.key {
                xml.base64_attribute("key", key);
            }
            self.cells.iter().for_each(|cell| cell.xml(xml));
        });
    }

    fn json(&self, out: &mut String) {
        out.push_str("{\"key\":");
        push_json(out, self.key.as_deref());
        out.push_str(",\"Cell\":[");
        for (n, cell) in self.cells.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            cell.json(out);
        }
        out.push_str("]}");
    }

    fn message(&self) -> rest::cell_set::Row {
        rest::cell_set::Row {
            key: self.key.clone().unwrap_or_default(),
            values: self.cells.iter().map(CellModel::message).collect(),
        }
    }
}

impl CellSet {
    /// Rows that were read.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> CellSet {
        CellSet { rows: rows.into_iter().filter(|row| !row.is_empty()).map(RowModel::of).collect() }
    }

    /// Bytes that no encoding of it exceeds.
    pub fn most_encoded_bytes(&self) -> usize {
        most_encoded_bytes(&self.rows)
    }

    /// As a reader of its protobuf sees it: a key and a column that are left to the path are empty ones there.
    pub(crate) fn with_names(mut self) -> CellSet {
        for row in &mut self.rows {
            row.key.get_or_insert_default();
            row.cells.iter_mut().for_each(|cell| {
                cell.column.get_or_insert_default();
            });
        }
        self
    }
}

impl Model for CellSet {
    fn text(&self) -> String {
        String::new()
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("CellSet", |xml| self.rows.iter().for_each(|row| row.xml(xml)));
    }

    fn json(&self) -> String {
        let mut out = String::with_capacity(self.most_encoded_bytes());
        out.push_str("{\"Row\":[");
        for (n, row) in self.rows.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            row.json(&mut out);
        }
        out.push_str("]}");
        out
    }

    fn protobuf(&self) -> Vec<u8> {
        rest::CellSet { rows: self.rows.iter().map(RowModel::message).collect() }.encode_to_vec()
    }
}

impl Readable for CellSet {
    const ROOT: &'static str = "CellSet";

    fn from_xml(node: roxmltree::Node<'_, '_>) -> Result<CellSet, String> {
        let named = |name: &'static str| move |child: &roxmltree::Node<'_, '_>| child.has_tag_name(name);
        let row = |node: roxmltree::Node<'_, '_>| {
            let key = node.attribute("key").map(from_base64).transpose()?;
            let cells = node.children().filter(named("Cell")).map(CellModel::from_xml).collect::<Result<_, _>>()?;
            Ok(RowModel { key, cells })
        };
        Ok(CellSet { rows: node.children().filter(named("Row")).map(row).collect::<Result<_, String>>()? })
    }

    fn from_json(value: &Value) -> Result<CellSet, String> {
        let row = |value: &Value| {
            let mut row = RowModel::default();
            for (name, value) in object("a row", value)? {
                match name.as_str() {
                    "key" => row.key = bytes(name, value)?,
                    "Cell" => row.cells = members(value).iter().map(CellModel::from_json).collect::<Result<_, _>>()?,
                    other => return Err(format!("JSON: a row has no field {other:?}")),
                }
            }
            Ok(row)
        };
        let fields: &Map<String, Value> = object("a cell set", value)?;
        if let Some(other) = fields.keys().find(|name| *name != "Row") {
            return Err(format!("JSON: a cell set has no field {other:?}"));
        }
        let rows = fields.get("Row").map(members).unwrap_or_default();
        Ok(CellSet { rows: rows.iter().map(row).collect::<Result<_, String>>()? })
    }

    fn from_protobuf(body: Bytes) -> Result<CellSet, String> {
        let message = rest::CellSet::decode(body).map_err(|error| format!("protobuf: {error}"))?;
        let cell = |cell: rest::Cell| CellModel {
            column: Some(cell.column.unwrap_or_default()),
            timestamp: cell.timestamp.unwrap_or(LATEST),
            value: cell.data.unwrap_or_default(),
        };
        let row = |row: rest::cell_set::Row| RowModel {
            key: Some(row.key),
            cells: row.values.into_iter().map(cell).collect(),
        };
        Ok(CellSet { rows: message.rows.into_iter().map(row).collect() })
    }
}

fn most_encoded_bytes(rows: &[RowModel]) -> usize {
    SET_FRAME_BYTES + rows.iter().map(RowModel::most_encoded_bytes).sum::<usize>()
}

/// A cell set that is written row by row.
pub struct CellStream {
    media: Media,
    rows: u64,
}

impl CellStream {
    /// Nothing was written yet.
    pub fn new(media: Media) -> CellStream {
        CellStream { media, rows: 0 }
    }

    /// The bytes for these rows.
    pub fn rows(&mut self, rows: &[RowModel]) -> Bytes {
        match self.media {
            Media::Json => self.json(rows),
            Media::Protobuf | Media::ProtobufIetf => messages(rows).into(),
            _ => self.xml(rows),
        }
    }

    fn xml(&mut self, rows: &[RowModel]) -> Bytes {
        let mut xml = Writer::fragment(most_encoded_bytes(rows));
        if self.rows == 0 && !rows.is_empty() {
            xml.raw(crate::xml::DECLARATION);
            xml.raw("<CellSet>");
        }
        rows.iter().for_each(|row| row.xml(&mut xml));
        self.rows += rows.len() as u64;
        xml.finish().into()
    }

    fn json(&mut self, rows: &[RowModel]) -> Bytes {
        let mut out = String::with_capacity(most_encoded_bytes(rows));
        for row in rows {
            out.push_str(if self.rows == 0 { "{\"Row\":[" } else { "," });
            row.json(&mut out);
            self.rows += 1;
        }
        out.into()
    }

    /// What ends the body.
    pub fn end(self) -> Bytes {
        match (self.media, self.rows) {
            (Media::Json, 0) => Bytes::from_static(b"{\"Row\":[]}"),
            (Media::Json, _) => Bytes::from_static(b"]}"),
            (Media::Protobuf | Media::ProtobufIetf, _) => Bytes::new(),
            (_, 0) => format!("{}<CellSet/>", crate::xml::DECLARATION).into(),
            _ => Bytes::from_static(b"</CellSet>"),
        }
    }
}

/// The longest message of a stream whose length its two bytes can say to a reader that takes them as a Java short.
const MAX_MESSAGE_BYTES: usize = i16::MAX as usize;

/// Rows as messages with their lengths before them: in one where it fits.
fn messages(rows: &[RowModel]) -> Vec<u8> {
    let message = rest::CellSet { rows: rows.iter().map(RowModel::message).collect() };
    if message.encoded_len() > MAX_MESSAGE_BYTES && rows.len() > 1 {
        let (first, second) = rows.split_at(rows.len() / 2);
        return [messages(first), messages(second)].concat();
    }
    let body = message.encode_to_vec();
    // HBase writes the low 16 bits of a length, whatever it is.
    [&(body.len() as u16).to_be_bytes()[..], &body].concat()
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
    use super::*;

    fn set() -> CellSet {
        let cell = |column: &str, timestamp, value: &str| CellModel {
            column: Some(Bytes::copy_from_slice(column.as_bytes())),
            timestamp,
            value: Bytes::copy_from_slice(value.as_bytes()),
        };
        let row = |key: &str, cells| RowModel { key: Some(Bytes::copy_from_slice(key.as_bytes())), cells };
        CellSet {
            rows: vec![
                row("testrow1", vec![cell("testcolumn1", 1_245_219_839_331, "testvalue1")]),
                row("testrow2", vec![cell("testcolumn2", LATEST, ""), cell("testcolumn3", 3, "v")]),
            ],
        }
    }

    #[test]
    fn every_encoding_is_read_as_it_was_written() {
        for media in [Media::Xml, Media::Json, Media::Protobuf] {
            let encoded = encode(&set(), media);
            assert!(encoded.len() <= set().most_encoded_bytes(), "{media:?}: {} bytes", encoded.len());
            assert_eq!(decode::<CellSet>(&encoded, media).as_ref(), Ok(&set()), "{media:?}");
        }
    }

    #[test]
    fn what_is_left_to_the_path_is_empty_in_protobuf() {
        let body = Bytes::from_static(b"<CellSet><Row><Cell timestamp=\"7\">dmFsdWU=</Cell></Row></CellSet>");
        let cells: CellSet = decode(&body, Media::Xml).expect("legal");
        assert_eq!((&cells.rows[0].key, &cells.rows[0].cells[0].column), (&None, &None));
        assert_eq!(decode(&encode(&cells, Media::Json), Media::Json).as_ref(), Ok(&cells));
        assert_eq!(decode(&encode(&cells, Media::Protobuf), Media::Protobuf), Ok(cells.with_names()));
        crate::decode_anything(&body);
    }

    /// The beginning of the document in HBase's `TestCellSetModel`.
    #[test]
    fn xml_is_hbases() {
        let xml = String::from_utf8(encode(&set(), Media::Xml).to_vec()).expect("text");
        let expected = "<CellSet><Row key=\"dGVzdHJvdzE=\"><Cell column=\"dGVzdGNvbHVtbjE=\" \
                        timestamp=\"1245219839331\">dGVzdHZhbHVlMQ==</Cell></Row>";
        assert!(xml.starts_with(&format!("{}{expected}", crate::xml::DECLARATION)), "{xml}");
    }

    #[test]
    fn a_stream_is_the_same_document() {
        let rows = set().rows;
        for media in [Media::Xml, Media::Json] {
            let mut stream = CellStream::new(media);
            let mut body = stream.rows(&rows[..1]).to_vec();
            body.extend_from_slice(&stream.rows(&rows[1..]));
            body.extend_from_slice(&stream.end());
            assert_eq!(decode::<CellSet>(&body.into(), media).as_ref(), Ok(&set()));
            assert_eq!(decode::<CellSet>(&CellStream::new(media).end(), media), Ok(CellSet::default()));
        }
        assert_eq!(messages(&[]), [0, 0]);
        let cell = CellModel { value: vec![0; 20_000].into(), ..rows[0].cells[0].clone() };
        let large = RowModel { cells: vec![cell], ..rows[0].clone() };
        let two = messages(&[large.clone(), large]);
        let length = usize::from(u16::from_be_bytes([two[0], two[1]]));
        assert!(length > 20_000 && two.len() == 2 * (length + 2), "two messages");
    }

    #[test]
    fn what_is_no_cell_set_is_refused() {
        for (media, body) in [
            (Media::Json, &b"{\"Row\":[{\"key\":\"!\"}]}"[..]),
            (Media::Json, b"{\"Rows\":[]}"),
            (Media::Json, b"[]"),
            (Media::Json, b"{"),
            (Media::Xml, b"<CellSet><Row key=\"!\"/></CellSet>"),
            (Media::Xml, b"<CellSet><Row><Cell timestamp=\"x\"/></Row></CellSet>"),
            (Media::Protobuf, b"\x0a\xff"),
        ] {
            assert!(decode::<CellSet>(&Bytes::copy_from_slice(body), media).is_err());
        }
        // So deep that a reader by recursion would end the process.
        let deep = Bytes::from("[".repeat(1 << 20));
        assert!(decode::<CellSet>(&deep, Media::Json).is_err());
    }
}
