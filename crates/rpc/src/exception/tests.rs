use super::*;
use std::collections::BTreeMap;
use std::path::Path;

/// class -> (do-not-retry, ancestors) of the inventory's rows that cross the wire.
fn inventory() -> BTreeMap<String, (bool, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/inventory/exceptions.csv");
    #[allow(clippy::disallowed_methods, reason = "a test reads its table from the tree")]
    let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|r| matches!(r[4], "yes" | "connection"))
        .map(|r| (r[0].to_owned(), (r[3] == "yes", r[2].to_owned())))
        .collect()
}

#[test]
fn each_class_that_crosses_the_wire_is_in_the_table_with_its_flags() {
    let mut wanted = inventory();
    assert!(wanted.len() > 90, "{}", wanted.len());
    // The inventory does not list it, but a put whose cells are of other rows is answered with it.
    wanted.insert("org.apache.hadoop.hbase.client.WrongRowIOException".into(), (false, "HBaseIOException".into()));
    for kind in Kind::ALL {
        let row = wanted.remove(kind.class());
        let (do_not_retry, ancestors) = row.unwrap_or_else(|| panic!("{} is not in the inventory", kind.class()));
        assert_eq!(kind.do_not_retry(), do_not_retry, "{}", kind.class());
        let overloaded = ancestors.contains("HBaseServerException") || *kind == Kind::HBaseServer;
        assert_eq!(kind.server_overloaded().is_some(), overloaded, "{}", kind.class());
    }
    assert!(wanted.is_empty(), "classes without a row: {:?}", wanted.keys());
}

#[test]
fn a_moved_region_tells_where_in_fields_and_in_words() {
    let response = Exception::region_moved("other", 16020, 17, 42).to_response();
    assert_eq!((response.hostname.as_deref(), response.port), (Some("other"), Some(16020)));
    let words = "Region moved to: hostname=other port=16020 startCode=17. As of locationSeqNum=42.";
    assert!(response.stack_trace.unwrap().contains(words));
    assert_eq!(response.do_not_retry, Some(false));
}

#[test]
fn the_stack_text_begins_with_class_and_message_unless_bare() {
    let class = "org.apache.hadoop.hbase.DoNotRetryIOException";
    assert_eq!(Exception::do_not_retry("no").stack_trace(), format!("{class}: no\n"));
    assert_eq!(Exception::bare(Kind::FatalConnection, "Expected HEADER=").stack_trace(), "Expected HEADER=");
    let unknown = Exception::unknown_method("Gett");
    assert_eq!((unknown.class(), unknown.message()), (class, "java.lang.UnsupportedOperationException: Gett"));
    let overloaded = Exception::new(Kind::CallQueueTooBig, "full").to_response();
    assert_eq!((overloaded.server_overloaded, overloaded.do_not_retry), (Some(true), Some(false)));
    assert_eq!(Exception::io("x").to_response().server_overloaded, None);
}

#[test]
fn what_is_wrong_with_a_message_becomes_what_hbase_throws() {
    use convert::{ConvertError, ConvertErrorKind as Wrong};
    let of = |kind| Exception::from(ConvertError::new(kind, "Message.field", "so"));
    for (kind, class, message, unchecked) in [
        (Wrong::Malformed, Kind::DoNotRetry, "so", false),
        (Wrong::IllegalName, Kind::DoNotRetry, "so", false),
        (Wrong::IllegalArgument, Kind::Io, "java.lang.IllegalArgumentException: so", true),
        (Wrong::NullArgument, Kind::Io, "java.lang.NullPointerException: so", true),
        (Wrong::UnknownClass, Kind::DoNotRetry, "java.lang.ClassNotFoundException: so", false),
        (Wrong::IllegalVersions, Kind::Io, "so", false),
        (Wrong::WrongRow, Kind::WrongRow, "so", false),
        (Wrong::RemovedOperation, Kind::UnknownProtocol, "so", false),
        (Wrong::TooLarge, Kind::MultiActionResultTooLarge, "so", false),
    ] {
        let exception = of(kind);
        assert_eq!((exception.kind(), exception.message(), exception.is_unchecked()), (class, message, unchecked));
    }
    assert!(of(Wrong::Undecodable).message().ends_with("DeserializationException: so"));
    assert!(of(Wrong::IllegalComparator).is_unchecked() && !of(Wrong::Undecodable).is_unchecked());
    assert!(of(Wrong::IncompatibleFilter).message().ends_with("IncompatibleFilterException: so"));
}
