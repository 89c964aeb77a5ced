//! `cargo xtask site`: the pages for people as a web site, from the same files, by MkDocs. Nothing in it asks another server for anything.
//!
//! The pages are copied as they are, in their directories, so that links between them hold; a link to what is no page (a crate, a source) is
//! left as its text, one to a file that people use (an alert rule, a dashboard) leads to a copy.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{pages, run, toolchain};

/// The program and its version.
const MKDOCS: &str = "mkdocs==1.6.1";

/// Files that a reader is to have, and not only see on a page.
const USEFUL: &[&str] = &["csv", "json", "service", "sh", "txt", "xml", "yaml", "yml"];

/// What stands in the contents: a title, and a directory or a page.
const CONTENTS: &[(&str, &str)] = &[
    ("Basalt", "README.md"),
    ("Guide", "docs/guide"),
    ("Operations", "docs/operations"),
    ("Compatibility", "docs/compatibility.md"),
    ("What is there, counted", "docs/coverage.md"),
    ("Reliability", "docs/reliability.md"),
    ("Architecture", "ARCHITECTURE.md"),
    ("Inside", "docs/internals"),
    ("Formats", "docs/formats"),
    ("Protocols", "docs/protocols"),
    ("Decisions", "docs/decisions"),
    ("Glossary", "docs/glossary.md"),
    ("All pages", "docs/README.md"),
    ("Contributing", "CONTRIBUTING.md"),
    ("Changes", "CHANGELOG.md"),
];

/// Makes the site below the target directory; says where it is.
pub fn make() -> anyhow::Result<()> {
    let dir = run::target_dir().join("site");
    let (sources, site) = (dir.join("pages"), dir.join("html"));
    for old in [&sources, &site] {
        if old.exists() {
            std::fs::remove_dir_all(old).with_context(|| format!("cannot empty {}", old.display()))?;
        }
    }
    let pages = pages::all()?;
    for page in &pages {
        let text = std::fs::read_to_string(run::root().join(page)).with_context(|| page.display().to_string())?;
        let text = with_links(&text, page, &pages, &sources)?;
        put(&sources.join(page), text.as_bytes())?;
    }
    let config = dir.join("mkdocs.yml");
    std::fs::write(&config, configuration(&pages, &sources, &site)?)?;
    let mkdocs = toolchain::python_programs("mkdocs", MKDOCS)?.join("mkdocs");
    let mut build = Command::new(mkdocs);
    build.args(["build", "--strict", "--quiet", "--config-file"]).arg(&config).env("NO_MKDOCS_2_WARNING", "1");
    run::must("mkdocs", &mut build)?;
    let count = check(&site)?;
    println!("    {count} pages: {}", site.join("index.html").display());
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let parent = path.parent().context("a file in no directory")?;
    std::fs::create_dir_all(parent)?;
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// A page with its links as the site needs them.
fn with_links(text: &str, page: &Path, pages: &[PathBuf], sources: &Path) -> anyhow::Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let Some((target, behind)) = after.split_once(')') else { break };
        let is_local = !target.contains("://") && !target.starts_with('#') && !target.contains(char::is_whitespace);
        let file = target.split('#').next().unwrap_or_default();
        let path = resolved(page.parent().unwrap_or(Path::new("")), file);
        let readme = path.join("README.md");
        if !is_local || pages.contains(&path) {
            write!(out, "{before}]({target})")?;
        } else if pages.contains(&readme) {
            write!(out, "{before}]({}/README.md)", file.trim_end_matches('/'))?;
        } else if path.extension().is_some_and(|ending| USEFUL.iter().any(|one| ending == *one)) {
            let bytes = std::fs::read(run::root().join(&path)).with_context(|| path.display().to_string())?;
            put(&sources.join(&path), &bytes)?;
            write!(out, "{before}]({target})")?;
        } else if let Some(open) = before.rfind('[') {
            write!(out, "{}{}", &before[..open], &before[open + 1..])?;
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// `link` seen from `dir`, relative to the root.
fn resolved(dir: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in dir.join(link).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

fn configuration(pages: &[PathBuf], sources: &Path, site: &Path) -> anyhow::Result<String> {
    let mut nav = String::new();
    let mut listed = 0;
    for (title, what) in CONTENTS {
        if what.ends_with(".md") {
            writeln!(nav, "  - \"{title}\": {what}")?;
            listed += 1;
            continue;
        }
        writeln!(nav, "  - \"{title}\":")?;
        let mut within: Vec<&PathBuf> = pages.iter().filter(|page| page.parent() == Some(Path::new(what))).collect();
        within.sort();
        if within.is_empty() {
            bail!("{what} has no pages: the contents of the site name a directory that is not there");
        }
        for page in within {
            writeln!(nav, "      - {}", page.display())?;
            listed += 1;
        }
    }
    if listed != pages.len() {
        bail!(
            "{} pages, of which the contents of the site have {listed}: name the others in xtask/src/site.rs",
            pages.len()
        );
    }
    Ok(format!(
        "site_name: Basalt\ndocs_dir: {}\nsite_dir: {}\nuse_directory_urls: false\ntheme:\n  name: readthedocs\n  highlightjs: false\n  \
         include_homepage_in_sidebar: false\nplugins:\n  - search\nvalidation:\n  links:\n    not_found: warn\n    anchors: warn\n    \
         unrecognized_links: warn\nmarkdown_extensions:\n  - tables\n  - fenced_code\n  - toc\nnav:\n{nav}",
        sources.display(),
        site.display()
    ))
}

/// No page may have a browser ask another server for something; the number of pages.
fn check(site: &Path) -> anyhow::Result<usize> {
    let (mut dirs, mut count) = (vec![site.to_owned()], 0);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                count += 1;
                let text = std::fs::read_to_string(&path)?;
                if let Some(asked) = asks(&text) {
                    bail!("{}: asks another server: {asked}", path.display());
                }
            }
        }
    }
    Ok(count)
}

/// The first script, style or picture of a page that is another server's.
fn asks(html: &str) -> Option<&str> {
    let tags =
        html.split('<').filter(|tag| ["script", "link", "img", "iframe"].iter().any(|name| tag.starts_with(name)));
    let mut tags = tags.filter_map(|tag| tag.split_once('>').map(|(tag, _)| tag));
    tags.find(|tag| tag.contains("=\"http") || tag.contains("=\"//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_and_to_files_and_to_nothing_else() {
        let pages: Vec<PathBuf> = ["README.md", "docs/README.md", "docs/a.md"].map(PathBuf::from).to_vec();
        let linked =
            |text: &str| with_links(text, Path::new("docs/a.md"), &pages, Path::new("/nowhere")).expect("read");
        assert_eq!(linked("[b](../README.md#x) and [c](https://c/)"), "[b](../README.md#x) and [c](https://c/)");
        assert_eq!(
            linked("see [all](../docs) and [crates/x](../crates/x), `f`"),
            "see [all](../docs/README.md) and crates/x, `f`"
        );
        assert_eq!(linked("[here](#there)"), "[here](#there)");
    }

    #[test]
    fn what_asks_another_server_is_found() {
        assert_eq!(asks("<a href=\"https://x\">x</a><link href=\"css/a.css\">"), None);
        assert_eq!(asks("<script src=\"https://cdn/x.js\"></script>"), Some("script src=\"https://cdn/x.js\""));
        assert_eq!(asks("<img src=\"//cdn/x.png\">"), Some("img src=\"//cdn/x.png\""));
    }
}
