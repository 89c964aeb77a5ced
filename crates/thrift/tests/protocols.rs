//! Every encoding and transport.

use crate::socket::{Gateway, b};
use basalt_thrift::Version;
use basalt_thrift::protocol::Protocol;
use basalt_thrift::v1::types::ColumnDescriptor;
use basalt_thrift::wire::Wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn binary_and_compact_buffered_and_framed_do_the_same() {
    for (protocol, framed) in
        [(Protocol::Binary, false), (Protocol::Binary, true), (Protocol::Compact, false), (Protocol::Compact, true)]
    {
        let gateway = Gateway::start(Version::One, |options| {
            options.protocol = protocol;
            options.framed = framed;
        })
        .await;
        let mut client = gateway.connect().await;
        let family = ColumnDescriptor { name: b("f:"), ..ColumnDescriptor::default() };
        let family = ColumnDescriptor {
            max_versions: 1,
            compression: "none".to_owned(),
            bloom_filter_type: "ROW".to_owned(),
            ..family
        };
        client
            .call::<()>("createTable", |w, last| {
                b("t").write_field(w, 1, last);
                vec![family].write_field(w, 2, last);
            })
            .await
            .value();
        assert!(client.call::<bool>("isTableEnabled", |w, last| b("t").write_field(w, 1, last)).await.value());
        gateway.stop().await;
    }
}
