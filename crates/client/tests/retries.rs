//! What the client does about each failure.

use crate::fake::{Fake, ONE, Seen, Step, TWO, table};
use basalt_client::{Action, Error, Increment, Put, Table};
use model::Get;
use proto::methods::Method;
use rpc::{Exception, Kind};
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn refuse(kind: Kind) -> Step {
    Step::Refuse(Exception::new(kind, "as told"))
}

fn throttled(message: &'static str) -> Step {
    Step::Refuse(Exception::new(Kind::RpcThrottling, message))
}

async fn get(table: &Table) -> Result<Vec<u8>, Error> {
    table.get(&Get::new("row")).await.map(|row| row.value(b"f", b"q").unwrap_or_default().to_vec())
}

/// Times between the calls, in milliseconds.
fn pauses(seen: &[Seen]) -> Vec<u64> {
    seen.windows(2).map(|two| (two[1].at - two[0].at).as_millis() as u64).collect()
}

/// One failure, then success: for how long the client waits between, and whether it asks hbase:meta again.
#[tokio::test(start_paused = true)]
async fn each_exception_has_its_pause_and_its_say_about_the_location() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    assert_eq!(get(&t).await.expect("read"), b"value");
    assert_eq!(fake.lookups(), 1);
    fake.seen();
    for (step, pause_ms, lookups) in [
        (refuse(Kind::NotServingRegion), 100, 1),
        (refuse(Kind::WrongRegion), 100, 1),
        (refuse(Kind::RegionServerStopped), 100, 1),
        (refuse(Kind::RegionServerAborted), 100, 1),
        (refuse(Kind::ServerNotRunningYet), 100, 1),
        (refuse(Kind::Io), 100, 1),
        (refuse(Kind::RegionOpening), 100, 0),
        (refuse(Kind::RegionTooBusy), 100, 0),
        (refuse(Kind::CallQueueTooBig), 500, 0),
        (refuse(Kind::CallDropped), 500, 0),
        (refuse(Kind::MultiActionResultTooLarge), 0, 0),
        (refuse(Kind::RetryImmediately), 0, 0),
        (throttled("number of requests exceeded - wait 1sec, 250ms"), 1250, 0),
        (throttled("read size limit exceeded - wait 40ms"), 40, 0),
    ] {
        fake.script([step.clone()]);
        assert_eq!(get(&t).await.expect("read at the second try"), b"value", "{step:?}");
        let seen = fake.seen();
        let pauses = pauses(&seen);
        assert_eq!(pauses.len(), 1, "{step:?}");
        // Up to a hundredth is added by chance, after an overload as much again; a timer is exact to a millisecond.
        let spread_ms = if pause_ms == 500 { pause_ms } else { pause_ms / 100 };
        assert!((pause_ms..=pause_ms + spread_ms + 2).contains(&pauses[0]), "{step:?}: {pauses:?}");
        assert_eq!(fake.lookups(), lookups, "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_asked_once_and_says_its_class() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    get(&t).await.expect("read");
    for kind in [
        Kind::DoNotRetry,
        Kind::NoSuchColumnFamily,
        Kind::AccessDenied,
        Kind::RequestTooBig,
        Kind::FailedSanityCheck,
        Kind::TableNotFound,
        Kind::UnknownProtocol,
    ] {
        fake.seen();
        fake.lookups();
        fake.script([refuse(kind)]);
        let refused = get(&t).await.expect_err("refused");
        assert_eq!(refused.class(), Some(kind.class()));
        assert_eq!((fake.seen().len(), fake.lookups()), (1, 0), "{kind:?}");
        get(&t).await.expect("read");
        assert_eq!(fake.lookups(), 0, "{kind:?} says nothing about the location");
    }
}

#[tokio::test(start_paused = true)]
async fn a_region_that_has_moved_is_followed_without_a_look_at_meta() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    get(&t).await.expect("read");
    fake.seen();
    fake.lookups();
    fake.script([Step::Refuse(Exception::region_moved("two", 2, 7, 9))]);
    get(&t).await.expect("read");
    let servers: Vec<_> = fake.seen().iter().map(|seen| seen.server).collect();
    assert_eq!((servers, fake.lookups()), (vec![ONE, TWO], 0));
    // hbase:meta knows better than the servers.
    fake.script([refuse(Kind::NotServingRegion)]);
    get(&t).await.expect("read");
    let servers: Vec<_> = fake.seen().iter().map(|seen| seen.server).collect();
    assert_eq!((servers, fake.lookups()), (vec![TWO, ONE], 1));
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_until_tries_or_time_are_over() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    get(&t).await.expect("read");
    fake.seen();
    let few = t.with(|options| options.retries = 4);
    fake.script((0..5).map(|_| refuse(Kind::RegionTooBusy)));
    let failed = get(&few).await.expect_err("five refusals");
    assert!(matches!(failed, Error::RetriesExhausted { tries: 5, .. }), "{failed}");
    assert_eq!(failed.short_class(), Some("RegionTooBusyException"));
    let waited = pauses(&fake.seen());
    assert_eq!(waited.iter().map(|ms| ms / 100).collect::<Vec<_>>(), [1, 2, 3, 5], "{waited:?}");

    let short = t.with(|options| options.operation_timeout = MS(400));
    fake.script((0..9).map(|_| refuse(Kind::RegionTooBusy)));
    let began = tokio::time::Instant::now();
    assert!(matches!(get(&short).await, Err(Error::RetriesExhausted { .. })));
    assert!(began.elapsed() <= MS(405), "{:?}", began.elapsed());
    let seen = fake.seen();
    let last = seen.last().expect("asked");
    assert!(last.timeout_ms < 150, "the last call has what is left of the operation's time: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_throttling_server_that_says_longer_than_there_is_time_is_not_asked_again() {
    let fake = Fake::default();
    let t = fake.connect().table(&table()).with(|options| options.operation_timeout = MS(5000));
    get(&t).await.expect("read");
    fake.seen();
    fake.script([throttled("write size limit exceeded - wait 1min, 0ms")]);
    let began = tokio::time::Instant::now();
    let failed = get(&t).await.expect_err("too long");
    assert_eq!(failed.short_class(), Some("RpcThrottlingException"));
    assert_eq!((fake.seen().len(), began.elapsed().as_millis()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_answered_is_lost_after_its_timeout() {
    let fake = Fake::default();
    let connection = fake.connect_with(|options| {
        options.read_rpc_timeout = Some(MS(300));
        options.rpc_timeout = MS(700);
    });
    let t = connection.table(&table());
    get(&t).await.expect("read");
    fake.seen();
    fake.script([Step::Hang]);
    get(&t).await.expect("read at the second try");
    let seen = fake.seen();
    assert_eq!(seen.iter().map(|seen| seen.timeout_ms).collect::<Vec<_>>(), [300, 300]);
    let waited = pauses(&seen);
    assert!((400..=410).contains(&waited[0]), "the timeout and a pause: {waited:?}");
    fake.script([Step::Hang]);
    let once = t.with(|options| options.retries = 0);
    let failed = once.put(&Put::new("row").add("f", "q", "v").build()).await.expect_err("lost");
    assert_eq!(failed.short_class(), Some("CallTimeoutException"), "{failed}");
    assert_eq!(fake.seen()[0].timeout_ms, 700, "writes have a timeout of their own");
}

#[tokio::test(start_paused = true)]
async fn a_disabled_table_is_found_out_at_the_first_failure() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    fake.disable();
    fake.script((0..20).map(|_| refuse(Kind::NotServingRegion)));
    let failed = get(&t).await.expect_err("disabled");
    assert_eq!(failed.short_class(), Some("TableNotEnabledException"));
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_counts_carries_one_nonce_through_all_its_tries() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    let add = Increment::new("row").add("f", "n", 1).build();
    fake.script([Step::Hang, refuse(Kind::CallDropped)]);
    let hasty = t.with(|options| options.write_rpc_timeout = MS(50));
    hasty.increment(&add).await.expect("counted");
    let nonces: Vec<_> = fake.seen().iter().map(|seen| seen.nonces[0].expect("marked")).collect();
    assert!(nonces.len() == 3 && nonces.iter().all(|nonce| *nonce == nonces[0]), "{nonces:?}");
    hasty.increment(&add).await.expect("counted");
    assert_ne!(fake.seen()[0].nonces[0], Some(nonces[0]), "another operation");
    fake.script([refuse(Kind::RegionTooBusy)]);
    t.batch(&[Action::Mutate(add)]).await.expect("a batch")[0].as_ref().expect("counted");
    let seen = fake.seen();
    assert!(seen.len() == 2 && seen[0].nonces == seen[1].nonces && seen[0].nonces[0].is_some(), "{seen:?}");
    t.put(&Put::new("row").add("f", "q", "v").build()).await.expect("put");
    assert_eq!(fake.seen()[0].nonces, [None]);
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_only_what_may_pass_is_sent_again() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    let put = |row: &str| Action::Mutate(Put::new(row).add("f", "q", "v").build());
    fake.script([
        Step::RefuseRows(&["b", "d"], Exception::new(Kind::RegionTooBusy, "as told")),
        Step::RefuseRows(&["d"], Exception::new(Kind::NoSuchColumnFamily, "as told")),
    ]);
    let outcomes = t.batch(&["a", "b", "c", "d"].map(put)).await.expect("a batch");
    let ok: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, true, true, false]);
    let refused = outcomes[3].as_ref().expect_err("refused for good");
    assert_eq!(refused.short_class(), Some("NoSuchColumnFamilyException"));
    let seen = fake.seen();
    let rows: Vec<_> = seen.iter().map(|seen| seen.rows.join("")).collect();
    assert_eq!(rows, ["abcd", "bd"]);
    assert!(seen.iter().all(|seen| seen.method == Method::ClientMulti));

    // The whole call failed: all of it is sent again, elsewhere if hbase:meta says so.
    fake.lookups();
    fake.move_to(TWO);
    fake.script([refuse(Kind::NotServingRegion)]);
    t.batch(&["a", "b"].map(put)).await.expect("a batch").iter().for_each(|outcome| assert!(outcome.is_ok()));
    let servers: Vec<_> = fake.seen().iter().map(|seen| seen.server).collect();
    assert_eq!((servers, fake.lookups()), (vec![ONE, TWO], 1));
}

/// Dropping an operation that waits, for a reply or between two tries, is the end of it.
#[tokio::test(start_paused = true)]
async fn an_operation_that_is_dropped_is_not_tried_again() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    get(&t).await.expect("read");
    fake.seen();
    for step in [Step::Hang, refuse(Kind::CallQueueTooBig)] {
        fake.script([step.clone()]);
        let dropped = tokio::time::timeout(MS(200), get(&t)).await;
        assert!(dropped.is_err(), "{step:?}");
        tokio::time::sleep(MS(600_000)).await;
        assert_eq!(fake.seen().len(), 1, "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_carry_the_priority_and_attributes_of_their_table() {
    let fake = Fake::default();
    let t = fake.connect().table(&table());
    let marked = t.with(|options| options.priority = Some(42)).with_request_attribute("who", "me");
    get(&marked).await.expect("read");
    get(&t).await.expect("read");
    marked.batch(&[Action::Get(Get::new("row"))]).await.expect("a batch");
    let seen = fake.seen();
    let of = |seen: &Seen| (seen.priority, seen.attributes.clone());
    let with = (42, vec![("who".to_owned(), "me".into())]);
    assert_eq!(seen.iter().map(of).collect::<Vec<_>>(), [with.clone(), (0, Vec::new()), with]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_answers_where_the_primary_is_silent_and_that_is_allowed() {
    let fake = Fake::default();
    fake.replicate();
    let connection = fake.connect();
    let t = connection.table(&table());
    let timeline = Get { timeline: true, ..Get::new("row") };
    let row = t.get(&timeline).await.expect("read");
    assert!(!row.is_stale(), "the primary was quick");
    assert_eq!(fake.seen().len(), 1);
    fake.script([Step::Hang]);
    let row = t.get(&timeline).await.expect("read");
    assert!(row.is_stale() && row.value(b"f", b"q") == Some(&b"value"[..]));
    let seen = fake.seen();
    assert_eq!(seen.iter().map(|seen| seen.server).collect::<Vec<_>>(), [ONE, TWO]);
    let waited = pauses(&seen);
    assert!((10..=12).contains(&waited[0]), "the primary alone was waited for first: {waited:?}");
    let metrics = connection.metrics();
    assert_eq!((metrics.replica_reads, metrics.replica_reads_won), (1, 1));
    let replicas = t.replicas_of(b"row", false).await.expect("located");
    assert_eq!(replicas.iter().map(|replica| replica.region.replica_id).collect::<Vec<_>>(), [0, 1]);
}
