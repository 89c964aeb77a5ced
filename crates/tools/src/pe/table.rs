//! The table of a run: made, made again when the options ask for another one, or complained about. Follows:
//! `PerformanceEvaluation#checkTable, #getTableDescriptor, #getSplits`.

use anyhow::bail;
use bytes::Bytes;
use client::Admin;
use model::{FamilyDescriptor, TableDescriptor, TableName};

use super::data::format_row;
use super::options::TestOptions;
use crate::log::Log;

/// Families are called so, with a number behind.
pub const FAMILY_NAME_BASE: &str = "info";

fn descriptor(name: &TableName, options: &TestOptions) -> TableDescriptor {
    let families = (0..options.families).map(|number| {
        let mut family = FamilyDescriptor::new(format!("{FAMILY_NAME_BASE}{number}"))
            .with("DATA_BLOCK_ENCODING", options.block_encoding.clone())
            .with("COMPRESSION", options.compression.clone())
            .with("BLOOMFILTER", options.bloom_type.clone())
            .with("BLOCKSIZE", options.block_size.to_string())
            .with("IN_MEMORY_COMPACTION", options.in_memory_compaction.clone());
        if let Some(encryption) = &options.encryption {
            family = family.with("ENCRYPTION", encryption.clone());
        }
        if options.in_memory_cf {
            family = family.with("IN_MEMORY", "true");
        }
        family
    });
    let mut table = TableDescriptor::new(name.clone(), families);
    if options.replicas != 1 {
        let replicas = Bytes::from(options.replicas.to_string());
        table.attributes.insert(Bytes::from_static(b"REGION_REPLICATION"), replicas);
    }
    if let Some(policy) = &options.split_policy {
        table.attributes.insert(Bytes::from_static(b"SPLIT_POLICY"), Bytes::from(policy.clone()));
    }
    table
}

fn splits(options: &TestOptions) -> Vec<Bytes> {
    let regions = u64::from(options.presplit_regions);
    if regions == 0 {
        return Vec::new();
    }
    let jump = options.total_rows / regions;
    (1..regions).map(|i| Bytes::copy_from_slice(&format_row(jump * i))).collect()
}

/// Sees to it that the table is there as the options want it.
///
/// # Errors
/// A test that reads or deletes finds no table or another number of families; the cluster refuses.
pub async fn check(admin: &Admin, name: &TableName, options: &TestOptions, log: &Log) -> anyhow::Result<()> {
    let existing = admin.describe(name).await?;
    let needs_data = options.command.needs_data();
    if existing.is_none() && needs_data {
        bail!("Must specify an existing table for read/delete commands. Run a write command first.");
    }
    let mut exists = existing.is_some();
    if let Some(existing) = existing {
        let mut errors = Vec::new();
        if existing.families.len() != options.families as usize {
            let found = existing.families.len();
            let error = format!("--families={}, but found {found} column families", options.families);
            if needs_data {
                bail!("Cannot proceed the test. Run a write command first: {error}");
            }
            errors.push(error);
        }
        if options.presplit_regions != 0 {
            let found = admin.regions(name).await?.len();
            if found != options.presplit_regions as usize {
                errors.push(format!("--presplit={}, but found {found} regions", options.presplit_regions));
            }
        }
        let policy = existing.attributes.get(&b"SPLIT_POLICY"[..]).map(|p| String::from_utf8_lossy(p).into_owned());
        if policy != options.split_policy {
            let (wanted, current) = (options.split_policy.as_deref(), policy.as_deref());
            let (wanted, current) = (wanted.unwrap_or("null"), current.unwrap_or("null"));
            errors.push(format!("--splitPolicy={wanted}, but current policy is {current}"));
        }
        let replicas = existing.region_replication();
        if replicas != options.replicas {
            errors.push(format!("--replicas={}, but found {replicas} replicas", options.replicas));
        }
        if !errors.is_empty() {
            let reason = errors.iter().map(|error| format!("[{error}]")).collect::<Vec<_>>().join(", ");
            if needs_data {
                log.warn(
                    "main",
                    format!(
                        "Unexpected or incorrect options provided for {}. Please verify whether the detected \
                         inconsistencies are expected or ignorable: {reason}. The test will proceed, but the results \
                         may not be reliable.",
                        options.command.name()
                    ),
                );
            } else {
                log.info("main", format!("Table will be recreated: {reason}"));
                if admin.is_enabled(name).await? {
                    admin.disable_table(name).await?;
                }
                admin.delete_table(name).await?;
                exists = false;
            }
        }
    }
    if !exists {
        admin.create_table(&descriptor(name, options), &splits(options)).await?;
        log.info("main", format!("Table {name} created"));
    }
    Ok(())
}
