//! A table with its families. Follows: `TableSchemaModel`, `ColumnSchemaModel`.

use super::{Model, Readable, members, object, plain_text};
use crate::xml::Writer;
use bytes::Bytes;
use model::table::Attributes;
use model::{FamilyDescriptor, TableDescriptor, TableName, java_order};
use proto::{Message, rest};
use serde_json::{Map, Value};

/// Attributes in the order in which they are written.
type Pairs = Vec<(String, String)>;

/// A family.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FamilySchema {
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Pairs,
}

/// A table.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TableSchema {
    /// Its name; a body may leave it to the path.
    pub name: Option<String>,
    /// Its attributes.
    pub attributes: Pairs,
    /// Its families.
    pub families: Vec<FamilySchema>,
}

fn pairs(attributes: &Attributes) -> Pairs {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    attributes.iter().map(|(key, value)| (text(key), text(value))).collect()
}

fn attributes_of(pairs: &Pairs) -> impl Iterator<Item = (Bytes, Bytes)> {
    pairs.iter().map(|(key, value)| (Bytes::from(key.clone()), Bytes::from(value.clone())))
}

impl FamilySchema {
    /// What it describes.
    pub fn descriptor(&self) -> FamilyDescriptor {
        let mut family = FamilyDescriptor::new(Bytes::from(self.name.clone()));
        family.attributes.extend(attributes_of(&self.attributes));
        family
    }

    fn of(family: &FamilyDescriptor) -> FamilySchema {
        let mut attributes = pairs(&family.attributes);
        java_order::sort(&mut attributes, |(key, _)| key.as_bytes());
        FamilySchema { name: String::from_utf8_lossy(&family.name).into_owned(), attributes }
    }

    fn text(&self) -> String {
        format!("{{ NAME => '{}'{} }}", self.name, listed(&self.attributes))
    }

    fn message(&self) -> rest::ColumnSchema {
        let find = |name: &str| self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        rest::ColumnSchema {
            name: Some(self.name.clone()),
            attrs: self.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ttl: find("TTL").and_then(|text| text.parse().ok()),
            max_versions: find("VERSIONS").and_then(|text| text.parse().ok()),
            compression: find("COMPRESSION").cloned(),
        }
    }

    fn from_message(family: rest::ColumnSchema) -> FamilySchema {
        let mut attributes: Pairs = family.attrs.into_iter().map(|attr| (attr.name, attr.value)).collect();
        let mut also = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                attributes.retain(|(key, _)| key != name);
                attributes.push((name.to_owned(), value));
            }
        };
        also("TTL", family.ttl.map(|ttl| ttl.to_string()));
        also("VERSIONS", family.max_versions.map(|versions| versions.to_string()));
        also("COMPRESSION", family.compression);
        FamilySchema { name: family.name.unwrap_or_default(), attributes }
    }
}

fn attribute(name: &str, value: &str) -> rest::column_schema::Attribute {
    rest::column_schema::Attribute { name: name.to_owned(), value: value.to_owned() }
}

fn listed(pairs: &Pairs) -> String {
    pairs.iter().map(|(key, value)| format!(", {key} => '{value}'")).collect()
}

impl TableSchema {
    /// Of a table.
    pub fn of(table: &TableDescriptor) -> TableSchema {
        let mut attributes = pairs(&table.attributes);
        // HBase keeps both in one map.
        attributes.extend(table.configuration.iter().map(|(key, value)| (key.clone(), value.clone())));
        java_order::sort(&mut attributes, |(key, _)| key.as_bytes());
        TableSchema {
            name: Some(table.name.to_string()),
            attributes,
            families: table.families.values().map(FamilySchema::of).collect(),
        }
    }

    /// What it describes, under a name.
    pub fn descriptor(&self, name: TableName) -> TableDescriptor {
        let mut table = TableDescriptor::new(name, self.families.iter().map(FamilySchema::descriptor));
        table.attributes.extend(attributes_of(&self.attributes));
        table
    }
}

impl Model for TableSchema {
    fn text(&self) -> String {
        let families: Vec<String> = self.families.iter().map(FamilySchema::text).collect();
        let families = if families.is_empty() { String::new() } else { families.join(", ") + " " };
        let name = self.name.as_deref().unwrap_or("null");
        format!("{{ NAME=> '{name}'{}, COLUMNS => [ {families}] }}", listed(&self.attributes))
    }

    fn xml(&self, xml: &mut Writer) {
        let attributes = |xml: &mut Writer, name: Option<&str>, pairs: &Pairs| {
            if let Some(name) = name {
                xml.attribute("name", name);
            }
            pairs.iter().for_each(|(key, value)| xml.attribute(key, value));
        };
        xml.element("TableSchema", |xml| {
            attributes(xml, self.name.as_deref(), &self.attributes);
            for family in &self.families {
                xml.element("ColumnSchema", |xml| attributes(xml, Some(&family.name), &family.attributes));
            }
        });
    }

