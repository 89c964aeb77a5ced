use super::*;
use crate::ErrorKind;

fn parsed(text: &str) -> Filter {
    parse_filter(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn prefix(text: &'static str) -> Filter {
    Filter::Prefix { prefix: Some(Bytes::from_static(text.as_bytes())) }
}

fn skip(filter: Filter) -> Filter {
    Filter::Skip { filter: Box::new(filter) }
}

#[test]
fn operators_bind_as_in_hbase() {
    let (a, b, c) = (|| prefix("a"), || prefix("b"), || prefix("c"));
    let [x, y, z] = ["PrefixFilter('a')", "PrefixFilter('b')", "PrefixFilter ('c')"];
    let both = |filters: Vec<Filter>| Filter::all_of(filters);
    let either = |filters: Vec<Filter>| Filter::any_of(filters);
    assert_eq!(parsed(&format!("{x} AND {y} AND {z}")), both(vec![a(), b(), c()]));
    assert_eq!(parsed(&format!("{x} OR {y} AND {z}")), either(vec![a(), both(vec![b(), c()])]));
    assert_eq!(parsed(&format!("{x} AND {y} OR {z}")), either(vec![both(vec![a(), b()]), c()]));
    assert_eq!(parsed(&format!("({x} OR {y}) AND {z}")), both(vec![either(vec![a(), b()]), c()]));
    assert_eq!(parsed(&format!("({x} OR {y} AND {z})")), either(vec![a(), both(vec![b(), c()])]));
    assert_eq!(
        parsed(&format!("SKIP {x} AND WHILE {y}")),
        both(vec![skip(a()), Filter::WhileMatch { filter: Box::new(b()) },])
    );
    assert_eq!(parsed(&format!("SKIP ({x} AND {y})")), skip(both(vec![a(), b()])));
    assert_eq!(parsed(&format!("SKIP SKIP {x}")), skip(skip(a())));
    assert_eq!(parsed(&format!("\t(( {x} ")), a(), "open parentheses close at the end");
}

#[test]
fn arguments_are_read_as_in_hbase() {
    assert_eq!(parsed("PrefixFilter('it''s ) AND')"), prefix("it's ) AND"));
    assert_eq!(parsed("PrefixFilter('')"), prefix(""));
    assert_eq!(parsed("KeyOnlyFilter()"), Filter::KeyOnly { len_as_val: false });
    assert_eq!(parsed("KeyOnlyFilter(TRUE)"), Filter::KeyOnly { len_as_val: true });
    assert_eq!(parsed("TimestampsFilter(5, 3,5)"), Filter::timestamps([3, 5], false));
    assert_eq!(
        parsed("ColumnRangeFilter('', false, 'z', true)"),
        Filter::ColumnRange {
            min_column: None,
            min_inclusive: false,
            max_column: Some(Bytes::from_static(b"z")),
            max_inclusive: true,
        }
    );
    assert_eq!(
        parsed("RowFilter(>=, 'binary:a:b')"),
        Filter::Row {
            op: CompareOp::GreaterOrEqual,
            comparator: Some(Comparator::Binary { value: Bytes::from_static(b"a:b") }),
        }
    );
    assert_eq!(
        parsed("SingleColumnValueFilter('f', 'q', =, 'substring:ABC', true, false)"),
        Filter::SingleColumnValue(SingleColumnValue {
            family: Some(Bytes::from_static(b"f")),
            qualifier: Some(Bytes::from_static(b"q")),
            op: CompareOp::Equal,
            comparator: Comparator::substring("abc"),
            filter_if_missing: true,
            latest_version_only: false,
        })
    );
    let Filter::Value { comparator: Some(Comparator::Regex(regex)), .. } =
        parsed("ValueFilter(!=, 'regexstringnocase:^a|b')")
    else {
        panic!("a regular expression")
    };
    assert_eq!((regex.pattern(), regex.flags()), ("^a|b", 34));
    assert_eq!(
        parsed("DependentColumnFilter('f','q')"),
        Filter::DependentColumn {
            family: Some(Bytes::from_static(b"f")),
            qualifier: Some(Bytes::from_static(b"q")),
            drop_dependent_column: false,
            op: CompareOp::NoOp,
            comparator: None,
        }
    );
}

#[test]
fn every_supported_filter_has_a_way_to_be_written() {
    for name in SUPPORTED {
        let tries = ["", "'a'", "1", "1, 2", "=, 'binary:a'", "'f','q',=,'binary:a'", "'f','q'", "'a',true,'b',true"];
        let written = tries.iter().any(|arguments| parse_filter(format!("{name}({arguments})").as_bytes()).is_ok());
        assert!(written, "{name}");
    }
}

/// Thirteen characters may become megabytes, and a string may hold thousands of them.
#[test]
fn a_string_of_many_large_expressions_is_refused() {
    let string = |pattern: &str, count: usize| {
        let one = format!("RowFilter(=, 'regexstring:{pattern}')");
        parse_filter(vec![one; count].join(" OR ").as_bytes())
    };
    assert!(string("^row-[0-9]+$", 1000).is_ok());
    assert!(string("(a{60}){60}", 3).is_ok());
    let refused = string("(a{60}){60}", 1000).unwrap_err();
    assert!(refused.message.contains("need more than 67108864 bytes compiled"), "{refused}");
}

#[test]
fn what_is_wrong_is_an_illegal_argument() {
    let deep = "SKIP ".repeat(200) + "PrefixFilter('a')";
    for text in [
        "",
        "()",
        ")",
        "PrefixFilter",
        "PrefixFilter('a'",
        "PrefixFilter('a)",
        "('a')",
        "PrefixFilter('a') PrefixFilter('b')",
        "PrefixFilter('a') AND ",
        " AND PrefixFilter('a')",
        "PrefixFilter('a') OR PrefixFilter('b'))",
        "SKIP ",
        "NoSuchFilter('a')",
        "PrefixFilter()",
        "PrefixFilter(a)",
        "PrefixFilter('a','b')",
        "PageFilter(-1)",
        "PageFilter(1x)",
        "PageFilter(99999999999999999999)",
        "ColumnCountGetFilter(2147483648)",
        "KeyOnlyFilter(maybe)",
        "RowFilter(==, 'binary:a')",
        "RowFilter(=, 'binary')",
        "RowFilter(=, 'nosuch:a')",
        "RowFilter(<, 'substring:a')",
        "RowFilter(=, 'regexstring:(')",
        "MultipleColumnPrefixFilter('a','a')",
        "FuzzyRowFilter('a')",
        &deep,
    ] {
        assert_eq!(parse_filter(text.as_bytes()).map_err(|e| e.kind), Err(ErrorKind::IllegalArgument), "{text:?}");
    }
}

#[test]
fn no_cut_of_a_filter_string_panics() {
    let text = b"(SKIP PrefixFilter('a''b') OR WHILE RowFilter (>=,'binary:x'))AND(TimestampsFilter(1, 2))";
    assert!(parse_filter(text).is_ok());
    for from in 0..text.len() {
        for to in from..text.len() {
            let _ = parse_filter(&text[from..to]);
        }
    }
}
