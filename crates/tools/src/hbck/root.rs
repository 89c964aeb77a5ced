//! A root directory without a server: tables, regions, files.

use std::collections::BTreeSet;

use anyhow::Context;
use base::Config;
use fs::{FilePath, Volume};
use hfile::ReaderContext;
use model::{RegionInfo, TableDescriptor, TableName};
use rootdir::{FileName, descriptor, paths, region_dir, table_dir};

use super::{Finding, Report, chain};
use crate::dictionaries;

/// Looks at the tables that are named, or at all.
pub(super) fn check(config: &Config, volume: &dyn Volume, wanted: &[String], read: bool) -> anyhow::Result<Report> {
    let mut report = Report::default();
    if !volume.exists(&FilePath::new("hbase.version"))? {
        report.findings.push(Finding::new(
            "NO_VERSION_FILE",
            "",
            "there is no file hbase.version: is this a root directory?",
        ));
    }
    for name in descriptor::list_tables(volume).context("cannot list the tables")? {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| *wanted == name.as_str()) {
            continue;
        }
        report.tables += 1;
        let described = descriptor::read(volume, &name);
        match &described {
            Ok(None) if !name.is_meta() => {
                let why = format!("{}/.tabledesc holds no descriptor", table_dir(&name));
                report.findings.push(Finding::new("NO_TABLEINFO_FILE", name.as_str(), why));
            }
            Ok(_) => {}
            Err(error) => report.findings.push(Finding::new("NO_TABLEINFO_FILE", name.as_str(), error.to_string())),
        }
        let described = described.ok().flatten();
        let look = Look { config, volume, table: described.as_ref(), read };
        table(&look, &name, &mut report)?;
    }
    for name in wanted {
        if !volume.exists(&table_dir(&crate::jobs::table_name(name)?))? {
            report.findings.push(Finding::new("NO_SUCH_TABLE", name.as_str(), "it has no directory"));
        }
    }
    Ok(report)
}

/// What a table's files are looked at with.
struct Look<'a> {
    config: &'a Config,
    volume: &'a dyn Volume,
    /// The descriptor, if it can be read.
    table: Option<&'a TableDescriptor>,
    /// Whether files are read through.
    read: bool,
}

fn table(look: &Look<'_>, name: &TableName, report: &mut Report) -> anyhow::Result<()> {
    let volume = look.volume;
    let dir = table_dir(name);
    let (mut regions, mut parents) = (Vec::new(), BTreeSet::new());
    for encoded in paths::region_names(volume, &dir)? {
        let dir = dir.join(&encoded);
        match region_dir::read_region_info(volume, &dir) {
            Ok(Some(info)) if info.table == *name && **info.encoded_name() == *encoded => {
                report.regions += 1;
                families(look, &info, &dir, report, &mut parents)?;
                regions.push(info);
            }
            Ok(Some(info)) => {
                let why = format!("{dir}/.regioninfo is of {}", info.name_string());
                report.findings.push(Finding::new("WRONG_REGIONINFO", name.as_str(), why));
            }
            Ok(None) => {
                let why = format!("{dir} has no .regioninfo: no region's directory, or one that lost it");
                report.findings.push(Finding::new("ORPHAN_HDFS_REGION", name.as_str(), why));
            }
            Err(error) => report.findings.push(Finding::new("ORPHAN_HDFS_REGION", name.as_str(), error.to_string())),
        }
    }
    report.findings.extend(chain::check(name.as_str(), &regions, &parents));
    Ok(())
}

fn families(
    look: &Look<'_>,
    info: &RegionInfo,
    dir: &FilePath,
    report: &mut Report,
    parents: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let volume = look.volume;
    for family in paths::family_names(volume, dir)? {
        let dictionary = dictionaries::named(look.config, look.table, family.as_bytes());
        let whole = |path: &FilePath, read| whole(volume, path, dictionary.as_deref(), read);
        for entry in volume.list(&dir.join(&family))? {
            if entry.is_dir || entry.name.starts_with('.') {
                continue;
            }
            report.files += 1;
            let path = dir.join(&family).join(&entry.name);
            let found = |kind: &'static str, why: String| Finding::new(kind, info.table.as_str(), why);
            let Some(name) = FileName::parse(&entry.name) else {
                report.findings.push(found("UNKNOWN_FILE", format!("{path} is called like no store file")));
                continue;
            };
            parents.extend(name.parent.clone());
            if name.link.is_none() && name.parent.is_none() {
                if let Err(error) = whole(&path, look.read) {
                    report.findings.push(found("UNREADABLE_FILE", format!("{error:#}")));
                }
                continue;
            }
            let kind = if name.parent.is_some() { "LINGERING_REFERENCE_HFILE" } else { "LINGERING_HFILELINK" };
            let places = name.candidates(info, family.as_bytes());
            let target = places.iter().find(|place| matches!(volume.stat(place), Ok(Some(entry)) if !entry.is_dir));
            match target {
                None => {
                    let looked: Vec<&str> = places.iter().map(FilePath::as_str).collect();
                    report
                        .findings
                        .push(found(kind, format!("{path} leads to nothing: looked at {}", looked.join(", "))));
                }
                Some(place) => {
                    if let Err(error) = whole(place, false) {
                        report.findings.push(found("UNREADABLE_FILE", format!("{error:#}, which {path} leads to")));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Opens a file, and reads all of it where asked to.
fn whole(volume: &dyn Volume, path: &FilePath, dictionary: Option<&str>, read: bool) -> anyhow::Result<()> {
    let reader = dictionaries::open(volume, path, dictionary, ReaderContext::default())?;
    if read {
        reader.read_through()?;
    }
    Ok(())
}
