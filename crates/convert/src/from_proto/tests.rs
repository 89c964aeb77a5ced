//! Messages that HBase's client made, as values and back to the same bytes.

use super::*;
use crate::to_proto;
use ::filter::{Comparator, CompareOp};
use cell::CellType;
use model::mutation::ConditionTest;
use model::{Durability, FamilyDescriptor, MutationKind, Nonce};
use proto::Message;
use std::path::Path;
use std::sync::Arc;

fn golden(name: &str) -> Vec<serde_json::Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/misc").join(name);
    #[allow(clippy::disallowed_methods, reason = "a test reads its vectors from the tree")]
    let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn hex(text: &str) -> Bytes {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

fn client_proto(what: &str) -> Bytes {
    let line = golden("client-protos.jsonl").into_iter().find(|l| l["what"].as_str().unwrap().starts_with(what));
    hex(line.unwrap()["hex"].as_str().unwrap())
}

fn decode<M: Message + Default>(what: &str) -> M {
    M::decode(client_proto(what)).unwrap()
}

#[test]
fn every_filter_of_the_client_is_read_and_written_alike() {
    let lines = golden("filters-serialized.jsonl");
    assert!(lines.len() > 40);
    for line in lines {
        let wire = hex(line["proto_Filter"].as_str().unwrap());
        let spec = filter(&pb::Filter::decode(wire.clone()).unwrap()).unwrap_or_else(|e| panic!("{e}: {line}"));
        let again = to_proto::filter(&spec);
        // Some filters keep their members in sets, so bytes may differ where the sense does not.
        if again.encode_to_vec() != wire {
            assert_eq!(filter(&again).unwrap(), spec, "{line}");
        }
    }
}

#[test]
fn a_light_filter_is_one_without_comparators_or_a_short_list_of_such() {
    let (page, comparing) = (
        ::filter::Filter::Page { page_size: 5 },
        ::filter::Filter::Value { op: CompareOp::Equal, comparator: Some(Comparator::Null) },
    );
    let list = |filters: Vec<::filter::Filter>| ::filter::Filter::List {
        operator: ::filter::ListOperator::MustPassAll,
        filters,
    };
    let is_light = |filter: &::filter::Filter| is_light_filter(&to_proto::filter(filter));
    assert!(is_light(&page));
    assert!(is_light(&list(vec![page.clone(), ::filter::Filter::FirstKeyOnly])));
    assert!(!is_light(&comparing));
    assert!(!is_light(&list(vec![page.clone(), comparing])));
    assert!(!is_light(&list(vec![list(vec![page.clone()])])), "deeper than one list");
    assert!(!is_light(&list(vec![page; 9])));
}

#[test]
fn an_unknown_or_damaged_filter_is_refused() {
    let wire = |name: &str, bytes: &'static [u8]| pb::Filter {
        name: format!("org.apache.hadoop.hbase.filter.{name}"),
        serialized_filter: Some(Bytes::from_static(bytes)),
    };
    let unknown = filter(&wire("NoFilter", b"")).unwrap_err();
    assert_eq!(unknown.kind(), ConvertErrorKind::UnknownClass, "{unknown}");
    assert_eq!(filter(&wire("PageFilter", b"\x08")).unwrap_err().kind(), ConvertErrorKind::Undecodable);
    let mut deep = wire("FirstKeyOnlyFilter", b"");
    for _ in 0..=::filter::MAX_DEPTH {
        let message = pb::SkipFilter { filter: deep };
        deep =
            pb::Filter { name: wire("SkipFilter", b"").name, serialized_filter: Some(message.encode_to_vec().into()) };
    }
    assert!(filter(&deep).unwrap_err().message().contains("nested deeper"));
}

