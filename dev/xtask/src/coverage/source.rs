//! The tree's Rust sources as text to ask questions of: which match arms there are, which functions, who calls them.
//!
//! Always true: comments are blanked and `#[cfg(test)]` items removed, so that neither a remark nor a test counts as
//! an implementation. This reads tokens, not types: good enough for "is there an arm for this method", no more.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// One source file.
pub struct Source {
    /// Path from the root of the tree, with `/`.
    pub path: String,
    /// The text without comments and tests.
    pub text: String,
    /// `text` with the insides of string and character literals blanked, byte for byte in step with it.
    pub plain: String,
}

/// A function and its body.
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// What stands before its body, from the parenthesis on.
    pub signature: &'a str,
    /// What stands between its braces; empty for a declaration.
    pub body: &'a str,
}

impl Source {
    /// Takes comments and tests out of `text`.
    pub fn new(path: &str, text: &str) -> Source {
        let (text, plain) = strip(text);
        let mut source = Source { path: path.to_owned(), text, plain };
        source.remove_tests();
        source
    }

    fn remove_tests(&mut self) {
        while let Some(start) = self.plain.find("#[cfg(test)]") {
            let rest = &self.plain[start..];
            let end = match (rest.find('{'), rest.find(';')) {
                (Some(brace), semicolon) if semicolon.is_none_or(|at| brace < at) => {
                    closing(&self.plain, start + brace).map_or(self.plain.len(), |at| at + 1)
                }
                (_, Some(semicolon)) => start + semicolon + 1,
                _ => self.plain.len(),
            };
            blank(&mut self.text, start, end);
            blank(&mut self.plain, start, end);
        }
    }

    /// The crate that the file belongs to.
    pub fn crate_name(&self) -> &str {
        self.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).unwrap_or("")
    }

    /// Every function with a body.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Vec::new();
        for (at, _) in self.plain.match_indices("fn ") {
            if at > 0 && is_word(self.plain.as_bytes()[at - 1]) {
                continue;
            }
            let name = word_at(&self.plain, at + 3);
            let signature = &self.plain[at..];
            let Some(open) = body_start(signature) else { continue };
            // A `;` inside brackets is an array's, not the end of a declaration.
            let declaration = signature[..open].char_indices().scan(0i32, |depth, (i, c)| {
                *depth += i32::from(c == '[') - i32::from(c == ']');
                Some((i, c == ';' && *depth == 0))
            });
            if name.is_empty() || declaration.into_iter().any(|(_, ends)| ends) {
                continue;
            }
            if let Some(close) = closing(&self.plain, at + open) {
                let signature = self.plain[at + 3 + name.len()..at + open].trim();
                functions.push(Function { name, signature, body: &self.text[at + open + 1..close] });
            }
        }
        functions
    }

    /// Every `impl TRAIT for TYPE` block of a trait whose name ends with `suffix`: the trait's name and what stands between the braces.
    pub fn impls(&self, suffix: &str) -> Vec<(&str, &str)> {
        let mut impls = Vec::new();
        for (at, found) in self.plain.match_indices("\nimpl ") {
            let name = word_at(&self.plain, at + found.len());
            let rest = &self.plain[at + found.len() + name.len()..];
            if !name.ends_with(suffix) || !rest.starts_with(" for ") {
                continue;
            }
            let Some(open) = rest.find('{').map(|open| self.plain.len() - rest.len() + open) else { continue };
            if let Some(close) = closing(&self.plain, open) {
                impls.push((name, &self.plain[open + 1..close]));
            }
        }
        impls
    }

    /// The variants of `enum_name` that a match arm names before its arrow.
    pub fn matched(&self, enum_name: &str) -> Vec<&str> {
        let prefix = format!("{enum_name}::");
        let mut matched = Vec::new();
        for (at, _) in self.plain.match_indices(&prefix) {
            if at > 0 && is_word(self.plain.as_bytes()[at - 1]) {
                continue;
            }
            let variant = word_at(&self.text, at + prefix.len());
            let rest = self.plain[at + prefix.len() + variant.len()..].trim_start();
            if ["=>", "|", "if "].iter().any(|next| rest.starts_with(next)) {
                matched.push(variant);
            }
        }
        matched
    }

    /// The string literals, as written between their quotes.
    pub fn literals(&self) -> Vec<&str> {
        literals_of(&self.text)
    }

    /// Whether `name` is called here, as a function or a method.
    pub fn calls(&self, name: &str) -> bool {
        self.plain.match_indices(name).any(|(at, _)| {
            let before = self.plain[..at].bytes().next_back();
            let after = &self.plain[at + name.len()..];
            before.is_some_and(|b| b == b'.' || b == b':')
                && (after.starts_with('(') || after.starts_with(")") || after.starts_with(','))
        })
    }
}

/// The string literals in `text` (which has no comments).
pub fn literals_of(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('"') {
        let inside = &rest[open + 1..];
        let mut escaped = false;
        let close = inside.char_indices().find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((close, _)) = close else { break };
        out.push(&inside[..close]);
        rest = &inside[close + 1..];
    }
    out
}

