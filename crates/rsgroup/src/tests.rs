//! What groups become, what is refused and in HBase's words. Follows: `TestRSGroupsAdmin1`, `TestRSGroupsAdmin2`, `TestRSGroupsFallback`.

use crate::{Address, DEFAULT, Group, Groups, Moved, Refusal, Servers};
use model::TableName;
use proto::{Message, pb};
use std::collections::{BTreeMap, BTreeSet};

fn address(name: &str) -> Address {
    Address::new(name, 16020)
}

fn addresses(names: &str) -> BTreeSet<Address> {
    names.split_whitespace().map(address).collect()
}

fn table(name: &str) -> TableName {
    TableName::parse(name).expect("legal")
}

fn tables(names: &str) -> BTreeSet<TableName> {
    names.split_whitespace().map(table).collect()
}

fn online(names: &str) -> Servers {
    Servers { online: addresses(names), ..Servers::default() }
}

/// A cluster of five servers and three tables, before anybody made a group.
fn fresh() -> Groups {
    Groups::load([], &tables("t u ns:v"), &online("a b c d e"))
}

/// With `c` and the table `u` in the group `g`.
fn with_group() -> Groups {
    let groups = fresh().add("g").expect("added");
    let (groups, _) = groups.move_servers(&addresses("c"), "g", &online("a b c d e")).expect("moved");
    groups.move_tables(&tables("u"), "g").expect("moved").0
}

/// Servers and tables of a group, as text.
fn shown(groups: &Groups, name: &str) -> String {
    let group = groups.get(name).expect("there");
    let servers: Vec<&str> = group.servers.iter().map(|server| &*server.host).collect();
    let tables: Vec<&str> = group.tables.iter().map(TableName::as_str).collect();
    format!("{} | {}", servers.join(" "), tables.join(" "))
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Refusal>, message: &str) {
    assert_eq!(result.expect_err(message), Refusal::Constraint(message.to_owned()));
}

#[track_caller]
fn refused_for_good<T: std::fmt::Debug>(result: Result<T, Refusal>, message: &str) {
    assert_eq!(result.expect_err(message), Refusal::DoNotRetry(message.to_owned()));
}

/// What is always true, of any groups.
fn check(groups: &Groups) {
    assert!(groups.get(DEFAULT).is_some());
    let servers: Vec<&Address> = groups.list().flat_map(|group| &group.servers).collect();
    let tables: Vec<&TableName> = groups.list().flat_map(|group| &group.tables).collect();
    assert_eq!(servers.iter().collect::<BTreeSet<_>>().len(), servers.len(), "a server is in one group: {groups:?}");
    assert_eq!(tables.iter().collect::<BTreeSet<_>>().len(), tables.len(), "a table is in one group: {groups:?}");
    assert!(groups.list().all(|group| groups.get(&group.name) == Some(group)));
}

#[test]
fn what_no_group_has_is_the_default_groups() {
    assert_eq!(shown(&fresh(), DEFAULT), "a b c d e | ns:v t u");
    let groups = with_group();
    check(&groups);
    assert_eq!((shown(&groups, DEFAULT).as_str(), shown(&groups, "g").as_str()), ("a b d e | ns:v t", "c | u"));
    // As it is found at the next start: the default group's row counts for nothing, what came since is its.
    let kept: Vec<Group> = groups.list().cloned().collect();
    let found = Groups::load(kept, &tables("t u ns:v new"), &online("a c f"));
    assert_eq!((shown(&found, DEFAULT).as_str(), shown(&found, "g").as_str()), ("a f | new ns:v t", "c | u"));
    // Servers come and go; those of other groups stay theirs while they are away.
    let without_c = groups.with_online(&addresses("a b"));
    assert_eq!((shown(&without_c, DEFAULT).as_str(), shown(&without_c, "g").as_str()), ("a b | ns:v t", "c | u"));
    assert_eq!(without_c.of_server(&address("d")), None);
    assert_eq!(shown(&without_c.with_online(&addresses("c d")), DEFAULT), "d | ns:v t");
    assert_eq!(shown(&groups.without_table(&table("u")), "g"), "c | ");
    // Two rows that claim the same: nothing is twice.
    let twice = ["h", "g"].map(|name| Group { servers: addresses("a"), tables: tables("t"), ..Group::new(name) });
    let found = Groups::load(twice, &tables("t"), &online("a"));
    check(&found);
    assert_eq!((shown(&found, "g").as_str(), shown(&found, "h").as_str()), ("a | t", " | "));
}

