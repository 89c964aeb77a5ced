//! Every line agrees with `java.util.regex` of Java 17: expression, flags, texts found, texts not found.

use super::super::regex_spec::{RegexEngine, RegexSpec, flags::*};
use crate::ErrorKind;

#[track_caller]
fn check(pattern: &str, flags: i32, found: &[&str], not_found: &[&str]) {
    let regex = RegexSpec::new(pattern, flags, "UTF-8", RegexEngine::Java).unwrap_or_else(|e| panic!("{pattern}: {e}"));
    for text in found {
        assert_eq!(regex.is_found(text.as_bytes()), Ok(true), "{pattern:?} in {text:?}");
    }
    for text in not_found {
        assert_eq!(regex.is_found(text.as_bytes()), Ok(false), "{pattern:?} in {text:?}");
    }
}

#[test]
fn plain_expressions_are_found_anywhere() {
    check("", DOTALL, &["", "x"], &[]);
    check("b+c", DOTALL, &["abbcd"], &["abd"]);
    check("^row-[0-9]{2}$", DOTALL, &["row-12", "row-12\n", "row-12\r\n"], &["row-123", "xrow-12", "row-12\n\n"]);
    check("(a$|b)c?$", 0, &["a", "b", "bc"], &["ad"]);
    check("a.c", DOTALL, &["a\nc"], &["ac"]);
    check("a.c", 0, &["abc"], &["a\nc", "a\u{85}c"]);
    check("a.c", UNIX_LINES, &["a\rc"], &["a\nc"]);
    check("a{2,3}?b", 0, &["aab"], &["ab"]);
    check("x{2}{3}", 0, &["xx"], &["x"]);
    check(r"a\.b\<c\-\_", 0, &["a.b<c-_"], &["axb<c-_"]);
    check("a]b}", 0, &["a]b}"], &["ab"]);
}

#[test]
fn case_is_folded_in_ascii_unless_unicode_is_asked_for() {
    check("R1.", CASE_INSENSITIVE | DOTALL, &["r1x", "R1x"], &["r2x"]);
    check("k", CASE_INSENSITIVE, &["K", "k"], &["\u{212A}"]);
    check("k", CASE_INSENSITIVE | UNICODE_CASE, &["K", "\u{212A}"], &["x"]);
    check("[a-c]x", CASE_INSENSITIVE, &["BX"], &["DX"]);
    check("[^a-c]", CASE_INSENSITIVE, &["d"], &["B", "abC"]);
    check("ä", CASE_INSENSITIVE, &["ä"], &["Ä"]);
    check("(?i)ab(?-i)c", 0, &["ABc"], &["ABC"]);
    check("(?i:a)b", 0, &["Ab"], &["AB"]);
    check("a(?i)b|c", 0, &["aB", "C"], &["AB"]);
    check("(a(?i)b)c", 0, &["aBc"], &["aBC"]);
}

#[test]
fn classes_are_javas() {
    check(r"^\w\d\s$", 0, &["a1 ", "_9\t"], &["ä1 ", "a\u{661} "]);
    check(r"(?U)^\w\d$", 0, &["ä\u{661}"], &["-1"]);
    check("[a-z&&[^m-p]]", 0, &["l", "q"], &["m", "A"]);
    check("[a[x-z]-]", 0, &["a", "y", "-"], &["b"]);
    check("[]a]", 0, &["]", "a"], &["b"]);
    check(r"[\]\\~&-]", 0, &["]", "\\", "~", "&", "-"], &["a"]);
    check("[+--]x", 0, &[",x", "-x"], &["a"]);
    check(r"\p{Upper}\p{javaLowerCase}\p{Punct}", 0, &["Aé!", "Zz~", "Ab["], &["ab!", "Ab1"]);
    check(r"\p{Lu}\P{L}\pN", 0, &["Ä-5"], &["ä-5"]);
    check(r"\p{IsGreek}\p{script=Cyrillic}", 0, &["αж"], &["az"]);
    check(r"[\d\p{Alpha}&&[^b]]", 0, &["a", "7"], &["b", "-"]);
    check(r"\h\v", 0, &[" \n", "\u{A0}\u{2028}"], &["ab"]);
}

