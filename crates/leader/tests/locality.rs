//! Where the blocks of files are: region servers report what is on their machines, and the balancer brings regions to their files.

use crate::common::{Place, Rows, until};
use model::ServerName;
use proto::pb;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Of each region of the table: which part of its files its server says to have on its machine, and of how many bytes.
async fn reported(rows: &Rows, servers: &[&ServerName]) -> BTreeMap<String, (f32, u64)> {
    let mut all = BTreeMap::new();
    for server in servers {
        let loads = rows.connection.admin().region_metrics(server, Some(&rows.table)).await.expect("told");
        let shown = |load: &pb::RegionLoad| {
            let name = model::RegionInfo::encoded_from_name(&load.region_specifier.value).to_string();
            assert_eq!(load.blocks_local_weight() as f32, load.data_locality() * load.blocks_total_weight() as f32);
            assert_eq!(load.blocks_local_with_ssd_weight(), load.blocks_local_weight(), "its blocks are on SSDs");
            (name, (load.data_locality(), load.blocks_total_weight()))
        };
        all.extend(loads.iter().map(shown));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_balancer_brings_regions_to_the_machines_of_their_files_and_servers_report_it() {
    let mut place = Place::new().await;
    place.config.set("hbase.master.balancer.stochastic.localityCost", "2000");
    place.config.set("hbase.master.wait.on.regionservers.mintostart", "2");
    // Each run of the balancer is asked for.
    place.config.set("hbase.balancer.period", "3600000");
    let mut master = place.master();
    let first = place.region_server_on(Ipv4Addr::new(127, 0, 0, 1)).await;
    let second = place.region_server_on(Ipv4Addr::new(127, 0, 0, 2)).await;
    let leader = master.leads().await;
    let servers = [&first.name, &second.name];
    let mut rows = Rows::create(&place).await;
    rows.put(80).await;
    // The blocks of each region are on the other machine.
    let before = rows.regions().await;
    for at in &before {
        let other = if at.server == first.name { &second.name.host } else { &first.name.host };
        place.volume.place_blocks(at.region.encoded_name(), &[(&**other, true)]);
    }
    let admin = rows.connection.admin();
    admin.flush(&rows.table).await.expect("flushed");
    let told = reported(&rows, &servers).await;
    assert_eq!(told.len(), 8);
    assert!(told.values().all(|(part, bytes)| *part == 0.0 && *bytes > 0), "{told:?}");

    // The master hears of the sizes by a report.
    until("it has moved them", async || {
        admin.balance(false, false).await.expect("asked");
        leader.master().unfinished_procedures() == 0
            && rows.regions().await.iter().zip(&before).all(|(now, before)| now.server != before.server)
    })
    .await;
    let told = reported(&rows, &servers).await;
    assert!(told.values().all(|(part, _)| *part == 1.0), "{told:?}");
    rows.expect_all().await;
    let settled = admin.balance(false, false).await.expect("asked");
    assert!(settled.moves_calculated.unwrap_or_default() == 0, "{settled:?}");
}