#[test]
fn groups_are_added_renamed_configured_and_removed_as_hbase_allows_it() {
    let groups = with_group();
    refused_for_good(groups.add("g"), "Group already exists: g");
    refused_for_good(groups.add(DEFAULT), "Group already exists: default");
    for bad in ["", "foo*", "foo@", "-", "ä"] {
        refused(groups.add(bad), "RSGroup name should only contain alphanumeric characters");
    }
    assert_eq!(shown(&groups.add("foo_123").expect("legal"), "foo_123"), " | ");

    let configuration = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
    refused(groups.configure(DEFAULT, configuration.clone()), "configuration of default can't be stored persistently");
    refused_for_good(groups.configure("no", configuration.clone()), "RSGroup no does not exist");
    let configured = groups.configure("g", configuration.clone()).expect("stored");
    assert_eq!(configured.get("g").expect("there").configuration, configuration);

    refused(groups.rename(DEFAULT, "h"), "Can't rename default rsgroup");
    refused(groups.rename("no", "h"), "RSGroup no does not exist");
    refused(groups.rename("g", "g"), "Group already exists: g");
    refused(groups.rename("g", "h!"), "RSGroup name should only contain alphanumeric characters");
    let renamed = configured.rename("g", "h").expect("renamed");
    check(&renamed);
    assert_eq!((renamed.get("g"), shown(&renamed, "h").as_str()), (None, "c | u"));

    refused(groups.remove("no", []), "RSGroup no does not exist");
    refused(
        groups.remove("g", []),
        "RSGroup g has 1 tables; you must remove these tables from the rsgroup before the rsgroup can be removed.",
    );
    let (empty, _) = groups.move_tables(&tables("u"), DEFAULT).expect("moved");
    refused(
        empty.remove("g", []),
        "RSGroup g has 1 servers; you must remove these servers from the RSGroup beforethe RSGroup can be removed.",
    );
    let (empty, _) = empty.move_servers(&addresses("c"), DEFAULT, &online("a b c d e")).expect("moved");
    refused(empty.remove("g", [("other", "h"), ("ns", "g")]), "RSGroup g is referenced by namespace: ns");
    assert_eq!(empty.remove("g", [("other", "h")]).expect("removed"), fresh());
    let nothing = Groups::load([], &tables(""), &online(""));
    refused_for_good(nothing.remove(DEFAULT, []), "Group default does not exist or is a reserved group");
}

#[test]
fn servers_are_moved_from_one_group_and_leave_no_table_without_any() {
    let (groups, all) = (with_group(), online("a b c d e"));
    let to = |servers: &str, target: &str| groups.move_servers(&addresses(servers), target, &all);
    refused(to("a", ""), "RSGroup cannot be null.");
    refused(to("a", "no"), "RSGroup does not exist: no");
    refused(to("x", "g"), "Server x:16020 is either offline or it does not exist.");
    refused(to("a b d e", "g"), "should keep at least one server in 'default' RSGroup.");
    refused(
        to("a c", "g"),
        "Move server request should only come from one source RSGroup. Expecting only default but contains g",
    );
    refused(to("c", DEFAULT), "Cannot leave a RSGroup g that contains tables without servers to host them.");
    let gone = groups.move_servers(&addresses("a"), "g", &online("b c d e"));
    refused(gone, "Server a:16020 is not an online server in 'default' RSGroup.");
    assert_eq!(to("", "g").expect("nothing to do"), (groups.clone(), Moved::default()));

    let (moved, regions) = to("a b", "g").expect("moved");
    check(&moved);
    assert_eq!((shown(&moved, DEFAULT).as_str(), shown(&moved, "g").as_str()), ("d e | ns:v t", "a b c | u"));
    assert_eq!(regions, Moved { servers: addresses("a b"), tables: BTreeSet::new() });
    // What is away comes back to the default group when it comes back at all.
    let (back, regions) = moved.move_servers(&addresses("a b"), DEFAULT, &online("b c d e")).expect("moved");
    assert_eq!((shown(&back, DEFAULT).as_str(), shown(&back, "g").as_str()), ("b d e | ns:v t", "c | u"));
    assert_eq!(regions.servers, addresses("b"));
}

#[test]
fn tables_are_moved_alone_and_with_servers() {
    let (groups, all) = (with_group(), online("a b c d e"));
    refused(groups.move_tables(&tables("t"), "no"), "Target no RSGroup does not exist.");
    let with_empty = groups.add("empty").expect("added");
    refused(with_empty.move_tables(&tables("t"), "empty"), "Target RSGroup must have at least one server.");
    assert_eq!(groups.move_tables(&tables(""), "no").expect("nothing to do").0, groups);
    let (moved, regions) = groups.move_tables(&tables("t u"), DEFAULT).expect("moved");
    check(&moved);
    assert_eq!((shown(&moved, DEFAULT).as_str(), shown(&moved, "g").as_str()), ("a b d e | ns:v t u", "c | "));
    assert_eq!(regions.tables, tables("t u"));

    let both =
        |servers: &str, names: &str| groups.move_servers_and_tables(&addresses(servers), &tables(names), "g", &all);
    refused(both("", "t"), "The list of servers to move cannot be null or empty.");
    refused(both("a", ""), "The list of tables to move cannot be null or empty.");
    refused(both("x", "t"), "Server x:16020 is either offline or it does not exist.");
    refused(
        both("a", "u"),
        "Move table request should only come from one source RSGroup. Expecting only default but contains g",
    );
    refused(both("a b d e", "t"), "Cannot leave a RSGroup default that contains tables without servers to host them.");
    let (moved, regions) = both("a", "t").expect("moved");
    check(&moved);
    assert_eq!((shown(&moved, DEFAULT).as_str(), shown(&moved, "g").as_str()), ("b d e | ns:v", "a c | t u"));
    assert_eq!(regions, Moved { servers: addresses("a"), tables: tables("t") });
}

