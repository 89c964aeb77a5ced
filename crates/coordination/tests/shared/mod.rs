//! What two sessions of an ensemble see, played on the model that the simulated cluster stands on, and on a real ZooKeeper.

use bytes::Bytes;
use coordination::{Claim, Coordinator};

fn value(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

/// Plays it below `base`, which is there and empty; `end_one` ends the session of `one`, and returns when the ensemble has done so.
///
/// # Panics
/// Something else is answered.
pub async fn play(one: &dyn Coordinator, other: &dyn Coordinator, base: &str, end_one: impl AsyncFnOnce()) {
    let path = |name: &str| format!("{base}/{name}");
    let (a, b, none) = (path("a"), path("b"), path("none"));
    // What is not there.
    assert_eq!(one.value(&none).await, Ok(None));
    assert_eq!(one.latest_value(&none).await, Ok(None));
    assert_eq!(one.children(&none).await, Ok(Vec::new()));
    one.remove(&none).await.expect("nothing happens");
    // A node is one session's.
    assert_eq!(one.claim(&a, b"one").await, Ok(Claim::Ours));
    assert_eq!(one.claim(&a, b"one").await, Ok(Claim::Ours), "again is no other's");
    assert_eq!(other.claim(&a, b"other").await, Ok(Claim::Taken(Bytes::from_static(b"one"))));
    assert_eq!(other.latest_value(&a).await, Ok(value("one")));
    assert_eq!(other.children_other_than(base, Vec::new()).await, Ok(vec!["a".to_owned()]));
    // What is another already is answered at once.
    assert_eq!(other.value_other_than(&a, None).await, Ok(value("one")));
    assert_eq!(other.claim(&b, b"b").await, Ok(Claim::Ours));
    assert_eq!(one.children_other_than(base, vec!["a".to_owned()]).await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    // Anybody may remove it, and another is made.
    one.remove(&b).await.expect("removed");
    assert_eq!(other.value_other_than(&b, value("b")).await, Ok(None));
    assert_eq!(one.claim(&b, b"again").await, Ok(Claim::Ours));
    // With the session its nodes go; the other hears of it, and may have them.
    let waiting = async {
        assert_eq!(other.value_other_than(&a, value("one")).await, Ok(None));
        assert_eq!(
            other.children_other_than(base, vec!["a".to_owned(), "b".to_owned()]).await.map(|names| names.len()),
            Ok(0)
        );
    };
    tokio::join!(waiting, end_one());
    assert_eq!(other.claim(&a, b"other").await, Ok(Claim::Ours));
    other.remove(&a).await.expect("removed");
}
