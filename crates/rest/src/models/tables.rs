//! Lists of tables and of a table's regions. Follows: `TableListModel`, `TableInfoModel`, `TableRegionModel`.

use super::Model;
use crate::text::base64;
use crate::xml::Writer;
use bytes::Bytes;
use proto::{Message, rest};
use serde_json::json;

/// Names of tables.
pub struct TableList(pub Vec<String>);

impl Model for TableList {
    fn text(&self) -> String {
        self.0.iter().map(|name| format!("{name}\n")).collect()
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("TableList", |xml| {
            self.0.iter().for_each(|name| xml.element("table", |xml| xml.attribute("name", name)));
        });
    }

    fn json(&self) -> String {
        json!({"table": self.0.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()}).to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        rest::TableList { name: self.0.clone() }.encode_to_vec()
    }
}

/// One region.
pub struct TableRegion {
    /// The whole name.
    pub name: String,
    /// When it was made.
    pub id: i64,
    /// First row.
    pub start_key: Bytes,
    /// End of its rows.
    pub end_key: Bytes,
    /// `host:port` of its server.
    pub location: String,
}

/// A table's regions.
pub struct TableInfo {
    /// The table.
    pub name: String,
    /// Its regions.
    pub regions: Vec<TableRegion>,
}

impl Model for TableInfo {
    fn text(&self) -> String {
        let region = |region: &TableRegion| {
            let [start, end] =
                [&region.start_key, &region.end_key].map(|key| String::from_utf8_lossy(key).into_owned());
            format!(
                "{} [\n  id={}\n  startKey='{start}'\n  endKey='{end}'\n  location='{}'\n]\n\n",
                region.name, region.id, region.location
            )
        };
        self.regions.iter().map(region).collect()
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("TableInfo", |xml| {
            xml.attribute("name", &self.name);
            for region in &self.regions {
                xml.element("Region", |xml| {
                    xml.attribute("endKey", base64(&region.end_key));
                    xml.attribute("id", region.id);
                    xml.attribute("location", &region.location);
                    xml.attribute("name", &region.name);
                    xml.attribute("startKey", base64(&region.start_key));
                });
            }
        });
    }

    fn json(&self) -> String {
        let region = |region: &TableRegion| {
            json!({
                "id": region.id, "startKey": base64(&region.start_key), "endKey": base64(&region.end_key),
                "location": region.location, "name": region.name,
            })
        };
        json!({"name": self.name, "Region": self.regions.iter().map(region).collect::<Vec<_>>()}).to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        let region = |region: &TableRegion| rest::table_info::Region {
            name: region.name.clone(),
            start_key: Some(region.start_key.clone()),
            end_key: Some(region.end_key.clone()),
            id: Some(region.id),
            location: Some(region.location.clone()),
        };
        rest::TableInfo { name: self.name.clone(), regions: self.regions.iter().map(region).collect() }.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;
    use crate::media::Media;

    /// The document in HBase's `TestTableInfoModel`.
    #[test]
    fn regions_are_written_as_hbase_writes_them() {
        let info = TableInfo {
            name: "testtable".to_owned(),
            regions: vec![TableRegion {
                name: "testtable,abracadbra,8731042424.ad9860f031282c46ed431d7af8f94aca.".to_owned(),
                id: 8_731_042_424,
                start_key: Bytes::from("abracadbra"),
                end_key: Bytes::from("zzyzx"),
                location: "testhost:9876".to_owned(),
            }],
        };
        let expected = "<TableInfo name=\"testtable\"><Region endKey=\"enp5eng=\" id=\"8731042424\" \
                        location=\"testhost:9876\" \
                        name=\"testtable,abracadbra,8731042424.ad9860f031282c46ed431d7af8f94aca.\" \
                        startKey=\"YWJyYWNhZGJyYQ==\"/></TableInfo>";
        let xml = encode(&info, Media::Xml);
        assert_eq!(String::from_utf8_lossy(&xml), format!("{}{expected}", crate::xml::DECLARATION));
    }
}
