//! `/jmx`: beans as JSON, selected as HBase selects them. Follows: `JMXJsonServlet`, `JSONBean`.
//!
//! Unlike there, a question that is no question is answered with 400 as documented (HBase means to, and answers 200).

use crate::beans::{Bean, Text};
use crate::object_name::Pattern;
use crate::query::Query;
use base::metrics::{Number, Sample};
use regex::{Regex, RegexBuilder};
use std::fmt::Write;

/// What is answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the question was one.
    pub ok: bool,
    /// Whether the text is a call of a JavaScript function rather than JSON.
    pub script: bool,
    /// The text.
    pub text: String,
}

/// Longest `get`, `qry` or `excl` that is looked at.
const MAX_QUESTION_BYTES: usize = 1024;

/// Which attributes `get` asks for.
enum Wanted<'a> {
    All,
    /// Of this name.
    One(&'a str),
    /// In which one of these is found; HBase takes a text with a star for a list of patterns.
    Like(Vec<Regex>),
}

/// Answers `qry`, `excl`, `get` and `callback`.
pub fn answer(beans: &[Bean], query: &Query) -> Answer {
    let callback = query.get("callback");
    if let Some(name) = callback
        && (name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    {
        return Answer { ok: false, script: false, text: "{}".to_owned() };
    }
    let (ok, json) = match body(beans, query) {
        Ok(json) => (true, json),
        Err(message) => {
            let mut json = String::from("{\n  \"result\": \"ERROR\",\n  \"message\": ");
            string(&mut json, message);
            json.push_str("\n}");
            (false, json)
        }
    };
    let text = callback.map_or_else(|| json.clone(), |name| format!("{name}({json});"));
    Answer { ok, script: callback.is_some(), text }
}

fn body(beans: &[Bean], query: &Query) -> Result<String, &'static str> {
    let asked = |key| query.get(key).filter(|text: &&str| !text.is_empty());
    if ["get", "qry", "excl"].iter().any(|key| asked(key).is_some_and(|text| text.len() > MAX_QUESTION_BYTES)) {
        return Err("the query is too long.");
    }
    let no_pattern = "query format is not as expected.";
    let (names, attributes) = match asked("get") {
        Some(get) => {
            let (names, attributes) = get.split_once("::").ok_or(no_pattern)?;
            (names, Some(attributes))
        }
        None => (asked("qry").unwrap_or("*:*"), None),
    };
    let names = Pattern::parse(names).ok_or(no_pattern)?;
    let excluded = match asked("excl") {
        Some(text) => Some(Pattern::parse(text).ok_or(no_pattern)?),
        None => None,
    };
    let wanted = match attributes {
        None => Wanted::All,
        Some(text) if text.contains('*') => {
            // found anywhere in a name, as there
            let compile =
                |pattern: &str| RegexBuilder::new(pattern).size_limit(1 << 18).build().map_err(|_| no_pattern);
            Wanted::Like(text.split(',').map(compile).collect::<Result<_, _>>()?)
        }
        Some(text) => Wanted::One(text),
    };
    let mut out = String::from("{\n  \"beans\": [");
    let mut first = true;
    for bean in beans {
        let name = bean.full_name();
        if !names.selects(&name) || excluded.as_ref().is_some_and(|pattern| pattern.selects(&name)) {
            continue;
        }
        out.push_str(if first { "\n    {" } else { ",\n    {" });
        first = false;
        out.push_str("\n      \"name\": ");
        string(&mut out, &name);
        out.push_str(",\n      \"modelerType\": ");
        string(&mut out, bean.name.tail);
        let keep = |name: &str| match &wanted {
            Wanted::All => true,
            Wanted::One(one) => *one == name,
            Wanted::Like(patterns) => patterns.iter().any(|pattern| pattern.is_match(name)),
        };
        let mut any = false;
        for (tag, value) in &bean.tags {
            let tag = format!("tag.{tag}");
            if keep(&tag) {
                member(&mut out, &tag);
                string(&mut out, value);
                any = true;
            }
        }
        for (name, text) in bean.texts.iter().filter(|(name, _)| keep(name)) {
            member(&mut out, name);
            match text {
                Text::One(text) => string(&mut out, text),
                Text::List(texts) => list(&mut out, texts),
            }
            any = true;
        }
        for Sample { name, number, .. } in bean.metrics.iter().filter(|metric| keep(&metric.name)) {
            member(&mut out, name);
            match number {
                Number::Long(value) => write!(out, "{value}"),
                Number::Double(value) => write!(out, "{value:?}"),
            }
            .expect("writing to a string");
            any = true;
        }
        for (name, numbers) in bean.groups.iter().filter(|(name, _)| keep(name)) {
            member(&mut out, name);
            for (at, (key, value)) in numbers.iter().enumerate() {
                out.push_str(if at == 0 { "{\n        " } else { ",\n        " });
                string(&mut out, key);
                write!(out, ": {value}").expect("writing to a string");
            }
            out.push_str("\n      }");
            any = true;
        }
        if let Wanted::One(text) = wanted
            && !any
        {
            member(&mut out, "result");
            string(&mut out, "ERROR");
            member(&mut out, "message");
            string(&mut out, &format!("No attribute with name {text} was found."));
        }
        out.push_str("\n    }");
    }
    out.push_str(if first { "]\n}" } else { "\n  ]\n}" });
    Ok(out)
}

fn member(out: &mut String, name: &str) {
    out.push_str(",\n      ");
    string(out, name);
    out.push_str(": ");
}

fn list(out: &mut String, texts: &[String]) {
    out.push('[');
    for (at, text) in texts.iter().enumerate() {
        out.push_str(if at == 0 { "\n        " } else { ",\n        " });
        string(out, text);
    }
    out.push_str(if texts.is_empty() { "]" } else { "\n      ]" });
}

/// A JSON string. `<`, `>`, `&` and `'` are escaped too, as HBase's writer does, so that no browser finds markup in it.
pub fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '<' | '>' | '&' | '\'' | '\u{2028}' | '\u{2029}' | '\0'..' ' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string");
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
