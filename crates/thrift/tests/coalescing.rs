//! `hbase.regionserver.thrift.coalesceIncrement`.

use crate::socket::{Gateway, b};
use basalt_thrift::Version;
use basalt_thrift::v1::types::*;
use basalt_thrift::wire::Wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments_of_a_counter_are_written_together_and_none_is_lost_by_a_stop() {
    let gateway = Gateway::start(Version::One, |options| options.coalesce_increments = true).await;
    let mut client = gateway.connect().await;
    let family = ColumnDescriptor {
        name: b("f:"),
        max_versions: 1,
        compression: "NONE".to_owned(),
        bloom_filter_type: "NONE".to_owned(),
        time_to_live: -1,
        ..ColumnDescriptor::default()
    };
    client
        .call::<()>("createTable", |w, last| {
            b("t").write_field(w, 1, last);
            vec![family].write_field(w, 2, last);
        })
        .await
        .value();
    let increment =
        |n: usize| TIncrement { table: b("t"), row: b(["r0", "r1", "r2"][n % 3]), column: b("f:n"), ammount: 2 };
    for n in 0..150 {
        client.call::<()>("increment", |w, last| increment(n).write_field(w, 1, last)).await.value();
    }
    let rows: Vec<TIncrement> = (0..150).map(increment).collect();
    client.call::<()>("incrementRows", |w, last| rows.write_field(w, 1, last)).await.value();
    let place = gateway.stop_gateway().await;
    for row in ["r0", "r1", "r2"] {
        let table = place.connection.table(&model::TableName::parse("t").expect("a name"));
        let found = table.get(&model::Get::new(row.as_bytes().to_vec())).await.expect("it is served");
        assert_eq!(found.value(b"f", b"n"), Some(&200i64.to_be_bytes()[..]), "{row}");
    }
    place.stop().await;
}
