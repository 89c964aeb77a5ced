//! A server on a real HDFS, where `BASALT_TEST_HDFS` names one.
#![cfg(feature = "hdfs")]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::common::{Server, Tester, start_refused};
use std::path::PathBuf;

/// A directory on the HDFS as `hbase.rootdir`; `None`, with a line, where there is none to test on.
fn root(name: &str) -> Option<PathBuf> {
    let Ok(hdfs) = std::env::var("BASALT_TEST_HDFS") else {
        println!("skipped: BASALT_TEST_HDFS names no HDFS");
        return None;
    };
    Some(PathBuf::from(format!("{hdfs}/basalt-test/{name}-{}", std::process::id())))
}

/// Every acknowledged put is there after each kill; the next start takes the log's lease and waits for nobody.
#[tokio::test]
async fn a_killed_server_on_hdfs_loses_nothing() {
    let Some(root) = root("kill") else { return };
    let mut acknowledged = 0;
    for life in 0..3 {
        let server = Server::start(&root, &[]);
        let tester = Tester::connect(&server).await;
        if life == 0 {
            tester.create_table("t", &[]).await;
        }
        let region = tester.regions("t").await.remove(0);
        for n in 0..acknowledged {
            let found = tester.get(&region, &format!("row{n}")).await.expect("an answer");
            assert_eq!(found.as_deref(), Some(format!("value{n}").as_bytes()), "row{n} in life {life}");
        }
        for n in acknowledged..acknowledged + 100 {
            tester.put(&region, &format!("row{n}"), &format!("value{n}")).await.expect("acknowledged");
        }
        acknowledged += 100;
        server.kill();
    }
}

/// Two servers would take each other's files.
#[tokio::test]
async fn a_root_directory_on_hdfs_has_one_server() {
    let Some(root) = root("two") else { return };
    let server = Server::start(&root, &[]);
    let (status, said) = start_refused(&root, &[]);
    assert!(!status.success(), "{said}");
    assert!(
        said.contains("is in use by the process with pid") && said.contains(&server.child.id().to_string()),
        "{said}"
    );
}
