//! `cargo xtask coverage`: counts what is there against the inventory of everything that HBase has, and writes
//! `docs/coverage.md`.
//!
//! Always true: a row counts because the sources say so (a match arm, a table entry, an accessor that somebody calls)
//! or because a list names the test that owns it and that test exists; never because somebody believes it.

mod formats;
mod gateways;
mod inventory;
mod later;
mod lists;
mod outside;
mod schema;
mod source;
mod thrift;
mod tools;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};

use inventory::{Row, Table, Tier};
use source::Source;

/// How far a row has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    There,
    /// What that means is said per surface.
    Part,
    Missing,
}

/// A row of the inventory, judged.
struct Item {
    /// The table that the row is in: `rpc_methods.csv`.
    file: String,
    /// Rows of a group are listed together: a service, a category.
    group: String,
    name: String,
    tier: Tier,
    standing: Standing,
    /// Another issue is to bring it: it counts apart.
    later: bool,
}

impl Item {
    fn new(row: Row<'_>, group: &str, name: &str, standing: Standing) -> Item {
        let (file, group, name) = (row.file(), group.to_owned(), name.to_owned());
        Item { file, group, name, tier: row.tier(), standing, later: false }
    }
}

/// Which absent rows are listed by name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    CoreAndCommon,
    Core,
    /// The surface is absent as a whole: numbers say it all.
    None,
}

/// One kind of thing that HBase has.
struct Surface {
    title: &'static str,
    /// What makes a row count, and what "in part" means here.
    rule: String,
    items: Vec<Item>,
    listing: Listing,
}

/// Everything the surfaces look at.
struct Tree {
    root: PathBuf,
    sources: Vec<Source>,
}

impl Tree {
    fn table(&self, name: &str) -> anyhow::Result<Table> {
        Table::read(&self.root, name)
    }

    fn source(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == path)
    }

    /// The sources of one crate.
    fn of_crate<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Source> {
        self.sources.iter().filter(move |source| source.crate_name() == name)
    }

    /// Whether a function or method of that name is called in a file for which `wanted` holds.
    fn is_called(&self, name: &str, wanted: impl Fn(&Source) -> bool) -> bool {
        self.sources.iter().any(|source| wanted(source) && source.calls(name))
    }
}