    fn json(&self) -> String {
        let fields = |name: Option<&str>, pairs: &Pairs| {
            let mut fields = Map::new();
            fields.insert("name".to_owned(), name.into());
            fields.extend(pairs.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
            fields
        };
        let family = |family: &FamilySchema| Value::Object(fields(Some(&family.name), &family.attributes));
        let mut table = fields(self.name.as_deref(), &self.attributes);
        table.insert("ColumnSchema".to_owned(), self.families.iter().map(family).collect());
        Value::Object(table).to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        let attr = |(name, value): &(String, String)| rest::table_schema::Attribute {
            name: name.clone(),
            value: value.clone(),
        };
        let read_only = self.attributes.iter().find(|(key, _)| key == "READONLY");
        let message = rest::TableSchema {
            name: self.name.clone(),
            attrs: self.attributes.iter().map(attr).collect(),
            columns: self.families.iter().map(FamilySchema::message).collect(),
            in_memory: None,
            read_only: read_only.map(|(_, value)| value.eq_ignore_ascii_case("true")),
        };
        message.encode_to_vec()
    }
}

impl Readable for TableSchema {
    const ROOT: &'static str = "TableSchema";

    fn from_xml(node: roxmltree::Node<'_, '_>) -> Result<TableSchema, String> {
        let split = |node: roxmltree::Node<'_, '_>| {
            let others = node.attributes().filter(|attr| attr.name() != "name");
            let pairs = others.map(|attr| (attr.name().to_owned(), attr.value().to_owned())).collect::<Pairs>();
            (node.attribute("name").map(str::to_owned), pairs)
        };
        let family = |node: roxmltree::Node<'_, '_>| {
            let (name, attributes) = split(node);
            Ok(FamilySchema { name: name.ok_or("XML: a ColumnSchema without a name")?, attributes })
        };
        let (name, attributes) = split(node);
        let families = node.children().filter(|child| child.has_tag_name("ColumnSchema")).map(family);
        Ok(TableSchema { name, attributes, families: families.collect::<Result<_, String>>()? })
    }

    fn from_json(value: &Value) -> Result<TableSchema, String> {
        let family = |value: &Value| {
            let mut family = FamilySchema::default();
            for (key, value) in object("a family", value)? {
                match key.as_str() {
                    "name" => family.name = plain_text(key, value)?,
                    _ => family.attributes.push((key.clone(), plain_text(key, value)?)),
                }
            }
            Ok(family)
        };
        let mut table = TableSchema::default();
        for (key, value) in object("a table", value)? {
            match (key.as_str(), value) {
                ("name", Value::Null) => {}
                ("name", value) => table.name = Some(plain_text(key, value)?),
                ("ColumnSchema", value) => {
                    table.families = members(value).iter().map(family).collect::<Result<_, String>>()?;
                }
                _ => table.attributes.push((key.clone(), plain_text(key, value)?)),
            }
        }
        Ok(table)
    }

    fn from_protobuf(body: Bytes) -> Result<TableSchema, String> {
        let message = rest::TableSchema::decode(body).map_err(|error| format!("protobuf: {error}"))?;
        let mut attributes: Pairs = message.attrs.into_iter().map(|attr| (attr.name, attr.value)).collect();
        if let Some(read_only) = message.read_only {
            attributes.retain(|(key, _)| key != "READONLY");
            attributes.push(("READONLY".to_owned(), read_only.to_string()));
        }
        let families = message.columns.into_iter().map(FamilySchema::from_message).collect();
        Ok(TableSchema { name: message.name, attributes, families })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
    use super::*;
    use crate::media::Media;

    #[test]
    fn every_encoding_is_read_as_it_was_written() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let schema = TableSchema {
            name: Some("t".to_owned()),
            attributes: vec![pair("IS_META", "false")],
            families: vec![FamilySchema { name: "f".to_owned(), attributes: vec![pair("BLOCKSIZE", "16384")] }],
        };
        for media in [Media::Xml, Media::Json, Media::Protobuf] {
            assert_eq!(decode(&encode(&schema, media), media).as_ref(), Ok(&schema), "{media:?}");
        }
        let xml = encode(&schema, Media::Xml);
        let expected =
            "<TableSchema name=\"t\" IS_META=\"false\"><ColumnSchema name=\"f\" BLOCKSIZE=\"16384\"/></TableSchema>";
        assert_eq!(String::from_utf8_lossy(&xml), format!("{}{expected}", crate::xml::DECLARATION));
    }

    #[test]
    fn numbers_are_attributes_too() {
        let body =
            Bytes::from_static(b"{\"name\":\"t\",\"ColumnSchema\":{\"name\":\"f\",\"VERSIONS\":3,\"IN_MEMORY\":true}}");
        let schema: TableSchema = decode(&body, Media::Json).expect("legal");
        let family = schema.families[0].descriptor();
        assert_eq!((family.max_versions(), family.in_memory()), (3, true));
    }
}
