//! The pages for people against the tree: links lead somewhere, the places that CONTRIBUTING names exist, and so do the messages that
//! `docs/operations/log-messages.md` explains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::{reliability, run};

const CONTRIBUTING: &str = "CONTRIBUTING.md";
const LOG_MESSAGES: &str = "docs/operations/log-messages.md";
/// The head of CONTRIBUTING's table of questions; the second column names files.
const QUESTIONS: &str = "| question | where |";
/// The head of each table of log messages; the first column is a part of a message.
const MESSAGES: &str = "| message contains |";

/// Holds all of them.
pub fn check() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for page in all()? {
        let text = read(&page)?;
        let dir = page.parent().unwrap_or(Path::new(""));
        let missing = links(&text).into_iter().filter(|link| !run::root().join(dir).join(link).exists());
        wrong.extend(missing.map(|link| format!("{}: no file {link}", page.display())));
    }
    wrong.extend(missing_places()?);
    wrong.extend(missing_messages()?);
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n           "));
    }
    Ok(())
}

fn read(page: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(run::root().join(page)).with_context(|| page.display().to_string())
}

/// Markdown pages at the top, and below docs, relative to the root.
pub fn all() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut dirs = vec![(PathBuf::new(), false), (PathBuf::from("docs"), true)];
    while let Some((dir, deep)) = dirs.pop() {
        for entry in std::fs::read_dir(run::root().join(&dir)).with_context(|| dir.display().to_string())? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if deep {
                    dirs.push((path, true));
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Relative targets of `[text](target)`, without their anchors.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace));
    local.filter_map(|target| target.split('#').next()).filter(|file| !file.is_empty()).collect()
}

/// Rows of the tables under a head, each as its cells.
fn rows<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with(head) {
            inside = true;
        } else if !line.starts_with('|') {
            inside = false;
        } else if inside && !line.starts_with("|---") {
            found.push(line.trim_matches('|').split('|').map(str::trim).collect());
        }
    }
    found
}

/// What stands in backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn missing_places() -> anyhow::Result<Vec<String>> {
    let page = read(Path::new(CONTRIBUTING))?;
    let rows = rows(&page, QUESTIONS);
    if rows.len() < 20 {
        bail!("{CONTRIBUTING} has {} questions under '{QUESTIONS}', and should have twenty", rows.len());
    }
    let mut wrong = Vec::new();
    for row in &rows {
        let places: Vec<&str> = quoted(row[1]).filter(|name| name.contains('/')).collect();
        if places.is_empty() {
            wrong.push(format!("{CONTRIBUTING}: '{}' names no file", row[0]));
        }
        let missing = places.into_iter().filter(|place| !run::root().join(place).exists());
        wrong.extend(missing.map(|place| format!("{CONTRIBUTING}: no file {place}")));
    }
    Ok(wrong)
}

fn missing_messages() -> anyhow::Result<Vec<String>> {
    let page = read(Path::new(LOG_MESSAGES))?;
    let messages: BTreeSet<&str> = rows(&page, MESSAGES).iter().flat_map(|row| quoted(row[0])).collect();
    if messages.len() < 10 {
        bail!("{LOG_MESSAGES} explains {} messages: its tables are not where they were", messages.len());
    }
    let mut files = Vec::new();
    reliability::rust_files(&run::root().join("crates"), &mut files)?;
    let mut sources = String::new();
    for file in files {
        sources.push_str(&one_line(&std::fs::read_to_string(file)?));
    }
    let missing = messages.into_iter().filter(|message| !sources.contains(*message));
    Ok(missing.map(|message| format!("{LOG_MESSAGES}: no source says `{message}`")).collect())
}

/// A source with the string literals that go over several lines put together again.
fn one_line(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for line in source.lines() {
        match line.strip_suffix('\\') {
            Some(begun) => out.push_str(begun.trim_start()),
            None => {
                out.push_str(line.trim_start());
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_without_anchors_and_foreign_ones() {
        let text = "[a](x.md#part), [b](https://example.org/y.md), [c](#here), `f[0](1 2)`";
        assert_eq!(links(text), ["x.md"]);
    }

    #[test]
    fn rows_are_those_under_their_head() {
        let page = "| message contains | so |\n|---|---|\n| `a b` | c |\n\n| other | d |\n|---|---|\n| `x` | y |\n";
        assert_eq!(rows(page, MESSAGES), [["`a b`", "c"]]);
    }

    #[test]
    fn literals_over_two_lines_are_one() {
        assert_eq!(one_line("warn!(\n    \"the disk \\\n     is full\"\n)"), "warn!(\n\"the disk is full\"\n)\n");
    }
}