/// Thirteen characters may become megabytes, and a request may hold thousands of such filters.
#[test]
fn a_filter_of_many_large_expressions_is_refused() {
    let list = |pattern: &str, count: usize| {
        let comparator = pb::RegexStringComparator { pattern: pattern.to_owned(), ..Default::default() };
        let comparator = pb::Comparator {
            name: "org.apache.hadoop.hbase.filter.RegexStringComparator".to_owned(),
            serialized_comparator: Some(comparator.encode_to_vec().into()),
        };
        let row = pb::RowFilter {
            compare_filter: pb::CompareFilter {
                compare_op: pb::CompareType::Equal as i32,
                comparator: Some(comparator),
            },
        };
        let row = pb::Filter {
            name: "org.apache.hadoop.hbase.filter.RowFilter".to_owned(),
            serialized_filter: Some(row.encode_to_vec().into()),
        };
        let list = pb::FilterList { filters: vec![row; count], ..Default::default() };
        pb::Filter {
            name: "org.apache.hadoop.hbase.filter.FilterList".to_owned(),
            serialized_filter: Some(list.encode_to_vec().into()),
        }
    };
    assert!(filter(&list("^row-[0-9]+$", 1000)).is_ok());
    assert!(filter(&list("(a{60}){60}", 3)).is_ok());
    let refused = filter(&list("(a{60}){60}", 1000)).unwrap_err();
    assert!(refused.message().contains("need more than 67108864 bytes compiled"), "{refused}");
}

/// A request of many Gets, each with such a filter: the same one is compiled once, more of others than fit are asked for again.
#[test]
fn gets_of_one_request_share_a_bound_of_compiled_expressions() {
    let get = |pattern: String| {
        let comparator = pb::RegexStringComparator { pattern, ..Default::default() };
        let comparator = pb::Comparator {
            name: "org.apache.hadoop.hbase.filter.RegexStringComparator".to_owned(),
            serialized_comparator: Some(comparator.encode_to_vec().into()),
        };
        let compare_filter =
            pb::CompareFilter { compare_op: pb::CompareType::Equal as i32, comparator: Some(comparator) };
        let filter = pb::Filter {
            name: "org.apache.hadoop.hbase.filter.RowFilter".to_owned(),
            serialized_filter: Some(pb::RowFilter { compare_filter }.encode_to_vec().into()),
        };
        pb::Get { row: Bytes::from("row"), filter: Some(filter), ..Default::default() }
    };
    let mut filters = Filters::default();
    let same: Vec<_> = (0..1000).map(|_| get_of(get("(a{60}){60}".into()), &mut filters).expect("one")).collect();
    let first = same[0].filter.as_ref().expect("there");
    assert!(same.iter().all(|get| get.filter.as_ref().is_some_and(|filter| Arc::ptr_eq(filter, first))));
    let refused = (0..1000).find_map(|n| get_of(get(format!("(a{{60}}){{60}}{n}")), &mut filters).err());
    let refused = refused.expect("gigabytes");
    assert!(refused.message().contains("need more than 67108864 bytes compiled"), "{refused}");
    assert_eq!(refused.kind(), ConvertErrorKind::TooLarge);
    assert!(get_of(get("(b{60}){60}".into()), &mut Filters::default()).is_ok(), "asked for again, alone");
}

#[test]
fn a_put_with_time_to_live_carries_it_in_its_tags() {
    let put = mutation(decode("Put ts=1234"), &mut Cells::default(), None).unwrap();
    assert_eq!((put.kind, &put.row[..], put.timestamp), (MutationKind::Put, &b"row1"[..], 1234));
    assert_eq!((put.durability, put.ttl_ms), (Durability::SkipWal, Some(5000)));
    let cells: Vec<_> = put.cells.iter().map(|c| (c.qualifier(), c.value(), c.timestamp(), c.type_code())).collect();
    assert_eq!(cells, [(&b"q"[..], &b"v"[..], 1234, 4), (b"", b"v2", 1234, 4)]);
    assert!(put.cells.iter().all(|c| cell::tag::ttl_ms(c.tags()) == Some(5000)));
    assert!(put.attributes.contains(&("k".to_owned(), Bytes::from_static(b"av"))));
}

#[test]
fn each_delete_type_becomes_its_marker() {
    let delete = mutation(decode("Delete col(latest)"), &mut Cells::default(), None).unwrap();
    let cells: Vec<_> = delete.cells.iter().map(|c| (c.type_code(), c.timestamp())).collect();
    // The message has a family delete among columns of the same family: the client had dropped what it covers.
    assert_eq!(cells, [(CellType::DeleteFamily.code(), 88), (CellType::DeleteFamilyVersion.code(), 77)]);
    assert_eq!(delete.kind, MutationKind::Delete);
}

