//! What bodies say, each in three encodings and as text. Follows: `org.apache.hadoop.hbase.rest.model`.

mod cells;
mod cluster;
mod namespaces;
mod scanner;
mod schema;
mod tables;
mod version;

pub use cells::{CellModel, CellSet, CellStream, RowModel};
pub use cluster::{ClusterStatus, ClusterVersion, NodeModel, RegionLoadModel};
pub use namespaces::{NamespaceProperties, Namespaces};
pub use scanner::ScannerModel;
pub use schema::TableSchema;
pub use tables::{TableInfo, TableList, TableRegion};
pub use version::Version;

use crate::media::Media;
use crate::xml::{self, Writer};
use bytes::Bytes;
use serde_json::Value;

/// What can be written.
pub trait Model {
    /// For people; nothing where HBase has no words.
    fn text(&self) -> String;
    /// As JAXB writes it.
    fn xml(&self, xml: &mut Writer);
    /// As Jackson writes it.
    fn json(&self) -> String;
    /// As protobuf.
    fn protobuf(&self) -> Vec<u8>;
}

/// What can be read.
pub trait Readable: Sized {
    /// The root element's name.
    const ROOT: &'static str;
    /// From the root element.
    fn from_xml(node: roxmltree::Node<'_, '_>) -> Result<Self, String>;
    /// From a JSON value.
    fn from_json(value: &Value) -> Result<Self, String>;
    /// From protobuf.
    fn from_protobuf(body: Bytes) -> Result<Self, String>;
}

/// A model as bytes of a media type.
pub fn encode(model: &dyn Model, media: Media) -> Bytes {
    match media {
        Media::Text | Media::Binary => model.text().into(),
        Media::Xml => {
            let mut xml = Writer::new();
            model.xml(&mut xml);
            xml.finish().into()
        }
        Media::Json => model.json().into(),
        Media::Protobuf | Media::ProtobufIetf => model.protobuf().into(),
    }
}

/// A model from bytes of a media type.
///
/// # Errors
/// What is wrong with them.
pub fn decode<M: Readable>(body: &Bytes, media: Media) -> Result<M, String> {
    match media {
        Media::Xml => xml::read(body, M::ROOT, M::from_xml),
        Media::Json => {
            let value = serde_json::from_slice(body).map_err(|error| format!("JSON: {error}"))?;
            M::from_json(&value)
        }
        Media::Protobuf | Media::ProtobufIetf => M::from_protobuf(body.clone()),
        Media::Text | Media::Binary => Err(format!("{} is no encoding of a model", media.name())),
    }
}

/// The text of a JSON value as Java's `toString` has it: for attributes, which may be given as numbers and truths.
fn plain_text(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(format!("JSON: {name} is neither text nor a number")),
    }
}

/// The fields of a JSON object.
fn object<'a>(what: &str, value: &'a Value) -> Result<&'a serde_json::Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("JSON: {what} is not an object"))
}

/// The members of a JSON array; a single one may stand without brackets.
fn members(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(values) => values,
        single => std::slice::from_ref(single),
    }
}
