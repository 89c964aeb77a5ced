//! Scripts that need no cluster, and what they print.

use std::collections::HashSet;

use client::{Connection, Options};

use super::Shell;
use crate::echo::{self, Echo};
use crate::language::parser;
use crate::output::Output;
use crate::output::tests::Kept;
use crate::session::Session;

fn shell(interactive: bool) -> (Shell, Kept) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let connection = {
        let _entered = runtime.enter();
        Connection::open(Options::zookeeper("127.0.0.1:1"))
    };
    let kept = Kept::default();
    let session = Session::new(connection, runtime, Output::new(Box::new(kept.clone()), 0), interactive);
    (Shell::new(session), kept)
}

/// What a script prints, with `-n`.
fn printed(script: &str) -> String {
    let (mut shell, kept) = shell(false);
    assert!(echo::run(&mut shell, &mut script.as_bytes(), Echo::None).is_ok(), "{script}");
    kept.text()
}

#[test]
fn scripts_print_what_ruby_prints() {
    for (script, expected) in [
        ("puts 1 + 2 * 3, 7 / 2, -7 / 2, 2 ** 10, 7 % 3", "7\n3\n-4\n1024\n1\n"),
        ("puts \"r#{1 + 1}\" + 'x' * 3", "r2xxx\n"),
        ("(0..3).each { |i| print i, ' ' }", "0 1 2 3 "),
        ("3.times do |i|\n  puts \"row-%03d\" % i\nend", "row-000\nrow-001\nrow-002\n"),
        ("for i in 1...3 do puts i end", "1\n2\n"),
        ("x = 5\nx -= 2\nputs x -1", "2\n"),
        ("i = 0\nwhile i < 3\n  i += 1\n  next if i == 2\n  puts i\nend", "1\n3\n"),
        ("puts [3, 1, 2].sort.map { |x| x * 2 }.join(',')", "2,4,6\n"),
        ("h = {'a' => 1, b: 2}\nputs h['a'], h[:b], h.keys.inspect", "1\n2\n[\"a\", :b]\n"),
        ("puts NAME, {VERSIONS => 3}.inspect", "NAME\n{\"VERSIONS\"=>3}\n"),
        ("def twice(x, y = 2)\n  x * y\nend\nputs twice(4), twice(4, 3)", "8\n12\n"),
        ("def f\n  yield 1\nend\nf { |x| puts x }", "1\n"),
        (
            "begin\n  raise ArgumentError, 'no'\nrescue => e\n  puts e.class, e.message\nensure\n  puts 'end'\nend",
            "ArgumentError\nno\nend\n",
        ),
        ("a, b = [1, 2]\nputs b, a", "2\n1\n"),
        ("puts (1..3).inject { |a, b| a + b }", "6\n"),
        ("puts [*'a'..'e'].size unless false", "5\n"),
        ("case 'abc'\nwhen /^a/ then puts 'yes'\nelse puts 'no'\nend", "yes\n"),
        ("x = nil\nputs x&.size.nil? ? 'none' : 'some'", "none\n"),
        ("puts 'a,b'.split(',').map(&:upcase).inspect", "[\"A\", \"B\"]\n"),
        ("[[1, 2], [3, 4]].each { |a, b| puts a + b }", "3\n7\n"),
        ("p \"\\x00\\xFF\"", "\"\\x00\\xFF\"\n"),
        ("puts %w[a b].inspect # a comment", "[\"a\", \"b\"]\n"),
        ("puts 'abcdef'[1, 3], 'abc'[-1]", "bcd\nc\n"),
        ("puts format('%5.2f|%-4s|%x', 3.14159, 'ab', 255)", " 3.14|ab  |ff\n"),
        ("l = ->(x) { x + 1 }\nputs l.call(2)", "3\n"),
        ("puts org.apache.hadoop.hbase.util.Bytes.toStringBinary(\"a\\x01\")", "a\\x01\n"),
        ("puts [1,\n  2,\n  3].sum", "6\n"),
    ] {
        assert_eq!(printed(script), expected, "{script}");
    }
}