/// Writes `docs/coverage.md`, or with `check` only says (as an error) that it is stale.
pub fn run(check: bool) -> anyhow::Result<()> {
    let root = crate::run::root();
    let sources = source::read_all(&root)?;
    let mut surfaces = surfaces(&Tree { root: root.clone(), sources })?;
    later::mark(&root, &mut surfaces)?;
    let text = page(&surfaces)?;
    let path = root.join("docs/coverage.md");
    if std::fs::read_to_string(&path).ok().as_deref() == Some(&text) {
        return Ok(());
    }
    if check {
        bail!("docs/coverage.md is stale: run `cargo xtask coverage`");
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn surfaces(tree: &Tree) -> anyhow::Result<Vec<Surface>> {
    let mut all = vec![
        wire::rpc_methods(tree)?,
        wire::messages(tree)?,
        wire::enums(tree)?,
        wire::exceptions(tree)?,
        wire::filters(tree)?,
        schema::table_attributes(tree)?,
        schema::family_attributes(tree)?,
        schema::config_keys(tree)?,
        schema::znodes(tree)?,
        formats::elements(tree)?,
    ];
    all.extend(outside::all(tree)?);
    Ok(all)
}

/// There, in part, all; of what no other issue is to bring. And what is left to other issues.
#[derive(Clone, Copy, Default)]
struct Count {
    there: usize,
    part: usize,
    all: usize,
    later: usize,
}

impl Count {
    fn of(surface: &Surface, tier: Option<Tier>) -> Count {
        let mut count = Count::default();
        for item in surface.items.iter().filter(|item| tier.is_none_or(|tier| item.tier == tier)) {
            if item.later {
                count.later += 1;
                continue;
            }
            count.all += 1;
            count.there += usize::from(item.standing == Standing::There);
            count.part += usize::from(item.standing == Standing::Part);
        }
        count
    }

    fn percent(self) -> String {
        if self.all == 0 { "-".to_owned() } else { format!("{:.1} %", self.there as f64 * 100.0 / self.all as f64) }
    }

    fn cell(self) -> String {
        match self {
            Count { all: 0, .. } => "-".to_owned(),
            Count { there, part: 0, all, .. } => format!("{there} of {all}"),
            Count { there, part, all, .. } => format!("{there} + {part} of {all}"),
        }
    }
}

fn page(surfaces: &[Surface]) -> anyhow::Result<String> {
    let mut o = String::from(
        "<!-- Generated by `cargo xtask coverage`; `cargo xtask check` compares. Do not edit. -->\n\
         # What is there, counted\n\n\
         Everything that Apache HBase 2.6.4 has is listed in `tests/inventory/*.csv`, one row each. This page counts which \
         rows Basalt has. A row counts because the sources say so, or because a list names the test that owns it and that \
         test exists.\n\n\
         **core**: basic clients break without it. **common**: normal operators and tools use it. **advanced**: security, \
         replication, quotas, surgery. **rare**: old, internal, example, test. *3 + 2 of 9* means: 3 there, 2 in part.\n\n\
         **later**: rows that `tests/inventory/later.txt` leaves to other issues, with the reason. They stand in no other number here; the \
         percentage is of what is there of all others.\n\n",
    );
    o.push_str("| | core | common | advanced | rare | all | % | later |\n|---|---|---|---|---|---|---:|---:|\n");
    for surface in surfaces {
        let anchor =
            surface.title.to_lowercase().replace(' ', "-").replace(|c: char| c != '-' && !c.is_alphanumeric(), "");
        write!(o, "| [{}](#{anchor})", surface.title)?;
        for tier in Tier::ALL.map(Some).into_iter().chain([None]) {
            write!(o, " | {}", Count::of(surface, tier).cell())?;
        }
        let whole = Count::of(surface, None);
        writeln!(o, " | {} | {} |", whole.percent(), whole.later)?;
    }
    for surface in surfaces {
        section(&mut o, surface)?;
    }
    Ok(o)
}

fn section(o: &mut String, surface: &Surface) -> anyhow::Result<()> {
    write!(o, "\n## {}\n\n{}\n", surface.title, surface.rule)?;
    o.push_str("\n| tier | there | in part | of | later |\n|---|---:|---:|---:|---:|\n");
    for tier in Tier::ALL {
        let count = Count::of(surface, Some(tier));
        if count.all + count.later > 0 {
            writeln!(o, "| {tier} | {} | {} | {} | {} |", count.there, count.part, count.all, count.later)?;
        }
    }
    let tiers: &[Tier] = match surface.listing {
        Listing::CoreAndCommon => &[Tier::Core, Tier::Common],
        Listing::Core => &[Tier::Core],
        Listing::None => &[],
    };
    for tier in tiers {
        list(o, surface, *tier, Standing::Part, "In part")?;
        list(o, surface, *tier, Standing::Missing, "Not there yet")?;
    }
    Ok(())
}

fn list(o: &mut String, surface: &Surface, tier: Tier, standing: Standing, title: &str) -> anyhow::Result<()> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let wanted = |item: &&Item| item.tier == tier && item.standing == standing && !item.later;
    for item in surface.items.iter().filter(wanted) {
        groups.entry(&item.group).or_default().push(&item.name);
    }
    if groups.is_empty() {
        return Ok(());
    }
    write!(o, "\n{title}, {tier}:\n\n")?;
    for (group, mut names) in groups {
        names.sort_unstable();
        names.dedup();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        if group.is_empty() {
            writeln!(o, "- {}", names.join(", "))?;
        } else {
            writeln!(o, "- {group}: {}", names.join(", "))?;
        }
    }
    Ok(())
}