/// Where the body of a function begins; a brace among its parameters is a pattern's.
fn body_start(signature: &str) -> Option<usize> {
    let mut depth = 0i32;
    signature.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (c == '{' && depth == 0).then_some(at)
    })
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// The identifier that starts at `at`.
pub fn word_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..rest.bytes().take_while(|b| is_word(*b)).count()]
}

/// Where the brace at `open` is closed. `plain` has no braces in literals.
pub fn closing(plain: &str, open: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (i, c) in plain[open..].char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 {
            return Some(open + i);
        }
    }
    None
}

fn blank(text: &mut String, start: usize, end: usize) {
    text.replace_range(start..end, &" ".repeat(end - start));
}

/// `text` without comments, and the same with literals blanked too. Both keep every byte's place.
fn strip(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let (mut code, mut plain) = (bytes.to_vec(), bytes.to_vec());
    let wipe = |out: &mut [u8], from: usize, to: usize| {
        out[from..to].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            let end = rest.iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
            wipe(&mut code, at, end);
            wipe(&mut plain, at, end);
            at = end;
        } else if rest.starts_with(b"/*") {
            let end = text[at..].find("*/").map_or(bytes.len(), |n| at + n + 2);
            wipe(&mut code, at, end);
            wipe(&mut plain, at, end);
            at = end;
        } else if let Some((inside, close, end)) = literal(bytes, at) {
            wipe(&mut plain, inside, close);
            at = end;
        } else {
            at += 1;
        }
    }
    let text = |bytes| String::from_utf8(bytes).expect("only whole characters are blanked");
    (text(code), text(plain))
}

/// The literal that starts at `at`: where its inside begins and ends, and where it ends itself.
fn literal(bytes: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    match bytes[at] {
        b'r' if at == 0 || !is_word(bytes[at - 1]) || bytes[at - 1] == b'b' => {
            let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
            let inside = at + 1 + hashes + 1;
            if bytes.get(inside - 1) != Some(&b'"') {
                return None;
            }
            let end = format!("\"{}", "#".repeat(hashes));
            let close = bytes[inside..].windows(end.len()).position(|w| w == end.as_bytes())? + inside;
            Some((inside, close, close + end.len()))
        }
        b'"' => {
            let mut close = at + 1;
            while *bytes.get(close)? != b'"' {
                close += if bytes[close] == b'\\' { 2 } else { 1 };
            }
            Some((at + 1, close, close + 1))
        }
        b'\'' => {
            // A character, not a lifetime: closed after one character or an escape.
            let width = match bytes.get(at + 1)? {
                b'\\' => bytes[at + 3..].iter().position(|b| *b == b'\'')? + 2,
                first if *first < 0x80 => 1,
                _ => bytes[at + 2..].iter().take_while(|b| **b & 0xC0 == 0x80).count() + 1,
            };
            (bytes.get(at + 1 + width) == Some(&b'\'')).then_some((at + 1, at + 1 + width, at + 2 + width))
        }
        _ => None,
    }
}

/// Every source file below `crates/*/src`.
pub fn read_all(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut files = Vec::new();
    for krate in list(&root.join("crates"))? {
        let src = krate.join("src");
        if src.is_dir() {
            walk(&src, &mut files)?;
        }
    }
    files.sort();
    files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
            Ok(Source::new(&name, &text))
        })
        // Tests in files of their own, which their parent includes under `cfg(test)`.
        .filter(|source| !matches!(source, Ok(s) if s.path.ends_with("/tests.rs") || s.path.ends_with("_tests.rs")))
        .collect()
}

fn list(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Adds the `.rs` files below `dir`.
pub fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for path in list(dir)? {
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = r##"
        // Method::InComment => yes(),
        fn call(x: [u8; 2]) -> Answer {
            let s = "Method::InString => no()"; let c = '{'; let l: &'static str = r#"}"#;
            match call.method {
                Method::A => get::a(&call, 1),
                Method::B | Method::C => { if x { return 1; } Err(Exception::unsupported(m)) }
                Method::D if ready => d(),
                _ if matches!(m, Method::E) => (),
            }
        }
        #[cfg(test)]
        mod tests { fn t() { match m { Method::F => f() } } }
    "##;

    #[test]
    fn matched_variants_are_found_and_comments_strings_and_tests_are_not() {
        let source = Source::new("crates/x/src/y.rs", CODE);
        assert_eq!(source.matched("Method"), ["A", "B", "C", "D"]);
        assert!(source.calls("a") && !source.calls("f"));
        let functions = source.functions();
        assert_eq!(functions[0].signature, "(x: [u8; 2]) -> Answer");
        assert_eq!(functions.iter().map(|f| f.name).collect::<Vec<_>>(), ["call"]);
        assert_eq!(literals_of(functions[0].body)[0], "Method::InString => no()");
    }
}