#[test]
fn increments_and_appends_keep_nonce_range_and_wish_for_results() {
    let increment = mutation(decode("Increment by 5"), &mut Cells::default(), Some(9)).unwrap();
    assert_eq!(increment.nonce, Some(Nonce { group: 9, number: 42 }));
    assert_eq!(increment.time_range, TimeRange { min: 1, max: 100 });
    assert_eq!(increment.cells.iter().next().unwrap().value(), 5i64.to_be_bytes());
    let append = mutation(decode("Append x"), &mut Cells::default(), None).unwrap();
    assert!(!append.return_results && append.nonce.is_none());
}

#[test]
fn mutations_survive_the_way_out_and_in() {
    for what in ["Put ts=1234", "Delete col(latest)", "Increment by 5", "Append x"] {
        let first = mutation(decode(what), &mut Cells::default(), Some(1)).unwrap();
        let inline = mutation(to_proto::mutation(&first), &mut Cells::default(), Some(1)).unwrap();
        let mut beside = Cells::new(first.cells.clone());
        let counted = mutation(to_proto::mutation_without_cells(&first), &mut beside, Some(1)).unwrap();
        assert!(beside.is_empty());
        for again in [inline, counted] {
            assert_eq!(again.cells, first.cells, "{what}");
            assert_eq!(again.attributes, first.attributes, "{what}");
            assert_eq!((again.row, again.kind, again.nonce), (first.row.clone(), first.kind, first.nonce), "{what}");
        }
    }
}

#[test]
fn cells_are_taken_in_order_also_by_mutations_that_fail() {
    let put = mutation(decode("Put ts=1234"), &mut Cells::default(), None).unwrap();
    let cells = cell::CellBlock::parse([&put.cells.bytes()[..], &put.cells.bytes()[..]].concat().into()).unwrap();
    let mut cells = Cells::new(cells);
    let message = |row: &'static [u8], count| pb::MutationProto {
        row: Some(Bytes::from_static(row)),
        associated_cell_count: Some(count),
        mutate_type: Some(pb::mutation_proto::MutationType::Put.into()),
        ..Default::default()
    };
    assert!(mutation(message(b"", 1), &mut cells, None).is_err(), "no row");
    assert_eq!(cells.len(), 3);
    // Two puts of two cells: one cell is gone, one is passed over, and the next two are the second put's.
    cells.skip(&message(b"row1", 1));
    let last = mutation(message(b"row1", 2), &mut cells, None).unwrap();
    let qualifiers: Vec<_> = last.cells.iter().map(|c| c.qualifier().to_vec()).collect();
    assert_eq!(qualifiers, [&b"q"[..], b""]);
    let missing = mutation(message(b"row1", 1), &mut cells, None).unwrap_err();
    assert_eq!(missing.message(), "Cell count of 1 but at index 0 no cell returned");
}

#[test]
fn reads_are_read_and_written_alike() {
    let wire = client_proto("Get everything");
    let value = get(pb::Get::decode(wire.clone()).unwrap()).unwrap();
    assert_eq!(to_proto::get(&value).encode_to_vec(), wire);
    for what in ["Scan everything", "Scan defaults", "Scan reversed raw"] {
        let message: pb::Scan = decode(what);
        let value = scan(message.clone()).unwrap();
        assert_eq!(scan(to_proto::scan(&value)).unwrap(), value, "{what}");
        assert_eq!((value.reversed, value.raw), (message.reversed(), what.contains("raw")), "{what}");
    }
    let all = scan(decode("Scan everything")).unwrap();
    assert_eq!((all.batch, all.max_versions, all.max_result_size), (Some(3), 2, Some(12345)));
}

#[test]
fn reads_that_hbase_refuses_are_refused() {
    let refused = |change: fn(&mut pb::Get)| {
        let mut message: pb::Get = decode("Get everything");
        change(&mut message);
        get(message).unwrap_err()
    };
    assert_eq!(refused(|g| g.row = Bytes::new()).message(), "Row length is 0");
    assert_eq!(refused(|g| g.row = vec![0; 40_000].into()).message(), "Row length 40000 is > 32767");
    assert_eq!(refused(|g| g.max_versions = Some(0)).message(), "maxVersions must be positive");
    let backwards = refused(|g| g.time_range = Some(pb::TimeRange { from: Some(2), to: Some(1) }));
    assert_eq!(backwards.message(), "maxStamp is smaller than minStamp");
    let negative = refused(|g| g.time_range = Some(pb::TimeRange { from: Some(u64::MAX), to: None }));
    assert!(negative.message().contains("Timestamp cannot be negative"));
    let before = refused(|g| g.closest_row_before = Some(true));
    assert_eq!(before.kind(), ConvertErrorKind::RemovedOperation);
}

