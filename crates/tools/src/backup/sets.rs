//! `basalt backup set`: names for tables that are backed up together, kept beside the backups. Follows: `BackupCommands.BackupSetCommand`,
//! `BackupSet`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use fs::FilePath;
use serde_json::json;

use super::manifest::{Place, decode, encode};
use crate::arguments::{self, Known, flag};
use crate::jobs::table_name;
use crate::places::Opener;

const KNOWN: &[Known] = &[flag("", "json")];
/// One line of version and checksum, then JSON: names with their tables.
const FILE: &str = "basalt-backup-sets";

/// Names of sets with their tables.
pub(super) type Sets = BTreeMap<String, BTreeSet<String>>;

impl Place {
    /// The sets that are kept here.
    ///
    /// # Errors
    /// Their file is damaged or cannot be read.
    pub fn sets(&self) -> anyhow::Result<Sets> {
        let path = FilePath::new(FILE);
        if !self.volume.exists(&path)? {
            return Ok(Sets::new());
        }
        let bytes = self.volume.read(&path)?;
        decode(&bytes)
            .with_context(|| format!("{} is damaged: remove it and add the sets again", self.directory.shown(&path)))
    }

    /// The tables of a set.
    ///
    /// # Errors
    /// There is no such set.
    pub fn set(&self, name: &str) -> anyhow::Result<BTreeSet<String>> {
        let tables = self.sets()?.remove(name).filter(|tables| !tables.is_empty());
        tables.with_context(|| format!("Backup set '{name}' is either empty or does not exist"))
    }

    fn keep_sets(&self, sets: &Sets) -> anyhow::Result<()> {
        Ok(self.volume.publish(&FilePath::new(FILE), &encode(sets)?)?)
    }
}

/// The set as HBase writes it.
fn shown(name: &str, tables: &BTreeSet<String>) -> String {
    format!("{name}={{{}}}", tables.iter().map(String::as_str).collect::<Vec<_>>().join(","))
}

pub(super) fn run(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup set", KNOWN, given)?;
    let words: Vec<&str> = parsed.rest.iter().map(String::as_str).collect();
    let (what, place, rest) = match words.as_slice() {
        [what, place, rest @ ..] => (*what, *place, rest),
        _ => bail!("backup set: say add, remove, list, describe or delete, and the backup directory"),
    };
    // A set may be there before the first backup is.
    let place = Place::open(opener, config, place, what == "add")?;
    let names = |text: &str| -> anyhow::Result<BTreeSet<String>> {
        text.split(',').map(|name| Ok(table_name(name.trim())?.to_string())).collect()
    };
    match (what, rest) {
        ("list", []) => {
            for (name, tables) in place.sets()? {
                match parsed.has("json") {
                    true => println!("{}", json!({"name": name, "tables": tables})),
                    false => println!("{}", shown(&name, &tables)),
                }
            }
        }
        ("describe", [name]) => match (place.sets()?.get(*name), parsed.has("json")) {
            (None, _) => bail!("Set '{name}' does not exist."),
            (Some(tables), true) => println!("{}", json!({"name": name, "tables": tables})),
            (Some(tables), false) => println!("{}", shown(name, tables)),
        },
        ("add" | "remove", [name, tables]) => {
            check_name(name)?;
            let _claimed = place.claim()?;
            let (mut sets, tables) = (place.sets()?, names(tables)?);
            match what {
                "add" => sets.entry((*name).to_owned()).or_default().extend(tables),
                _ => {
                    let set = sets.get_mut(*name).with_context(|| format!("Set '{name}' does not exist."))?;
                    if let Some(strange) = tables.iter().find(|table| !set.contains(*table)) {
                        bail!("table {strange} is not in set '{name}'; nothing was changed");
                    }
                    set.retain(|table| !tables.contains(table));
                    // As HBase does it.
                    if set.is_empty() {
                        sets.remove(*name);
                    }
                }
            }
            place.keep_sets(&sets)?;
        }
        ("delete", [name]) => {
            let _claimed = place.claim()?;
            let mut sets = place.sets()?;
            if sets.remove(*name).is_none() {
                bail!("Set {name} does not exist");
            }
            place.keep_sets(&sets)?;
            println!("Delete set {name} OK.");
        }
        ("add" | "remove", _) => {
            bail!("backup set {what}: a directory, a name and tables, parted by commas, are needed")
        }
        ("list", _) => bail!("backup set list: a directory alone is needed"),
        ("describe" | "delete", _) => bail!("backup set {what}: a directory and a name are needed"),
        (other, _) => bail!("backup set: unknown command {other}: it is add, remove, list, describe or delete"),
    }
    Ok(ExitCode::SUCCESS)
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        bail!("{name:?} is no name of a set: it has letters, digits, _, - and . alone");
    }
    Ok(())
}
