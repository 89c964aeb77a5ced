//! The cluster's status and version. Follows: `StorageClusterStatusModel`, `StorageClusterVersionModel`.

use super::Model;
use crate::text::base64;
use crate::xml::Writer;
use proto::{Message, rest};
use serde_json::{Value, json};
use std::fmt::Write;

/// Version of the cluster.
pub struct ClusterVersion(pub String);

impl Model for ClusterVersion {
    fn text(&self) -> String {
        self.0.clone()
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("ClusterVersion", |xml| xml.attribute("Version", &self.0));
    }

    fn json(&self) -> String {
        json!({"Version": self.0}).to_string()
    }

    /// HBase has no message for it; the resource does not offer one.
    fn protobuf(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A region and its load: the message has every field.
pub type RegionLoadModel = rest::storage_cluster_status::Region;
/// A live server.
pub type NodeModel = rest::storage_cluster_status::Node;

/// Servers and their load: the message has every field.
pub struct ClusterStatus(pub rest::StorageClusterStatus);

/// The numbers of a region: name in text, and value. XML has them in another order.
fn numbers(region: &RegionLoadModel) -> [(&'static str, i64); 12] {
    let int = |value: Option<i32>| i64::from(value.unwrap_or(0));
    let long = |value: Option<i64>| value.unwrap_or(0);
    [
        ("stores", int(region.stores)),
        ("storefiles", int(region.storefiles)),
        ("storefileSizeMB", int(region.storefile_size_mb)),
        ("memStoreSizeMB", int(region.mem_store_size_mb)),
        ("storefileIndexSizeKB", long(region.storefile_index_size_kb)),
        ("readRequestsCount", long(region.read_requests_count)),
        ("writeRequestsCount", long(region.write_requests_count)),
        ("rootIndexSizeKB", int(region.root_index_size_kb)),
        ("totalStaticIndexSizeKB", int(region.total_static_index_size_kb)),
        ("totalStaticBloomSizeKB", int(region.total_static_bloom_size_kb)),
        ("totalCompactingKVs", long(region.total_compacting_k_vs)),
        ("currentCompactedKVs", long(region.current_compacted_k_vs)),
    ]
}

fn region_xml(region: &RegionLoadModel, xml: &mut Writer) {
    xml.element("Region", |xml| {
        let mut attributes: Vec<(&str, String)> =
            numbers(region).into_iter().map(|(name, value)| (name, value.to_string())).collect();
        attributes.push(("name", base64(&region.name)));
        attributes.sort();
        attributes.iter().for_each(|(name, value)| xml.attribute(name, value));
    });
}

fn region_text(region: &RegionLoadModel, out: &mut String) {
    let _ = write!(out, "        {}", String::from_utf8_lossy(&region.name));
    for (name, value) in numbers(region) {
        let name = match name {
            "storefiles" => "storefiless",
            "memStoreSizeMB" => "memstoreSizeMB",
            other => other,
        };
        let _ = write!(out, "\n            {name}={value}");
    }
    out.push('\n');
}

impl Model for ClusterStatus {
    fn text(&self) -> String {
        let status = &self.0;
        let (live, dead) = (status.live_nodes.len(), status.dead_nodes.len());
        let mut out = format!(
            "{live} live servers, {dead} dead servers, {:.4} average load\n\n",
            status.average_load.unwrap_or(0.0)
        );
        if live > 0 {
            let _ = writeln!(out, "{live} live servers");
        }
        for node in &status.live_nodes {
            let _ = write!(
                out,
                "    {} {}\n        requests={}, regions={}\n        heapSizeMB={}\n        maxHeapSizeMB={}\n\n",
                node.name,
                node.start_code.unwrap_or(0),
                node.requests.unwrap_or(0),
                node.regions.len(),
                node.heap_size_mb.unwrap_or(0),
                node.max_heap_size_mb.unwrap_or(0),
            );
            node.regions.iter().for_each(|region| region_text(region, &mut out));
            out.push('\n');
        }
        if dead > 0 {
            let _ = writeln!(out, "\n{dead} dead servers");
        }
        for node in &status.dead_nodes {
            let _ = writeln!(out, "    {node}");
        }
        out
    }

    fn xml(&self, xml: &mut Writer) {
        let status = &self.0;
        xml.element("ClusterStatus", |xml| {
            xml.attribute("averageLoad", format!("{:?}", status.average_load.unwrap_or(0.0)));
            xml.attribute("regions", status.regions.unwrap_or(0));
            xml.attribute("requests", status.requests.unwrap_or(0));
            xml.element("DeadNodes", |xml| {
                status.dead_nodes.iter().for_each(|node| xml.element("Node", |xml| xml.text(node)));
            });
            xml.element("LiveNodes", |xml| {
                for node in &status.live_nodes {
                    xml.element("Node", |xml| {
                        xml.attribute("heapSizeMB", node.heap_size_mb.unwrap_or(0));
                        xml.attribute("maxHeapSizeMB", node.max_heap_size_mb.unwrap_or(0));
                        xml.attribute("name", &node.name);
                        xml.attribute("requests", node.requests.unwrap_or(0));
                        xml.attribute("startCode", node.start_code.unwrap_or(0));
                        node.regions.iter().for_each(|region| region_xml(region, xml));
                    });
                }
            });
        });
    }

    fn json(&self) -> String {
        let region = |region: &RegionLoadModel| {
            let mut fields: serde_json::Map<String, Value> =
                numbers(region).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            fields.insert("name".to_owned(), base64(&region.name).into());
            Value::Object(fields)
        };
        let node = |node: &NodeModel| {
            json!({
                "name": node.name, "startCode": node.start_code.unwrap_or(0), "requests": node.requests.unwrap_or(0),
                "heapSizeMB": node.heap_size_mb.unwrap_or(0), "maxHeapSizeMB": node.max_heap_size_mb.unwrap_or(0),
                "Region": node.regions.iter().map(region).collect::<Vec<_>>(),
            })
        };
        let status = &self.0;
        json!({
            "regions": status.regions.unwrap_or(0), "requests": status.requests.unwrap_or(0),
            "averageLoad": status.average_load.unwrap_or(0.0),
            "LiveNodes": status.live_nodes.iter().map(node).collect::<Vec<_>>(),
            "DeadNodes": status.dead_nodes,
        })
        .to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }
}
