//! `tests/inventory/online.csv`, every key that HBase 2.6.4 reads again while it runs, held against the settings' rows and the tests that it names.
#![allow(clippy::disallowed_methods, reason = "a test reads a table of the tree")]

use crate::settings_doc::settings;
use std::collections::BTreeSet;
use std::path::Path;

/// The fields of a line; a quoted one may have commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("there is one").push(c),
        }
    }
    fields
}

#[test]
fn every_key_that_hbase_reads_again_is_read_again_here_or_has_no_effect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = std::fs::read_to_string(root.join("tests/inventory/online.csv")).expect("the table is there");
    let read: BTreeSet<&str> = settings::rows().iter().map(|row| row.key()).collect();
    let mut seen = BTreeSet::new();
    let mut untested = 0;
    for line in table.lines().skip(1) {
        let fields = fields(line);
        let [key, by, here, why] = &fields[..] else { panic!("four fields: {line}") };
        assert!(seen.insert(key.clone()), "{key} stands there twice");
        assert!(!by.is_empty() && !why.is_empty(), "{line}");
        let is_read = read.contains(key.as_str());
        match here.as_str() {
            "here" => {
                assert!(is_read, "{key} is read by no row of the settings");
                let (file, test) = why.split_once("::").expect("a file and a test");
                let source = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
                assert!(source.contains(&format!("fn {test}(")), "{file} has no test {test}");
                let last = key.rsplit('.').next().expect("a word");
                assert!(source.contains(last), "{file} says nothing of {key}");
            }
            "untested" => {
                assert!(is_read, "{key} is read by no row of the settings");
                untested += 1;
            }
            // One that is read all the same is read once.
            "none" => assert!(!is_read || why.contains("at the start"), "{key} is read: has it no effect?"),
            other => panic!("{other} is no state of {key}"),
        }
    }
    assert_eq!(untested, 0, "keys are read again, and no test sees it");
}
