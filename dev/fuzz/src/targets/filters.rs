//! Filters: as messages, as strings, and their regular expressions. What can be read is asked about some rows.

use super::{put_part, shared, take_part};
use crate::{Target, golden};
use base::{Rng, SeqId};
use cell::{CellBuffer, CellRef, CellSpec, CellType};
use convert::{from_proto, to_proto};
use filter::{Filter, Verdict};
use proto::{Message, pb};
use std::sync::{Arc, LazyLock};

const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

pub(super) const FILTER: Target = Target {
    name: "filter",
    about: "serialised filters and comparators, evaluated",
    max_len: 8192,
    words: &[
        PACKAGE,
        "FilterList",
        "SingleColumnValueFilter",
        "BinaryComparator",
        "RegexStringComparator",
        "FuzzyRowFilter",
        "MultiRowRangeFilter",
        "LongComparator",
        "BigDecimalComparator",
        "BitComparator",
        "NullComparator",
        "SubstringComparator",
    ],
    seeds: filter_seeds,
    run: |data| {
        let Ok(message) = pb::Filter::decode(data) else { return };
        if let Ok(filter) = from_proto::filter(&message) {
            evaluate(&filter);
        }
    },
};

pub(super) const FILTER_STRING: Target = Target {
    name: "filter-string",
    about: "the shell's filter language, parsed and evaluated",
    max_len: 8192,
    words: &[
        "PrefixFilter",
        "KeyOnlyFilter",
        "SingleColumnValueFilter",
        "ValueFilter",
        "PageFilter",
        "ColumnRangeFilter",
        "'binary:",
        "'regexstring:",
        "'substring:",
        "'binaryprefix:",
        " AND ",
        " OR ",
        "SKIP ",
        "WHILE ",
        ">=",
        "!=",
        "true",
        "false",
    ],
    seeds: string_seeds,
    run: |data| {
        if let Ok(filter) = filter::parse::parse_filter(data) {
            evaluate(&filter);
        }
    },
};

pub(super) const REGEX: Target = Target {
    name: "regex",
    about: "Java's regular expressions, translated and matched",
    max_len: 4096,
    words: &[
        "(?i)",
        "(?<n>",
        "\\\\k<n>",
        "(?=",
        "(?!",
        "(?<=",
        "(?>",
        "\\\\p{Lower}",
        "\\\\p{IsL}",
        "[a&&[^b]]",
        "\\\\Q",
        "\\\\E",
        "\\\\x{41}",
        "\\\\u0041",
        "*+",
        "??",
        "{1,9}",
        "\\\\R",
        "\\\\h",
        "\\\\b",
    ],
    seeds: regex_seeds,
    run: regex,
};

static ROWS: LazyLock<CellBuffer> = LazyLock::new(|| {
    let mut cells = CellBuffer::new();
    let long = 7_i64.to_be_bytes();
    for row in ["", "a", "row-1", "row-2", "r\u{e9}\u{10ffff}"] {
        for (family, qualifier, value) in
            [("f", "", &b""[..]), ("f", "a", b"value"), ("f", "num", &long), ("g", "a", b"aaaaaaaaaaaaaaaaaaaaaaaaab")]
        {
            for timestamp in [1000, 1] {
                let (row, family, qualifier) = (row.as_bytes(), family.as_bytes(), qualifier.as_bytes());
                let type_code = CellType::Put.code();
                let spec = CellSpec { row, family, qualifier, timestamp, type_code, value, tags: &[] };
                cells.push_spec(&spec, SeqId(1));
            }
        }
    }
    cells
});

