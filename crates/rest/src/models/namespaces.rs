//! Namespaces. Follows: `NamespacesModel`, `NamespacesInstanceModel`.

use super::{Model, Readable, object, plain_text};
use crate::xml::{Writer, text_of};
use bytes::Bytes;
use proto::{Message, rest};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Names of namespaces.
pub struct Namespaces(pub Vec<String>);

impl Model for Namespaces {
    fn text(&self) -> String {
        self.0.iter().map(|name| format!("{name}\n")).collect()
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("Namespaces", |xml| {
            self.0.iter().for_each(|name| xml.element("Namespace", |xml| xml.text(name)));
        });
    }

    fn json(&self) -> String {
        json!({"Namespace": self.0}).to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        rest::Namespaces { namespace: self.0.clone() }.encode_to_vec()
    }
}

/// A namespace's configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NamespaceProperties {
    /// The namespace; no body carries it.
    pub name: String,
    /// Its configuration.
    pub properties: BTreeMap<String, String>,
}

impl Model for NamespaceProperties {
    fn text(&self) -> String {
        let properties = self.properties.iter().map(|(key, value)| format!(", {key} => '{value}'"));
        format!("{{NAME => '{}'{}}}", self.name, properties.collect::<String>())
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("NamespaceProperties", |xml| {
            if self.properties.is_empty() {
                return;
            }
            xml.element("properties", |xml| {
                for (key, value) in &self.properties {
                    xml.element("entry", |xml| {
                        xml.element("key", |xml| xml.text(key));
                        xml.element("value", |xml| xml.text(value));
                    });
                }
            });
        });
    }

    fn json(&self) -> String {
        json!({"properties": (!self.properties.is_empty()).then_some(&self.properties)}).to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        let property = |(key, value): (&String, &String)| rest::namespace_properties::Property {
            key: key.clone(),
            value: value.clone(),
        };
        rest::NamespaceProperties { props: self.properties.iter().map(property).collect() }.encode_to_vec()
    }
}

impl Readable for NamespaceProperties {
    const ROOT: &'static str = "NamespaceProperties";

    fn from_xml(node: roxmltree::Node<'_, '_>) -> Result<Self, String> {
        let mut properties = BTreeMap::new();
        let all = node.children().filter(|child| child.has_tag_name("properties"));
        for entry in all.flat_map(|node| node.children()).filter(|child| child.has_tag_name("entry")) {
            let child = |name: &str| entry.children().find(|child| child.has_tag_name(name)).map(text_of);
            let key = child("key").ok_or("XML: a property without a key")?;
            properties.insert(key, child("value").unwrap_or_default());
        }
        Ok(NamespaceProperties { name: String::new(), properties })
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let mut properties = BTreeMap::new();
        for (name, value) in object("a namespace", value)? {
            match (name.as_str(), value) {
                ("properties", Value::Null) => {}
                ("properties", value) => {
                    for (key, value) in object("properties", value)? {
                        properties.insert(key.clone(), plain_text(key, value)?);
                    }
                }
                (other, _) => return Err(format!("JSON: a namespace has no field {other:?}")),
            }
        }
        Ok(NamespaceProperties { name: String::new(), properties })
    }

    fn from_protobuf(body: Bytes) -> Result<Self, String> {
        let message = rest::NamespaceProperties::decode(body).map_err(|error| format!("protobuf: {error}"))?;
        let properties = message.props.into_iter().map(|property| (property.key, property.value)).collect();
        Ok(NamespaceProperties { name: String::new(), properties })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
    use super::*;
    use crate::media::Media;

    #[test]
    fn every_encoding_is_read_as_it_was_written() {
        let properties = [("KEY_1".to_owned(), "VALUE_1".to_owned()), ("b".to_owned(), "<".to_owned())].into();
        for properties in [properties, BTreeMap::new()] {
            let namespace = NamespaceProperties { name: String::new(), properties };
            for media in [Media::Xml, Media::Json, Media::Protobuf] {
                assert_eq!(decode(&encode(&namespace, media), media).as_ref(), Ok(&namespace), "{media:?}");
            }
        }
    }
}
