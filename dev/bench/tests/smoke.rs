//! Every benchmark runs, in the smallest size, so that none can rot. What it says about speed is not looked at.
#![allow(clippy::disallowed_methods, reason = "finds the server's binary")]

use basalt_bench::{Machine, Scale, Session, groups, json, table_row};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn run(groups: &[groups::Group], server: Option<PathBuf>) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut lines = Vec::new();
    let mut session = Session::new(Scale::TINY, dir, |figures| lines.push(table_row(figures)));
    if let Some(server) = server {
        session.set_server(server);
    }
    session.run(groups).expect("every benchmark runs");
    let measured: Vec<&str> = session.figures().iter().map(|f| f.name.as_str()).collect();
    let listed: Vec<&str> = groups.iter().flat_map(|group| group.names).copied().collect();
    let as_set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(measured.len(), listed.len(), "each name once: {measured:?}");
    assert_eq!(as_set(&measured), as_set(&listed));
    for figures in session.figures() {
        assert!(figures.ops_per_s().min > 0.0 && figures.ops_per_s().max.is_finite(), "{figures:?}");
        // What is measured in turns has several times as many.
        assert!(figures.round_count() >= Scale::TINY.rounds, "{figures:?}");
    }
    let value = json(&Machine::this(), &Scale::TINY, session.figures());
    assert_eq!(value["figures"].as_array().map(Vec::len), Some(listed.len()));
    drop(session);
    assert_eq!(lines.len(), listed.len());
}

#[test]
fn every_name_is_listed_once() {
    let names: Vec<&str> = groups::ALL.iter().flat_map(|group| group.names).copied().collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn storage_benchmarks_run() {
    let storage: Vec<_> = groups::ALL.iter().filter(|group| !group.needs_server).copied().collect();
    run(&storage, None);
}

/// Against the binary given in BASALT_BINARY; this crate cannot have it built.
#[test]
fn server_benchmarks_run() {
    let Some(server) = std::env::var_os("BASALT_BINARY").map(PathBuf::from) else {
        eprintln!("passed over: BASALT_BINARY names no server");
        return;
    };
    let wire: Vec<_> = groups::ALL.iter().filter(|group| group.needs_server).copied().collect();
    run(&wire, Some(server));
}
