//! The status page of a master whose region servers are other processes.

use super::{PageRequest, frame, groups, lists};
use crate::markup::{Bytes, Count, Markup, Moment, Part, Rate, Span};
use crate::rates::RequestRates;
use crate::status::{Cluster, Server, Status};

/// Draws the page. Cost: proportional to the number of servers and regions; the lists of regions and procedures are bounded.
pub fn draw(status: &Status, cluster: &Cluster, rates: &RequestRates, request: &PageRequest<'_>) -> String {
    frame::whole(request.face, &format!("Basalt master {}", status.master.address()), request.now_ms, |page| {
        if !request.serving {
            page.raw("<p class=bad><strong>It is no active master yet: it waits as a backup, or starts.</strong></p>");
        }
        lists::problems(page, status);
        cards(page, status, cluster, rates);
        lists::in_transition(page, status, request.now_ms);
        procedures(page, cluster);
        servers(page, status, cluster);
        groups::list(page, cluster);
        balancer(page, cluster, request.now_ms);
        lists::tables(page, status);
        facts(page, status, cluster);
    })
}

fn cards(page: &mut Markup, status: &Status, cluster: &Cluster, rates: &RequestRates) {
    page.raw("<div class=cards><div class=card><h3>Region servers</h3><b>").text(Count(cluster.servers.len() as u64));
    page.raw("</b><p>").text(Count(status.dead_servers.len() as u64)).raw(" dead, ");
    page.text(Count(status.draining_servers.len() as u64)).raw(" draining</p></div>");
    page.raw("<div class=card><h3>Regions</h3><b>").text(Count(status.regions.len() as u64)).raw("</b><p>in ");
    page.text(Count(status.tables.len() as u64)).raw(" tables; ");
    page.text(Count(status.in_transition.len() as u64)).raw(" in transition</p></div>");
    page.raw("<div class=card><h3>Rows per second</h3><b>").text(Rate(rates.reads + rates.writes)).raw("</b><p>");
    page.text(Rate(rates.reads))
        .raw(" read, ")
        .text(Rate(rates.writes))
        .raw(" written, as the servers report</p></div></div>");
}

fn procedures(page: &mut Markup, cluster: &Cluster) {
    if cluster.procedures.is_empty() {
        return;
    }
    page.raw("<h2>Procedures <span>").text(Count(cluster.procedures.len() as u64)).raw("</span></h2>");
    frame::table(page, &["n Id", "What"]);
    for (id, what) in cluster.procedures.iter().take(lists::FEW) {
        page.raw("<tr>");
        frame::number(page, id);
        frame::cell(page, what);
        page.raw("</tr>");
    }
    frame::table_end(page);
}

fn servers(page: &mut Markup, status: &Status, cluster: &Cluster) {
    page.raw("<h2>Region servers <span>").text(Count(cluster.servers.len() as u64)).raw("</span></h2>");
    if cluster.servers.is_empty() {
        frame::none(page, "No region server is there.");
    } else {
        let headings = [
            "Server",
            "",
            "n Regions",
            "n Store files",
            "n Size",
            "n Locality",
            "n Memstores",
            "n Reads",
            "n Writes",
            "n Memory",
            "n Of",
        ];
        frame::table(page, &headings);
        cluster.servers.iter().take(lists::PER_PAGE).for_each(|server| one_server(page, server));
        frame::table_end(page);
    }
    if !status.dead_servers.is_empty() {
        page.raw("<p>Dead: ");
        for (n, name) in status.dead_servers.iter().take(lists::FEW).enumerate() {
            page.raw(if n == 0 { "" } else { ", " }).text(name);
        }
        page.raw("</p>");
    }
}

fn one_server(page: &mut Markup, server: &Server) {
    page.raw("<tr>");
    frame::cell(page, &server.name);
    page.raw(if server.is_draining { "<td class=soft>draining</td>" } else { "<td></td>" });
    frame::number(page, Count(server.load.regions));
    frame::number(page, Count(server.load.store_files));
    frame::number(page, Bytes(server.load.store_file_bytes));
    frame::number(page, Part(server.load.locality.local_bytes, server.load.locality.total_bytes));
    frame::number(page, Bytes(server.load.memstore_bytes));
    frame::number(page, Count(server.load.reads));
    frame::number(page, Count(server.load.writes));
    frame::number(page, Bytes(server.memory_bytes.0));
    frame::number(page, Bytes(server.memory_bytes.1));
    page.raw("</tr>");
}