/// Asks as a scanner does, and travels once more.
fn evaluate(filter: &Filter) {
    // The server asks before it uses one.
    if filter.check().is_err() {
        return;
    }
    let rng = Arc::new(Rng::seeded(5));
    for reversed in [false, true] {
        let mut asked = filter.evaluator(reversed, &rng);
        let mut hint = Vec::new();
        let mut at = 0;
        while at < ROWS.len() && !asked.filter_all_remaining() {
            asked.reset();
            let first = ROWS.get(at);
            let row: Vec<CellRef<'_>> = ROWS.iter_from(at).take_while(|cell| cell.row() == first.row()).collect();
            at += row.len();
            match asked.filter_row_key(first) {
                Ok(false) => {}
                Ok(true) => continue,
                Err(_) => return,
            }
            let mut kept = CellBuffer::new();
            for cell in row {
                let _ = asked.is_family_essential(cell.family());
                match asked.filter_cell(cell) {
                    Ok(Verdict::SeekNextUsingHint) => {
                        if asked.next_cell_hint(cell, &mut hint) {
                            cell::KeyRef::parse(&hint).expect("a hint is a key");
                        }
                    }
                    Ok(Verdict::Include | Verdict::IncludeAndNextCol | Verdict::IncludeAndSeekNextRow) => {
                        asked.transform_cell(cell, &mut kept);
                    }
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
            let _ = asked.finish_row(&mut kept, 0);
        }
    }
    let message = to_proto::filter(filter);
    let again = from_proto::filter(&message).expect("what we write we read");
    assert_eq!(to_proto::filter(&again), message);
}

fn filter_seeds() -> Vec<Vec<u8>> {
    let mut seeds = golden::column("misc/filters-serialized.jsonl", "proto_Filter");
    seeds.extend(golden::column("filter/programs.jsonl", "filter").into_iter().step_by(4));
    seeds.push(nested());
    seeds
}

/// A filter in a filter in a filter, as deep as an input may be.
fn nested() -> Vec<u8> {
    let mut inner = pb::Filter { name: format!("{PACKAGE}KeyOnlyFilter"), serialized_filter: None };
    loop {
        let skip = pb::SkipFilter { filter: inner.clone() };
        let name = format!("{PACKAGE}SkipFilter");
        let outer = pb::Filter { name, serialized_filter: Some(shared(&skip.encode_to_vec())) };
        if outer.encoded_len() > FILTER.max_len {
            return inner.encode_to_vec();
        }
        inner = outer;
    }
}

fn string_seeds() -> Vec<Vec<u8>> {
    [
        "KeyOnlyFilter ()",
        "FirstKeyOnlyFilter()",
        "PrefixFilter ('row')",
        "ColumnPrefixFilter('a')",
        "MultipleColumnPrefixFilter('a','b')",
        "ColumnCountGetFilter (4)",
        "PageFilter (2)",
        "ColumnPaginationFilter(3, 5)",
        "InclusiveStopFilter ('row-2')",
        "TimeStampsFilter (1, 1000)",
        "RowFilter (<=, 'binary:row')",
        "FamilyFilter(=, 'binaryprefix:f')",
        "QualifierFilter (!=, 'regexstring:a.*')",
        "ValueFilter (=, 'substring:val')",
        "DependentColumnFilter('f','a',true,>=,'binary:v')",
        "SingleColumnValueFilter ('f', 'a', =, 'binary:value', true, false)",
        "SingleColumnValueExcludeFilter('f','a',<,'binary:x')",
        "ColumnRangeFilter ('a', true, 'z', false)",
        "(PrefixFilter ('a') AND PageFilter(1)) OR SKIP ValueFilter(=,'binary:it''s')",
        "WHILE ( RowFilter(>, 'binary:\\x00') OR KeyOnlyFilter() ) AND PageFilter(9)",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([
        [&b"(".repeat(2000)[..], b"KeyOnlyFilter()", &b")".repeat(2000)].concat(),
        [&b"SKIP ".repeat(800)[..], b"KeyOnlyFilter()"].concat(),
        [&b"KeyOnlyFilter() AND ".repeat(200)[..], b"KeyOnlyFilter()"].concat(),
    ])
    .collect()
}

/// Pattern, then flags of four bytes in a part, then the text.
fn regex(mut data: &[u8]) {
    let pattern = String::from_utf8_lossy(take_part(&mut data));
    let flags = take_part(&mut data).first_chunk::<4>().map_or(0, |bytes| i32::from_be_bytes(*bytes));
    let charset = ["UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16LE"][data.len() % 5];
    let message = pb::RegexStringComparator {
        pattern: pattern.into_owned(),
        pattern_flags: flags,
        charset: charset.to_owned(),
        engine: None,
    };
    let wire = pb::Comparator {
        name: format!("{PACKAGE}RegexStringComparator"),
        serialized_comparator: Some(shared(&message.encode_to_vec())),
    };
    let Ok(comparator) = from_proto::comparator(&wire) else { return };
    for text in [data, b"", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"] {
        let _ = comparator.compare(text);
    }
}

fn regex_seeds() -> Vec<Vec<u8>> {
    [
        ("a.c", 32, "abc"),
        ("^(?i)row-[0-9]{1,3}$", 0, "ROW-17"),
        ("(a+)+b", 0, "aaaaaaaaaaaaaaaaaaaaaaaaaaaac"),
        ("(?<year>\\d{4})-\\k<year>", 0, "2024-2024"),
        ("(?<!x)y(?=z)", 8, "yz"),
        ("[a-z&&[^bc]]++", 2, "adef"),
        ("\\p{Lower}\\P{Alpha}\\p{IsLatin}\\p{InGreek}", 64, "a1b"),
        ("\\Qa.b\\E|\\x41\\u0042\\x{43}\\0101\\cA\\e", 0, "a.b"),
        ("(?x) a b # c", 4, "ab"),
        ("\\R\\h\\v\\H\\V\\X\\G\\Z\\z\\A\\b\\B", 0, "\n"),
        ("(?>a|ab)c|a{2,}?|a{0}|(?:)|()", 0, "abc"),
        ("[\\w\\-\\]\\[&&[^\\d]]", 16, "a"),
    ]
    .map(|(pattern, flags, text)| (pattern.to_owned(), flags, text))
    .into_iter()
    .chain([("(".repeat(900) + &")".repeat(900), 0, "a"), ("[".repeat(900) + &"]".repeat(900), 0, "a")])
    .chain([("(?:a{99}){99}".repeat(9), 0, "a"), ("(?=".repeat(300) + &")".repeat(300), 0, "a")])
    .map(|(pattern, flags, text)| {
        let mut seed = Vec::new();
        put_part(&mut seed, pattern.as_bytes());
        put_part(&mut seed, &i32::to_be_bytes(flags));
        seed.extend_from_slice(text.as_bytes());
        seed
    })
    .collect()
}