#[test]
fn servers_are_forgotten_that_come_back_no_more() {
    let groups = with_group();
    refused(
        groups.remove_servers(&addresses(""), &online("")),
        "The set of servers to remove cannot be null or empty.",
    );
    refused(
        groups.remove_servers(&addresses("c"), &online("c")),
        "Server c:16020 is an online server, not allowed to remove.",
    );
    let dead = Servers { dead: addresses("c"), ..Servers::default() };
    refused(
        groups.remove_servers(&addresses("c"), &dead),
        "Server c:16020 is on the dead servers list, Maybe it will come back again, not allowed to remove.",
    );
    let draining = Servers { draining: addresses("c"), ..online("a c") };
    let after = groups.remove_servers(&addresses("c unknown"), &draining).expect("forgotten");
    assert_eq!(shown(&after, "g"), " | u");
}

#[test]
fn regions_go_to_servers_of_their_tables_group() {
    let groups = with_group();
    let group_of = |name: &str, own, namespace| groups.for_table(&table(name), own, namespace).name.as_str();
    assert_eq!(group_of("u", Some(DEFAULT), None), "g", "where it is counts first");
    assert_eq!(group_of("new", None, None), DEFAULT);
    assert_eq!(group_of("new", Some("g"), Some(DEFAULT)), "g");
    assert_eq!(group_of("ns:new", None, Some("g")), "g");
    assert_eq!(group_of("ns:new", Some("no"), Some("no")), DEFAULT, "names of no group count for nothing");

    let g = groups.get("g").expect("there");
    let candidates = |names: &str, fallback| groups.candidates(g, &addresses(names), fallback);
    assert_eq!(candidates("a c", true), addresses("c"));
    assert_eq!(candidates("a b", false), addresses(""), "they wait for one of their group");
    assert_eq!(candidates("a b", true), addresses("a b"));
    let (moved, _) = groups.move_servers(&addresses("a b d"), "g", &online("a b c d e")).expect("moved");
    let with_other = moved.add("other").expect("added");
    let other = with_other.get("other").expect("there");
    assert_eq!(with_other.candidates(other, &addresses("a c"), true), addresses("a c"), "nobody of default is there");
}

#[test]
fn rows_hold_hbases_message() {
    let before = with_group();
    let after = before.rename("g", "h").expect("renamed").configure("h", [("k".into(), "v".into())].into());
    let after = after.expect("configured");
    let changes = before.rows_after(&after);
    assert_eq!(changes.deleted, ["g"]);
    assert_eq!(changes.put.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [DEFAULT, "h"]);
    let bytes = changes.put[1].1.encode_to_vec();
    // name 1, tables 3 (namespace 1, qualifier 2), servers 4 (host 1, port 2, no start code), configuration 5 (name 1, value 2).
    let mut wanted = vec![0x0a, 1, b'h', 0x1a, 12, 0x0a, 7];
    wanted.extend(b"default");
    wanted.extend([0x12, 1, b'u', 0x22, 6, 0x0a, 1, b'c', 0x10, 0x94, 0x7d]);
    wanted.extend([0x2a, 6, 0x0a, 1, b'k', 0x12, 1, b'v']);
    assert_eq!(bytes, wanted);
    let read = |bytes: &[u8]| Group::from_proto(&pb::RsGroupInfo::decode(bytes).expect("a message"));
    assert_eq!(read(&bytes).as_ref(), Ok(after.get("h").expect("there")));
    let bad = |port: u32| pb::RsGroupInfo {
        name: "x".into(),
        servers: vec![pb::ServerName { host_name: "a".into(), port: Some(port), start_code: None }],
        ..pb::RsGroupInfo::default()
    };
    assert!(Group::from_proto(&bad(65_535)).is_ok());
    let error = Group::from_proto(&bad(65_536)).expect_err("no port").to_string();
    assert_eq!(error, "the group x names the server a:65536, and is not read: mend its row in hbase:rsgroup");
}
