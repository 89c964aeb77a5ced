//! What the binary is made of: every crate with its version, licence and checksum, as CycloneDX 1.5.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Value, json};

use super::machine::Machine;
use crate::run;

/// The list, as JSON.
pub fn cyclone_dx(version: &str, machine: Machine) -> anyhow::Result<String> {
    let args = ["metadata", "--format-version", "1", "--locked", "--features", "basalt/hdfs,basalt/zookeeper"];
    let text = run::stdout("cargo metadata", run::cargo().args(args).args(["--filter-platform", &machine.triple()]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let needed = needed(&metadata)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let components: Vec<Value> = packages
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| needed.contains(id)))
        .map(component)
        .collect();
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "basalt", "version": version } },
        "components": components,
    });
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

/// Ids of all that the binary is built from: its dependencies, theirs, and so on; not what only tests need.
fn needed(metadata: &Value) -> anyhow::Result<BTreeSet<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph")?;
    let by_id: BTreeMap<&str, &Value> = nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let binary = packages.iter().find(|package| package["name"] == "basalt").context("no package basalt")?;
    let mut todo = vec![binary["id"].as_str().context("no id")?];
    let mut needed = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !needed.insert(id) {
            continue;
        }
        for dependency in by_id.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.clone().any(|kind| kind["kind"].is_null() || kind["kind"] == "build") {
                todo.extend(dependency["pkg"].as_str());
            }
        }
    }
    Ok(needed)
}

fn component(package: &Value) -> Value {
    let (name, version) = (&package["name"], &package["version"]);
    let purl = format!("pkg:cargo/{}@{}", name.as_str().unwrap_or_default(), version.as_str().unwrap_or_default());
    let mut component = json!({ "type": "library", "name": name, "version": version, "purl": purl });
    if let Some(license) = package["license"].as_str() {
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}
