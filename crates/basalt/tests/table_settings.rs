//! What a table's or family's descriptor says of configuration keys counts, in its CONFIGURATION and among its
//! attributes, and at once after an alter.
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use crate::common::tools::{alone, shell, text};
use crate::common::{Scratch, Server, Tester};
use bytes::Bytes;
use proto::methods::Method;
use proto::pb;
use std::collections::BTreeSet;
use std::path::PathBuf;

const LARGEST_CELL: &str = "hbase.server.keyvalue.maxsize";

/// The table's descriptor with these attributes and this CONFIGURATION beside it.
async fn alter(tester: &Tester, attributes: &[(&str, &str)], configuration: &[(&str, &str)]) {
    let name = model::TableName::parse("t").expect("legal");
    let mut table = model::TableDescriptor::new(name.clone(), [model::FamilyDescriptor::new("f")]);
    for (key, value) in attributes {
        table.attributes.insert(Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()));
    }
    table.configuration.extend(configuration.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let request = pb::ModifyTableRequest {
        table_name: convert::to_proto::table_name(&name),
        table_schema: convert::to_proto::table(&table),
        ..pb::ModifyTableRequest::default()
    };
    let response: pb::ModifyTableResponse =
        tester.master_call(Method::MasterModifyTable, &request).await.expect("alter");
    tester.finish(response.proc_id.expect("a procedure")).await.expect("the table is altered");
}

#[tokio::test]
async fn a_tables_word_for_the_largest_cell_counts_wherever_it_stands_and_after_an_alter() {
    let scratch = Scratch::new("table-settings");
    let server = Server::start(&scratch.join("root"), &[]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await.remove(0);
    let value = "x".repeat(200);
    let refused = async || match tester.put(&region, "r", &value).await {
        Ok(_) => false,
        Err(error) => {
            assert!(error.to_string().contains("exceeds limit of 100 bytes"), "{error}");
            true
        }
    };
    assert!(!refused().await, "the site's 10 MiB hold");
    alter(&tester, &[(LARGEST_CELL, "100")], &[]).await;
    assert!(refused().await, "among the attributes");
    alter(&tester, &[], &[(LARGEST_CELL, "100")]).await;
    assert!(refused().await, "in the CONFIGURATION");
    alter(&tester, &[(LARGEST_CELL, "100")], &[(LARGEST_CELL, "1000")]).await;
    assert!(!refused().await, "of a table the CONFIGURATION counts more");
    alter(&tester, &[], &[]).await;
    assert!(!refused().await, "the site's again");
}

/// A store of stripes whose blocks are packed with a dictionary: what was written is read, after a compaction, a kill and a restart as before.
#[test]
fn stripes_and_a_dictionary_of_a_real_process_keep_what_was_written() {
    let scratch = Scratch::new("stripes-dictionary");
    let root = scratch.join("root");
    let dictionary = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/hfile/zstd.dictionary");
    let words = [
        ("hbase.hstore.engine.class", "org.apache.hadoop.hbase.regionserver.StripeStoreEngine"),
        ("hbase.store.stripe.initialStripeCount", "2"),
        ("hbase.hstore.blockingStoreFiles", "100"),
        ("hbase.io.compress.zstd.dictionary", dictionary),
    ];
    let words: Vec<String> = words.iter().map(|(key, value)| format!("'{key}' => '{value}'")).collect();
    let family = format!("{{NAME => 'f', COMPRESSION => 'ZSTD', CONFIGURATION => {{{}}}}}", words.join(", "));
    let server = Server::start(&root, &[]);
    let mut commands = vec![format!("create 't', {family}")];
    for round in 0..5 {
        let row =
            |row: i32| format!("put 't', 'r{row:02}', 'f:q{round}', 'value {row} of round {round}', {}", 10 + round);
        commands.extend((0..30).map(row));
        commands.push("flush 't'".to_owned());
    }
    shell(&server, &commands.iter().map(String::as_str).collect::<Vec<_>>());
    let scan = |server: &Server| -> Vec<String> {
        let said = shell(server, &["scan 't'"]);
        said.lines().filter(|line| line.contains("column=f:")).map(str::to_owned).collect()
    };
    let before = scan(&server);
    assert_eq!(before.len(), 150);
    let files = |tree: &str| -> BTreeSet<PathBuf> {
        let table = root.join(tree).join("default/t");
        let regions = std::fs::read_dir(&table).into_iter().flatten();
        let dirs = regions.map(|entry| entry.expect("readable").path().join("f")).filter(|dir| dir.is_dir());
        let files = dirs.flat_map(|dir| std::fs::read_dir(dir).expect("there"));
        files.map(|entry| entry.expect("readable").path()).filter(|path| path.is_file()).collect()
    };
    shell(&server, &["major_compact 't'"]);
    // Five flushes make a file in each of two stripes, a compaction of a stripe makes one more.
    while files("data").len() + files("archive/data").len() <= 10
        || !shell(&server, &["compaction_state 't'"]).contains("NONE")
    {}
    assert_eq!(scan(&server), before);
    let compacted = files("data");
    server.kill();
    for file in &compacted {
        let verified = alone(&["hfile", "--verify", file.to_str().expect("UTF-8")]);
        assert!(verified.status.success(), "{}", text(&verified));
    }
    let server = Server::start(&root, &[]);
    assert_eq!(scan(&server), before);
    assert_eq!(server.terminate().code(), Some(0));
}