#[test]
fn escapes_are_javas() {
    check(r"\Qa.b*\Ec", 0, &["a.b*c"], &["axbc"]);
    check(r"\x41\u0042\x{43}\0104\cA\e\t", 0, &["ABCD\u{1}\u{1b}\t"], &["ABCD"]);
    check(r"\uD83D\uDE00", 0, &["😀"], &["x"]);
    check("a.b*", LITERAL, &["xa.b*y"], &["aab"]);
    check("a b # c\n[ d ]", COMMENTS, &["abd"], &["a b"]);
    check(r"\Ax\z", 0, &["x"], &["x\n"]);
    check(r"x\Z", 0, &["x", "x\n"], &["xy"]);
    check(r"\bcat\b", 0, &["a cat"], &["concat"]);
}

#[test]
fn what_needs_backtracking_gets_it() {
    check(r"(\w)\1", 0, &["aab"], &["abc"]);
    check(r"(?<q>['`])x\k<q>", 0, &["'x'"], &["'x`"]);
    check(r"(a)\10", 0, &["aa0"], &["a"]);
    check("a(?=b)(?!bc)", 0, &["abd"], &["abc", "ac"]);
    check("(?<=a)b(?<!ab)|c", 0, &["c"], &["ab"]);
    check("a*+a", 0, &[], &["aaa"]);
    check("(?>a|ab)c", 0, &["ac"], &["abc"]);
    check("a{1,2}+a", 0, &["aaa"], &["aa"]);
    check("^b$", MULTILINE, &["a\nb\nc", "a\r\nb\r\nc"], &["ab\nbc"]);
    check("^", MULTILINE, &["a"], &[""]);
    check("(a$)b?", 0, &["a", "a\n"], &["ab"]);
}

#[test]
fn other_character_sets_are_decoded() {
    let latin = RegexSpec::new("^é$", DOTALL, "ISO-8859-1", RegexEngine::Joni).expect("latin");
    assert_eq!(latin.is_found(b"\xE9"), Ok(true));
    let wide = RegexSpec::new("^é$", DOTALL, "UTF-16LE", RegexEngine::Java).expect("UTF-16");
    assert_eq!(wide.is_found(b"\xE9\x00"), Ok(true));
    let utf8 = RegexSpec::of("^.$").expect("UTF-8");
    assert_eq!(utf8.is_found(b"\xFF"), Ok(true), "one replacement character");
    let unknown = RegexSpec::new("a", 0, "EBCDIC-7", RegexEngine::Java).map_err(|e| e.kind);
    assert_eq!(unknown, Err(ErrorKind::UnsupportedCharset));
    assert!(RegexSpec::new("a", 0, "!bad name!", RegexEngine::Java).is_ok(), "HBase only logs it");
}

#[test]
fn what_java_refuses_is_refused() {
    for pattern in
        ["(", ")", "[a", "*a", "a**", "a{2", "a{x}", "a{3,2}", r"\", r"\y", "[z-a]", "(?<1>a)", r"\p{Nope}", "(?q)"]
    {
        let refused = RegexSpec::of(pattern).map_err(|e| e.kind);
        assert_eq!(refused, Err(ErrorKind::PatternSyntax), "{pattern}");
    }
    for pattern in [r"\X", r"\p{InGreek}", r"\uD83D", "((((a{500}){500}){500}){500})"] {
        let refused = RegexSpec::of(pattern).map_err(|e| e.kind);
        assert_eq!(refused, Err(ErrorKind::UnsupportedOperation), "{pattern}");
    }
}

#[test]
fn an_expression_that_never_ends_gives_up() {
    let slow = RegexSpec::of(r"(a|aa)+\1b(?!c)$").expect("a pattern");
    let gave_up = slow.is_found("a".repeat(60).as_bytes()).map_err(|e| e.kind);
    assert_eq!(gave_up, Err(ErrorKind::UnsupportedOperation));
}
