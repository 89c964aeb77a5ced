//! Groups of region servers: all of them on the master's status page, and one on a page of its own. Follows: `RSGroupListTmpl`, `rsgroup.jsp`.

use super::{frame, lists};
use crate::markup::{Bytes, Count, Markup, Part};
use crate::query;
use crate::status::{Cluster, Server, ServerGroup, Status};
use model::status::LoadTotals;
use std::collections::HashMap;

/// The servers of a group: those that are online, with what they reported, and the addresses of the others.
fn servers_of<'a>(cluster: &'a Cluster, group: &'a ServerGroup) -> (Vec<&'a Server>, Vec<&'a str>) {
    let online: HashMap<String, &Server> =
        cluster.servers.iter().map(|server| (server.name.address(), server)).collect();
    let found = group.servers.iter().filter_map(|address| online.get(address).copied()).collect();
    let gone = group.servers.iter().filter(|address| !online.contains_key(*address)).map(String::as_str).collect();
    (found, gone)
}

/// A row for each group, where there are groups.
pub fn list(page: &mut Markup, cluster: &Cluster) {
    let Some(groups) = cluster.groups.as_ref() else { return };
    page.raw("<h2>RSGroups <span>").text(Count(groups.len() as u64)).raw("</span></h2>");
    let headings = [
        "RSGroup",
        "n Online servers",
        "n Dead servers",
        "n Tables",
        "n Regions",
        "n Average load",
        "n Store files",
        "n Size",
        "n Memstores",
        "n Reads",
        "n Writes",
        "n Memory",
        "n Of",
    ];
    frame::table(page, &headings);
    for group in groups.iter().take(lists::PER_PAGE) {
        let (online, gone) = servers_of(cluster, group);
        let sum = |of: fn(&Server) -> u64| online.iter().map(|server| of(server)).sum::<u64>();
        let regions = sum(|server| server.load.regions);
        page.raw("<tr><td><a href=\"/rsgroup.jsp?name=").text(query::encode(&group.name)).raw("\">");
        page.text(&group.name).raw("</a></td>");
        frame::number(page, Count(online.len() as u64));
        frame::number(page, Count(gone.len() as u64));
        frame::number(page, Count(group.tables.len() as u64));
        frame::number(page, Count(regions));
        #[expect(clippy::cast_precision_loss, reason = "numbers of regions are far below the limit")]
        frame::number(page, format_args!("{:.2}", regions as f64 / online.len().max(1) as f64));
        frame::number(page, Count(sum(|server| server.load.store_files)));
        frame::number(page, Bytes(sum(|server| server.load.store_file_bytes)));
        frame::number(page, Bytes(sum(|server| server.load.memstore_bytes)));
        frame::number(page, Count(sum(|server| server.load.reads)));
        frame::number(page, Count(sum(|server| server.load.writes)));
        frame::number(page, Bytes(sum(|server| server.memory_bytes.0)));
        frame::number(page, Bytes(sum(|server| server.memory_bytes.1)));
        page.raw("</tr>");
    }
    frame::table_end(page);
}

/// One group: its servers, its tables, its configuration. Without a name all of them.
pub fn one(page: &mut Markup, status: &Status, name: Option<&str>) {
    let groups = status.cluster.as_ref().and_then(|cluster| Some((cluster, cluster.groups.as_ref()?)));
    let Some((cluster, groups)) = groups else {
        frame::none(page, "RSGroups are not enabled.");
        return;
    };
    let Some(name) = name else { return list(page, cluster) };
    let Some(group) = groups.iter().find(|group| group.name == name) else {
        page.raw("<p class=bad>RSGroup: ").text(name).raw(" does not exist</p>");
        return;
    };
    servers(page, cluster, group);
    tables(page, status, group);
    if !group.configuration.is_empty() {
        page.raw("<h2>Configuration</h2>");
        frame::table(page, &["Key", "Value"]);
        for (key, value) in group.configuration.iter().take(lists::PER_PAGE) {
            page.raw("<tr>");
            frame::cell(page, key);
            frame::cell(page, value);
            page.raw("</tr>");
        }
        frame::table_end(page);
    }
}

fn servers(page: &mut Markup, cluster: &Cluster, group: &ServerGroup) {
    let (online, gone) = servers_of(cluster, group);
    page.raw("<h2 class=first>Region servers <span>").text(Count(group.servers.len() as u64)).raw("</span></h2>");
    if group.servers.is_empty() {
        frame::none(page, "No region server is in this group.");
        return;
    }
    let headings = [
        "Server",
        "",
        "n Regions",
        "n Stores",
        "n Store files",
        "n Size",
        "n Indexes",
        "n Bloom filters",
        "n Locality",
        "n Memstores",
        "n Reads",
        "n Writes",
        "n Memory",
        "n Of",
    ];
    frame::table(page, &headings);
    for Server { name, is_draining, load, memory_bytes } in online.into_iter().take(lists::PER_PAGE) {
        page.raw("<tr>");
        frame::cell(page, name);
        page.raw(if *is_draining { "<td class=soft>draining</td>" } else { "<td></td>" });
        frame::number(page, Count(load.regions));
        frame::number(page, Count(load.stores));
        frame::number(page, Count(load.store_files));
        frame::number(page, Bytes(load.store_file_bytes));
        frame::number(page, Bytes(load.index_bytes));
        frame::number(page, Bytes(load.bloom_bytes));
        frame::number(page, Part(load.locality.local_bytes, load.locality.total_bytes));
        frame::number(page, Bytes(load.memstore_bytes));
        frame::number(page, Count(load.reads));
        frame::number(page, Count(load.writes));
        frame::number(page, Bytes(memory_bytes.0));
        frame::number(page, Bytes(memory_bytes.1));
        page.raw("</tr>");
    }
    for address in gone.into_iter().take(lists::PER_PAGE) {
        page.raw("<tr>");
        frame::cell(page, address);
        page.raw("<td class=bad>Dead</td><td colspan=12></td></tr>");
    }
    frame::table_end(page);
}

