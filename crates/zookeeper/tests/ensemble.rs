//! Against a real ZooKeeper, where `BASALT_TEST_ZOOKEEPER` names one (`127.0.0.1:2181`).

#[path = "../../coordination/tests/shared/mod.rs"]
mod shared;

use basalt_zookeeper::{Claim, Ensemble, EnsembleError, Options, Security};
use bytes::Bytes;
use coordination::{Coordinator, ZnodeStore};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `None`, with a line, where there is none to test on.
fn options() -> Option<Options> {
    let Ok(connect) = std::env::var("BASALT_TEST_ZOOKEEPER") else {
        println!("skipped: BASALT_TEST_ZOOKEEPER names no ensemble");
        return None;
    };
    Some(Options { connect, session_timeout: Duration::from_secs(6), security: Security::default() })
}

fn base(name: &str) -> String {
    format!("/basalt-test-{name}-{}", std::process::id())
}

async fn open(options: &Options) -> Ensemble {
    Ensemble::connect(options.clone()).await.expect("a session")
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_become_what_they_were_last_told_to_be() {
    let Some(options) = options() else { return };
    let (one, other, base) = (open(&options).await, open(&options).await, base("nodes"));
    one.ensure(&format!("{base}/rs")).expect("a path");
    one.publish(&format!("{base}/table/t"), Bytes::from_static(b"1"), false).expect("a path");
    one.publish(&format!("{base}/table/t"), Bytes::from_static(b"2"), false).expect("a path");
    one.publish(&format!("{base}/rs/a"), Bytes::from_static(b"live"), true).expect("a path");
    one.written().await.expect("written");
    assert_eq!(other.value(&format!("{base}/table/t")).await.expect("an answer").as_deref(), Some(&b"2"[..]));
    assert_eq!(other.value(&format!("{base}/rs/a")).await.expect("an answer").as_deref(), Some(&b"live"[..]));
    one.delete(&format!("{base}/table/t")).expect("a path");
    one.delete(&format!("{base}/table/t")).expect("again");
    one.written().await.expect("written");
    assert_eq!(other.value(&format!("{base}/table/t")).await.expect("an answer"), None);
    // With the session its ephemeral node goes, and the other hears of it.
    drop(one);
    tokio::time::timeout(Duration::from_secs(20), other.changed(&format!("{base}/rs/a")))
        .await
        .expect("in time")
        .expect("told");
    assert_eq!(other.value(&format!("{base}/rs/a")).await.expect("an answer"), None);
    for path in ["table", "rs", ""] {
        other.remove(format!("{base}/{path}").trim_end_matches('/')).await.expect("removed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_node_is_one_sessions() {
    let Some(options) = options() else { return };
    let (one, other, path) = (open(&options).await, open(&options).await, base("claim"));
    assert_eq!(one.claim(&path, b"one").await.expect("an answer"), Claim::Ours);
    assert_eq!(one.claim(&path, b"one").await.expect("an answer"), Claim::Ours, "a lost answer is no other's node");
    assert_eq!(other.claim(&path, b"other").await.expect("an answer"), Claim::Taken(Bytes::from_static(b"one")));
    let (changed, ()) = tokio::join!(other.changed(&path), async { drop(one) });
    changed.expect("told");
    assert_eq!(other.claim(&path, b"other").await.expect("an answer"), Claim::Ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ensemble_that_does_not_answer_is_named() {
    // Nobody listens on port 1.
    let options = Options {
        connect: "127.0.0.1:1".into(),
        session_timeout: Duration::from_secs(1),
        security: Security::default(),
    };
    let error = Ensemble::connect(options).await.err().expect("nobody is there");
    assert!(matches!(error, EnsembleError::Unreachable { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:1") && text.contains("hbase.zookeeper.quorum"), "{text}");
}

/// What the simulated cluster's model of an ensemble claims.
#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_see_what_the_model_says() {
    let Some(options) = options() else { return };
    let (one, other, base) = (Arc::new(open(&options).await), open(&options).await, base("model"));
    other.ensure(&base).expect("a path");
    other.written().await.expect("written");
    let ends = Mutex::new(Some(one.clone()));
    let held: Arc<dyn Coordinator> = one;
    let end = async || {
        let nodes = [format!("{base}/a"), format!("{base}/b")];
        // Its nodes go as they do with the session, which the other one cannot end.
        let one = ends.lock().expect("nobody panicked").take().expect("once");
        for node in &nodes {
            one.remove(node).await.expect("removed");
        }
    };
    shared::play(&*held, &other, &base, end).await;
    other.remove(&base).await.expect("removed");
}
