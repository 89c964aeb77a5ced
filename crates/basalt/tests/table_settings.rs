//! What a table's or family's descriptor says of configuration keys counts, in its CONFIGURATION and among its
//! attributes, and at once after an alter.

use crate::common::{Scratch, Server, Tester};
use bytes::Bytes;
use proto::methods::Method;
use proto::pb;

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