fn tables(page: &mut Markup, status: &Status, group: &ServerGroup) {
    page.raw("<h2>Tables <span>").text(Count(group.tables.len() as u64)).raw("</span></h2>");
    if group.tables.is_empty() {
        frame::none(page, "No table is in this group.");
        return;
    }
    let sums = LoadTotals::by_table(status.regions.iter().map(|region| (&region.info.table, &region.load)));
    let none = LoadTotals::default();
    frame::table(page, &["Namespace", "Table", "State", "n Online regions", "n Other regions", "n Size", "Families"]);
    for name in group.tables.iter().take(lists::PER_PAGE) {
        let known = status.tables.iter().find(|table| table.name == *name);
        let load = sums.get(name).unwrap_or(&none);
        let of_table = |region: &str| region.split(',').next() == Some(name.as_str());
        let others = status.in_transition.iter().filter(|one| of_table(&one.region)).count();
        page.raw("<tr>");
        frame::cell(page, name.namespace());
        page.raw("<td><a href=\"/table.jsp?name=").text(query::encode(name.as_str())).raw("\">");
        page.text(name.qualifier()).raw("</a></td>");
        frame::cell(page, known.map_or("", |table| table.state));
        frame::number(page, Count(load.regions));
        frame::number(page, Count(others as u64));
        frame::number(page, Bytes(load.store_file_bytes));
        frame::cell(page, known.map(|table| table.families.join(", ")).unwrap_or_default());
        page.raw("</tr>");
    }
    frame::table_end(page);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{InTransition, Table};
    use model::{ServerName, TableName};

    fn status() -> Status {
        let table = |name: &str| TableName::parse(name).expect("legal");
        let server = |host: &str, regions| Server {
            name: ServerName::new(host, 16020, 1),
            is_draining: false,
            load: LoadTotals { regions, ..LoadTotals::default() },
            memory_bytes: (1 << 20, 1 << 30),
        };
        let group = |name: &str, servers: &[&str], tables: &[&str]| ServerGroup {
            name: name.to_owned(),
            servers: servers.iter().map(|host| format!("{host}:16020")).collect(),
            tables: tables.iter().map(|name| table(name)).collect(),
            configuration: vec![("a.key<b>".into(), "its value".into())],
        };
        let mut status = Status::unknown("0.1.0", 0);
        status.tables = vec![Table { name: table("ns:t"), state: "ENABLED", families: vec!["f".into(), "g".into()] }];
        status.in_transition = vec![InTransition { region: "ns:t,,1.x.".into(), state: "OPENING".into(), since_ms: 0 }];
        status.cluster = Some(Cluster {
            servers: vec![server("one", 7), server("two", 4)],
            groups: Some(vec![group("default", &["one"], &[]), group("reports", &["two", "three"], &["ns:t", "gone"])]),
            ..Cluster::default()
        });
        status
    }

    fn drawn(status: &Status, name: Option<&str>) -> String {
        let mut page = Markup::with_capacity(1000);
        one(&mut page, status, name);
        page.finish()
    }

    #[test]
    fn a_group_shows_its_servers_dead_ones_too_and_its_tables() {
        let page = drawn(&status(), Some("reports"));
        for expected in
            ["two,16020,1", "three:16020", "Dead", ">t</a>", "ENABLED", "f, g", "a.key&lt;b&gt;", "its value"]
        {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!page.contains("one,16020,1") && page.contains(">gone</a>"), "{page}");
        assert!(page.contains("<td class=n>0</td><td class=n>1</td>"), "one of its regions is on its way: {page}");
        assert!(drawn(&status(), Some("no<body>")).contains("RSGroup: no&lt;body&gt; does not exist"));
    }

    #[test]
    fn the_list_has_sums_of_each_group() {
        let page = drawn(&status(), None);
        assert!(page.contains("/rsgroup.jsp?name=reports") && page.contains("/rsgroup.jsp?name=default"), "{page}");
        // Of the second: one online, one dead, two tables, four regions.
        let row = page.split("<tr>").find(|row| row.contains("name=reports")).expect("its row");
        let numbers: Vec<&str> = row.split("<td class=n>").skip(1).take(4).collect();
        assert_eq!(numbers, ["1</td>", "1</td>", "2</td>", "4</td>"]);
    }

    #[test]
    fn without_groups_it_says_so() {
        let mut status = status();
        status.cluster = Some(Cluster::default());
        assert!(drawn(&status, Some("default")).contains("RSGroups are not enabled"));
        status.cluster = None;
        assert!(drawn(&status, None).contains("RSGroups are not enabled"));
    }
}