#[test]
fn a_scan_of_one_row_by_an_old_client_includes_it() {
    let row = Some(Bytes::from_static(b"r"));
    let old = pb::Scan { start_row: row.clone(), stop_row: row.clone(), ..Default::default() };
    assert!(scan(old.clone()).unwrap().include_stop_row);
    assert!(!scan(pb::Scan { include_stop_row: Some(false), ..old }).unwrap().include_stop_row);
}

#[test]
fn a_scan_may_ask_for_no_versions() {
    for (wire, versions) in [(0, 0), (u32::MAX, 0), (7, 7)] {
        let message = pb::Scan { max_versions: Some(wire), ..Default::default() };
        assert_eq!(scan(message).unwrap().max_versions, versions);
    }
}

#[test]
fn a_condition_keeps_only_the_bytes_of_its_comparator() {
    let wire = pb::Condition {
        row: Bytes::from_static(b"r"),
        family: Some(Bytes::from_static(b"f")),
        qualifier: Some(Bytes::from_static(b"q")),
        compare_type: Some(pb::CompareType::Less.into()),
        comparator: Some(to_proto::comparator(&Comparator::Long { value: 1 })),
        ..Default::default()
    };
    let value = condition(&wire).unwrap();
    let ConditionTest::Value { op, comparator, .. } = &value.test else { panic!("{value:?}") };
    assert_eq!(*op, CompareOp::Less);
    assert_eq!(**comparator, Comparator::Binary { value: Bytes::copy_from_slice(&1i64.to_be_bytes()) });
    let again = condition(&to_proto::condition(&value)).unwrap();
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
    assert!(condition(&pb::Condition { comparator: None, ..wire.clone() }).is_err());
    // HBase asks whether there can be such a row only when it looks for it
    assert!(condition(&pb::Condition { row: Bytes::new(), ..wire }).is_ok());
}

#[test]
fn descriptors_names_and_regions_survive_the_way_out_and_in() {
    let mut tables = 0;
    for line in golden("table-descriptors.jsonl") {
        let Some(bytes) = line["proto_TableSchema"].as_str() else { continue };
        let wire = pb::TableSchema::decode(hex(bytes)).unwrap();
        let value = table(&wire).unwrap();
        tables += 1;
        assert_eq!(table(&to_proto::table(&value)).unwrap(), value);
        assert_eq!(value.families.len(), wire.column_families.len());
    }
    assert!(tables > 1);
    let info = RegionInfo::new(TableName::parse("ns:t").unwrap(), Bytes::from_static(b"a"), Bytes::new(), 7);
    assert_eq!(region_info(&to_proto::region_info(&info)).unwrap(), info);
    assert_eq!(region_info(&to_proto::region_info(&RegionInfo::meta())).unwrap(), RegionInfo::meta());
    assert_eq!(region_encoded_name(&to_proto::region_specifier(&info)).unwrap(), &**info.encoded_name());
    let server = ServerName::new("host", 16020, 99);
    assert_eq!(server_name(&to_proto::server_name(&server)).unwrap(), server);
    let bad = pb::TableName { namespace: Bytes::from_static(b"default"), qualifier: Bytes::from_static(b"a b") };
    assert!(table_name(&bad).unwrap_err().message().starts_with("Illegal character"));
    let family_name =
        |name: &'static [u8]| pb::ColumnFamilySchema { name: Bytes::from_static(name), ..Default::default() };
    assert_eq!(family(&family_name(b"a:b")).unwrap_err().kind(), ConvertErrorKind::IllegalName);
}

fn schema_of(families: Vec<pb::ColumnFamilySchema>) -> pb::TableSchema {
    let name = to_proto::table_name(&TableName::parse("t").unwrap());
    pb::TableSchema { table_name: Some(name), column_families: families, ..Default::default() }
}