#[test]
fn filters_are_made_by_their_constructors() {
    for (script, expected) in [
        (
            "f = SingleColumnValueFilter.new(Bytes.toBytes('f'), Bytes.toBytes('q'), CompareOperator::EQUAL, \
             BinaryComparator.new(Bytes.toBytes('v')))\nf.setFilterIfMissing(true)\nputs f.to_s",
            "filter_if_missing: true",
        ),
        ("puts org.apache.hadoop.hbase.filter.PrefixFilter.new(Bytes.toBytes('r')).to_s", "Prefix"),
        (
            "java_import org.apache.hadoop.hbase.filter.FilterList\nl = FilterList.new(FilterList::Operator::MUST_PASS_ONE)\n\
             l.addFilter(KeyOnlyFilter.new)\nl.addFilter(PageFilter.new(3))\nputs l.to_s",
            "MustPassOne, filters: [KeyOnly { len_as_val: false }, Page { page_size: 3 }]",
        ),
        (
            "puts RowFilter.new(CompareFilter::CompareOp.valueOf('LESS'), SubstringComparator.new('X')).to_s",
            "substring: \"x\"",
        ),
    ] {
        assert!(printed(script).contains(expected), "{script}: {}", printed(script));
    }
    for (script, why) in [
        ("begin\nPageFilter.new(-1)\nrescue => e\nputs e.message\nend", "must be positive"),
        ("begin\nValueFilter.new('LIKE', 'x')\nrescue => e\nputs e.message\nend", "LIKE is no operator"),
        ("begin\nl = FilterList.new\nl.addFilter(l)\nrescue => e\nputs e.message\nend", "element of itself"),
    ] {
        assert!(printed(script).contains(why), "{script}: {}", printed(script));
    }
}

#[test]
fn what_is_not_supported_is_refused_with_place_and_caret() {
    for (script, place, word) in [
        ("puts 1\nclass A\nend", "line 2, column 1", "class"),
        ("x = )", "line 1, column 5", ")"),
        ("puts 'a' 5", "line 1, column 10", "5"),
        ("create 't', {NAME => 'f' VERSIONS => 3}", "line 1, column 26", "VERSIONS"),
        ("`rm x`", "line 1, column 1", "system"),
    ] {
        let error = parser::parse(script, &HashSet::new()).expect_err(script);
        let shown = error.shown(script);
        assert!(shown.starts_with(place) && shown.contains(word), "{script}: {shown}");
        assert!(shown.lines().last().is_some_and(|line| line.ends_with('^')), "{shown}");
        assert!(!error.incomplete, "{script}");
    }
}

#[test]
fn a_statement_that_goes_on_asks_for_more() {
    for script in ["create 't',", "3.times do |i|", "if true", "x = {", "puts 'a", "def f", "[1, 2"] {
        assert!(parser::parse(script, &HashSet::new()).expect_err(script).incomplete, "{script}");
    }
}

#[test]
fn nothing_is_evaluated_without_bounds() {
    for script in
        ["def f\n  f\nend\nf", "'x' * 1_000_000_000", "(0..99_999_999_999).to_a", "x = [1]\nx[99_999_999_999] = 1"]
    {
        assert!(printed(script).starts_with("ERROR "), "{script}");
    }
    let deep = format!("puts {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(parser::parse(&deep, &HashSet::new()).is_err());
}

#[test]
fn errors_end_a_script_with_n_and_are_passed_over_without() {
    let script = "nothing_of_this_name\nputs 'after'\n";
    for interactive in [false, true] {
        let (mut shell, kept) = shell(interactive);
        let ended = echo::run(&mut shell, &mut script.as_bytes(), Echo::None);
        assert_eq!(ended.ok().flatten(), (!interactive).then_some(1));
        assert_eq!(kept.text().contains("after"), interactive, "{}", kept.text());
    }
    let (mut shell, _) = self::shell(false);
    assert_eq!(echo::run(&mut shell, &mut "exit 3".as_bytes(), Echo::None).ok().flatten(), Some(3));
}

#[test]
fn commands_say_how_many_arguments_they_take() {
    assert!(printed("put 't'").contains("ERROR ArgumentError: wrong number of arguments (given 1, expected 4..6)"));
    let (mut shell, kept) = shell(true);
    assert!(echo::run(&mut shell, &mut "create\n".as_bytes(), Echo::All).is_ok());
    let text = kept.text();
    assert!(text.starts_with("hbase:001:0> create\n\nERROR: wrong number of arguments"), "{text}");
    assert!(text.contains("For usage try 'help \"create\"'\n\nTook 0."), "{text}");
}

#[test]
fn help_knows_commands_groups_and_says_so_of_others() {
    assert!(printed("help 'scan'").contains("hbase> scan"));
    assert!(printed("help 'ddl'").contains("Command: create"));
    assert!(printed("help").contains("COMMAND GROUPS:"));
    assert!(printed("help 'nothing'").contains("ERROR: Invalid command or command group name: nothing"));
}
