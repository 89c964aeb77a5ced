//! A running cluster: hbase:meta against the servers.

use std::collections::{BTreeMap, BTreeSet};

use client::Connection;
use model::{RegionInfo, ServerName};
use proto::pb::table_state::State;

use super::{Finding, Report, chain};

/// Looks at the tables that are named, or at all.
pub(super) async fn check(connection: &Connection, wanted: &[String]) -> anyhow::Result<Report> {
    let admin = connection.admin();
    let mut report = Report::default();
    let mut deployed: BTreeMap<String, Vec<(ServerName, RegionInfo)>> = BTreeMap::new();
    for server in admin.servers().await? {
        for region in admin.online_regions(&server).await? {
            deployed.entry(region.encoded_name().to_string()).or_default().push((server.clone(), region));
        }
    }
    let names = admin.list_table_names(None, true).await?;
    let (mut known, mut said_to_serve) = (BTreeSet::new(), BTreeSet::new());
    for name in &names {
        let chosen = wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name.as_str());
        // Looked at in any case: whatever a server has beyond these is known to nobody.
        let locations = connection.table(name).regions().await?;
        known.extend(locations.iter().map(|location| location.region.encoded_name().to_string()));
        said_to_serve.extend(locations.iter().map(|location| location.server.clone()));
        if !chosen {
            continue;
        }
        report.tables += 1;
        let enabled = name.is_meta() || admin.table_state(name).await? == State::Enabled;
        let regions: Vec<RegionInfo> = locations.iter().map(|location| location.region.clone()).collect();
        report.findings.extend(chain::check(name.as_str(), &regions, &BTreeSet::new()));
        for location in &locations {
            report.regions += 1;
            let encoded = location.region.encoded_name();
            let at = deployed.get(&**encoded).map(Vec::as_slice).unwrap_or_default();
            let finding = match at {
                [] if enabled => Some(("NOT_DEPLOYED", format!("region {encoded} is open nowhere"))),
                [(server, _)] if enabled && *server != location.server => {
                    let why = format!("region {encoded} is open at {server}, and hbase:meta says {}", location.server);
                    Some(("SERVER_DOES_NOT_MATCH_META", why))
                }
                [_, _, ..] => {
                    let servers: Vec<String> = at.iter().map(|(server, _)| server.to_string()).collect();
                    Some(("MULTI_DEPLOYED", format!("region {encoded} is open at {}", servers.join(" and "))))
                }
                [(server, _)] if !enabled => Some((
                    "SHOULD_NOT_BE_DEPLOYED",
                    format!("region {encoded} of a disabled table is open at {server}"),
                )),
                _ => None,
            };
            report.findings.extend(finding.map(|(kind, why)| Finding::new(kind, name.as_str(), why)));
        }
    }
    // HBase's master also names servers on which regions were that have been split since, until those are cleaned away.
    for server in admin.hbck().unknown_servers().await?.into_iter().filter(|server| said_to_serve.contains(server)) {
        let why = format!("regions are said to be on {server}, which the master does not know");
        report.findings.push(Finding::new("UNKNOWN_SERVER", "", why));
    }
    for (encoded, at) in &deployed {
        for (server, region) in at {
            // A read replica is known by its primary's row.
            if known.contains(&**region.replica(0).encoded_name()) {
                continue;
            }
            if wanted.is_empty() || wanted.iter().any(|wanted| *wanted == region.table.as_str()) {
                let why = format!("region {encoded} is open at {server} and not in hbase:meta");
                report.findings.push(Finding::new("NOT_IN_META", region.table.as_str(), why));
            }
        }
    }
    Ok(report)
}