fn balancer(page: &mut Markup, cluster: &Cluster, now_ms: i64) {
    page.raw("<h2>Balancer</h2><div class=panel><dl><dt>Switch</dt><dd>");
    page.raw(if cluster.balancer_on { "on" } else { "off" }).raw("</dd><dt>Last run</dt><dd>");
    match cluster.last_balance {
        None => page.raw("none yet"),
        Some(run) => {
            let ago_ms = u64::try_from(now_ms - run.at_ms).unwrap_or(0);
            page.text(Span(ago_ms)).raw(" ago: ").text(Count(run.executed)).raw(" of ").text(Count(run.calculated));
            page.raw(" moves were begun")
        }
    };
    page.raw("</dd></dl></div>");
}

fn facts(page: &mut Markup, status: &Status, cluster: &Cluster) {
    page.raw("<h2>Master</h2><div class=panel><dl><dt>Version</dt><dd>").text(&status.version);
    page.raw("</dd><dt>Name</dt><dd><code>").text(&status.master).raw("</code></dd><dt>Started</dt><dd>");
    page.text(Moment(status.started_ms)).raw("</dd><dt>Backups</dt><dd>");
    if cluster.backup_masters.is_empty() {
        page.raw("none waits");
    }
    for (n, name) in cluster.backup_masters.iter().take(lists::FEW).enumerate() {
        page.raw(if n == 0 { "<code>" } else { ", <code>" }).text(name).raw("</code>");
    }
    page.raw("</dd><dt>Cluster</dt><dd><code>").text(&status.cluster_id);
    page.raw("</code></dd><dt>Data</dt><dd><code>").text(&status.data_directory);
    page.raw("</code></dd><dt>ZooKeeper</dt><dd><code>").text(&status.zookeeper_quorum).raw("</code></dd></dl></div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Order, RegionList};
    use crate::status::{Balance, InTransition};
    use model::ServerName;
    use model::status::{LoadTotals, Locality};

    #[test]
    fn a_cluster_shows_its_servers_its_procedures_and_its_balancer() {
        let name = |host: &str| ServerName::new(host, 16020, 1);
        let server = |host: &str, is_draining| Server {
            name: name(host),
            is_draining,
            load: LoadTotals {
                regions: 7,
                locality: Locality { total_bytes: 400, local_bytes: 299, local_ssd_bytes: 0 },
                ..LoadTotals::default()
            },
            memory_bytes: (1 << 20, 1 << 30),
        };
        let cluster = Cluster {
            servers: vec![server("one", false), server("two<b>", true)],
            backup_masters: vec![name("four")],
            balancer_on: true,
            last_balance: Some(Balance { at_ms: 1000, calculated: 5, executed: 3 }),
            procedures: vec![(17, "TransitRegionStateProcedure".to_owned())],
            groups: None,
        };
        let mut status = Status::unknown("0.1.0", 0);
        status.dead_servers = vec![name("three")];
        status.in_transition = vec![InTransition { region: "t,,1.x.".into(), state: "OPENING".into(), since_ms: 0 }];
        status.cluster = Some(cluster);
        let request = PageRequest {
            regions: RegionList { path: "/master-status", table: None, search: None, order: Order::Key, from: 0 },
            running: &[],
            slow_calls: &[],
            face: crate::page::Face::Master,
            now_ms: 61_000,
            serving: true,
        };
        let page = super::super::draw(&status, &RequestRates::default(), &request);
        for expected in [
            "one,16020,1",
            "two&lt;b&gt;",
            "draining",
            "three,16020,1",
            "four,16020,1",
            "OPENING",
            "3 of 5 moves",
            "1 min 0 s ago",
            ">0.747<",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(page.contains("TransitRegionStateProcedure") && page.contains("<dd>on</dd>"));
    }
}
