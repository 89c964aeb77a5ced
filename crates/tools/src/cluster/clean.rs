//! `basalt clean`. Follows: `bin/hbase-cleanup.sh`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use fs::LocalVolume;

use super::session;
use crate::arguments::{self, Known, flag};
use crate::files;
use crate::jobs::{defines, helped};

const USAGE: &str = "\
Deletes a cluster's data. There is no way back.

Usage: basalt clean (--cleanZk | --cleanHdfs | --cleanAll) [--yes]

    --cleanZk     nodes of ZooKeeper below zookeeper.znode.parent
    --cleanHdfs   the directory that hbase.rootdir names
    --cleanAll    both
    --yes         does not ask
    --help        this text

Refused while a server runs: one that has the directory, or one that has nodes of region servers in ZooKeeper.

Examples:
  basalt -D hbase.rootdir=/data/hbase clean --cleanHdfs
  basalt clean --cleanAll --yes
";

const KNOWN: &[Known] =
    &[flag("", "cleanZk"), flag("", "cleanHdfs"), flag("", "cleanAll"), flag("", "cleanAcls"), flag("y", "yes")];

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// A server runs, or something cannot be deleted.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("clean", KNOWN, &rest)?;
    let all = parsed.has("cleanAll");
    let (nodes, files_too) = (all || parsed.has("cleanZk"), all || parsed.has("cleanHdfs"));
    if !nodes && !files_too {
        bail!("clean: one of --cleanZk, --cleanHdfs and --cleanAll is needed");
    }
    let root = files::root_place(&config)?;
    if files_too {
        if !root.join("hbase.version").is_file() {
            bail!("clean: {} holds no hbase.version: it is no root directory of HBase's, and stays", root.display());
        }
        // Whoever serves it holds this.
        let volume = LocalVolume::open(&root)?;
        volume.lock().context("clean: a server has the root directory")?;
        if !fs::tiered::volumes_of(&volume)?.is_empty() {
            bail!(
                "clean: {} has files on other volumes (basalt volumes status shows them): basalt volumes gather brings them back, then clean \
                 deletes all",
                root.display()
            );
        }
    }
    if !parsed.has("yes") && !confirmed(nodes, files_too.then_some(&root))? {
        println!("Nothing was deleted");
        return Ok(ExitCode::FAILURE);
    }
    if nodes {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let count = runtime.block_on(clean_nodes(&config))?;
        println!("Deleted {count} nodes of ZooKeeper");
    }
    if files_too {
        std::fs::remove_dir_all(&root).with_context(|| format!("cannot delete {}", root.display()))?;
        println!("Deleted {}", root.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn confirmed(nodes: bool, root: Option<&std::path::PathBuf>) -> anyhow::Result<bool> {
    use std::io::Write;
    let what: Vec<String> = [
        nodes.then(|| "HBase's nodes in ZooKeeper".to_owned()),
        root.map(|root| format!("all data in {}", root.display())),
    ]
    .into_iter()
    .flatten()
    .collect();
    print!("Delete {}? Type YES: ", what.join(" and "));
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "YES")
}

async fn clean_nodes(config: &Config) -> anyhow::Result<usize> {
    let (mut session, parent) = session(config).await?;
    if parent.is_empty() {
        bail!("clean: zookeeper.znode.parent is ZooKeeper's root, which is not only HBase's");
    }
    let servers = session.children(&format!("{parent}/rs")).await?.unwrap_or_default();
    if !servers.is_empty() {
        bail!("clean: {} runs: stop it first", servers.join(", "));
    }
    let mut found = vec![parent];
    let mut at = 0;
    while let Some(node) = found.get(at).cloned() {
        at += 1;
        let children = session.children(&node).await?.unwrap_or_default();
        found.extend(children.iter().map(|child| format!("{node}/{child}")));
    }
    for node in found.iter().rev() {
        match session.delete(node, None).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    session.close().await;
    Ok(found.len())
}