fn family_schema(attributes: &[(&'static str, &'static str)]) -> pb::ColumnFamilySchema {
    let pair = |(name, value): &(&'static str, &'static str)| pb::BytesBytesPair {
        first: Bytes::from_static(name.as_bytes()),
        second: Bytes::from_static(value.as_bytes()),
    };
    let attributes = attributes.iter().map(pair).collect();
    pb::ColumnFamilySchema { name: Bytes::from_static(b"f"), attributes, ..Default::default() }
}

/// `TableDescriptorBuilder#setColumnFamily` refuses it; the last one would win otherwise.
#[test]
fn a_family_given_twice_is_refused() {
    let refused = table(&schema_of(vec![family_schema(&[]), family_schema(&[("VERSIONS", "3")])])).unwrap_err();
    assert_eq!(refused.kind(), ConvertErrorKind::IllegalArgument);
    assert_eq!(refused.to_string(), "TableSchema.column_families: Family 'f' already exists so cannot be added");
}

/// A client may send only what it wants otherwise; HBase's builder starts from its defaults.
#[test]
fn a_descriptor_has_hbases_defaults_for_what_the_message_does_not_say() {
    let f = family(&family_schema(&[("VERSIONS", "3"), ("OWN", "x")])).unwrap();
    let defaults = FamilyDescriptor::new("f");
    assert_eq!(f.attributes.len(), defaults.attributes.len() + 1);
    assert_eq!((f.max_versions(), &f.attributes[&b"BLOCKSIZE"[..]][..]), (3, &b"65536"[..]));
    let t = table(&schema_of(vec![family_schema(&[])])).unwrap();
    assert_eq!(&t.attributes[&b"IS_META"[..]][..], b"false");
}

/// `setValue` and `setConfiguration` take an empty value for a removal.
#[test]
fn an_attribute_with_an_empty_value_has_its_default_or_none() {
    let setting = |name: &str, value: &str| pb::NameStringPair { name: name.into(), value: value.into() };
    let mut schema = family_schema(&[("VERSIONS", "3"), ("VERSIONS", ""), ("OWN", "")]);
    schema.configuration = vec![setting("kept", "1"), setting("removed", "")];
    let f = family(&schema).unwrap();
    assert_eq!(f.attributes, FamilyDescriptor::new("f").attributes);
    assert_eq!(f.configuration.keys().collect::<Vec<_>>(), ["kept"]);
}

#[test]
fn a_table_without_a_namespace_is_in_the_default_one() {
    let name = pb::TableName { namespace: Bytes::new(), qualifier: Bytes::from_static(b"t") };
    assert_eq!(table_name(&name).unwrap(), TableName::parse("t").unwrap());
}

/// The conversions that servers, files and clients used took different ids for legal.
#[test]
fn a_replica_id_is_at_most_65535() {
    let info = RegionInfo::new(TableName::parse("t").unwrap(), Bytes::new(), Bytes::new(), 7);
    let with = |id| pb::RegionInfo { replica_id: Some(id), ..to_proto::region_info(&info) };
    assert_eq!(region_info(&with(0xFFFF)).unwrap().replica_id, 0xFFFF);
    let refused = |id| region_info(&with(id)).unwrap_err();
    assert_eq!(refused(0x10000).message(), "ReplicaId cannot be greater than 65535");
    assert_eq!(refused(-1).kind(), ConvertErrorKind::IllegalArgument);
    let none = pb::RegionInfo { replica_id: None, ..with(0) };
    assert_eq!(region_info(&none).unwrap(), info, "the primary by default");
}

/// Follows: `ProtobufUtil#toRegionInfo`.
#[test]
fn hbase_meta_is_one_region_whatever_the_message_says_and_its_replicas_are_as_said() {
    let strange = pb::RegionInfo { region_id: 9, split: Some(true), ..to_proto::region_info(&RegionInfo::meta()) };
    assert_eq!(region_info(&strange).unwrap(), RegionInfo::meta());
    let replica = region_info(&pb::RegionInfo { replica_id: Some(1), ..strange }).unwrap();
    assert_eq!((replica.region_id, replica.split, replica.replica_id), (9, true, 1));
}
