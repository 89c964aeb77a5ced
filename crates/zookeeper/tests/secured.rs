//! Against a real ZooKeeper that knows the name `hbase` with the password `secret`, where `BASALT_TEST_ZOOKEEPER_SECURED` names one
//! (`127.0.0.1:2181`), and over TLS in builds with that feature (`BASALT_TEST_ZOOKEEPER_TLS`, `BASALT_TEST_ZOOKEEPER_CA`).

use basalt_zookeeper::{Ensemble, EnsembleError, Options, Sasl, Security};
use bytes::Bytes;
use coordination::ZnodeStore;
use std::time::Duration;

/// `None`, with a line, where there is none to test on.
fn options(password: Option<&str>) -> Option<Options> {
    let Ok(connect) = std::env::var("BASALT_TEST_ZOOKEEPER_SECURED") else {
        println!("skipped: BASALT_TEST_ZOOKEEPER_SECURED names no ensemble");
        return None;
    };
    let sasl = password.map(|password| Sasl { username: "hbase".to_owned(), password: password.to_owned() });
    Some(Options { connect, session_timeout: Duration::from_secs(6), security: Security { sasl, tls: None } })
}

async fn open(options: Option<Options>) -> Ensemble {
    Ensemble::connect(options.expect("asked for before")).await.expect("a session")
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_process_with_a_name_are_read_by_all_and_changed_by_their_own() {
    let Some(named) = options(Some("secret")) else { return };
    let (one, same, nobody) = (open(Some(named.clone())).await, open(Some(named)).await, open(options(None)).await);
    let path = format!("/basalt-test-secured-{}", std::process::id());
    let table = format!("{path}/table");
    one.publish(&table, Bytes::from_static(b"1"), false).expect("a path");
    one.written().await.expect("written");
    assert_eq!(nobody.value(&table).await.expect("an answer").as_deref(), Some(&b"1"[..]), "all may read it");
    nobody.publish(&table, Bytes::from_static(b"2"), false).expect("a path");
    nobody.written().await.expect("it was tried");
    let refused = nobody.remove(&table).await.expect_err("not its own").to_string();
    assert!(refused.contains("refused a request"), "{refused}");
    assert_eq!(same.value(&table).await.expect("an answer").as_deref(), Some(&b"1"[..]), "nobody else changed it");
    same.publish(&table, Bytes::from_static(b"3"), false).expect("a path");
    same.written().await.expect("written");
    assert_eq!(nobody.value(&table).await.expect("an answer").as_deref(), Some(&b"3"[..]), "the same name may");
    for path in [&table, &path] {
        same.remove(path).await.expect("removed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_of_with_what_to_look_at() {
    let Some(wrong) = options(Some("guessed")) else { return };
    let error = Ensemble::connect(wrong).await.err().expect("it is wrong");
    assert!(matches!(error, EnsembleError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("basalt.zookeeper.sasl.password.file"), "{error}");
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_over_tls_with_who_is_trusted_alone() {
    use basalt_zookeeper::Tls;
    let of = |name: &str| std::env::var(name).ok();
    let (Some(connect), Some(authority)) = (of("BASALT_TEST_ZOOKEEPER_TLS"), of("BASALT_TEST_ZOOKEEPER_CA")) else {
        println!("skipped: BASALT_TEST_ZOOKEEPER_TLS names no ensemble");
        return;
    };
    let session_timeout = Duration::from_secs(6);
    let with = |trusted: String| {
        let security = Security { sasl: None, tls: Some(Tls { trusted, identity: None }) };
        Options { connect: connect.clone(), session_timeout, security }
    };
    #[allow(clippy::disallowed_methods, reason = "a file of the test's")]
    let trusted = std::fs::read_to_string(&authority).expect("a certificate");
    let session = Ensemble::connect(with(trusted)).await.expect("a session");
    assert_eq!(session.value("/nobody-has-made-it").await.expect("an answer"), None);
    let unreadable = Ensemble::connect(with("no certificate".to_owned())).await.err().expect("it is none");
    assert!(matches!(unreadable, EnsembleError::Unusable(_)), "{unreadable}");
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn a_build_without_tls_says_so() {
    let tls = Some(basalt_zookeeper::Tls { trusted: String::new(), identity: None });
    let security = Security { sasl: None, tls };
    let options = Options { connect: "127.0.0.1:1".into(), session_timeout: Duration::from_secs(1), security };
    let error = Ensemble::connect(options).await.err().expect("not in this build").to_string();
    assert!(error.contains("zookeeper-tls"), "{error}");
}
