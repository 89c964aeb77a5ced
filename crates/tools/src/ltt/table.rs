//! The table of a load test, split by the first digits of the keys' digests. Follows:
//! `HBaseTestingUtility#createPreSplitLoadTestTable`, `RegionSplitter.HexStringSplit`,
//! `LoadTestTool#applyColumnFamilyOptions`.

use bytes::Bytes;
use client::Admin;
use model::{FamilyDescriptor, TableDescriptor, TableName};

use super::options::LoadOptions;
use crate::log::Log;

/// Keys that cut the range of eight hexadecimal digits into `regions` equal parts.
fn hex_splits(regions: usize) -> Vec<Bytes> {
    let each = (1u64 << 32) / regions.max(1) as u64;
    (1..regions as u64).map(|i| Bytes::from(format!("{:08x}", each * i))).collect()
}

fn family(name: &Bytes, known: Option<&FamilyDescriptor>, options: &LoadOptions) -> FamilyDescriptor {
    let mut family = known.cloned().unwrap_or_else(|| FamilyDescriptor::new(name.clone()));
    family = family.with("BLOOMFILTER", options.bloom.clone()).with("COMPRESSION", options.compression.clone());
    if let Some(param) = &options.bloom_param {
        family.configuration.insert("RowPrefixBloomFilter.prefix_length".to_owned(), param.clone());
    }
    if let Some(encoding) = &options.encoding {
        family = family.with("DATA_BLOCK_ENCODING", encoding.clone());
    }
    if options.in_memory {
        family = family.with("IN_MEMORY", "true");
    }
    if let Some(threshold) = options.mob_threshold {
        family = family.with("IS_MOB", "true").with("MOB_THRESHOLD", threshold.to_string());
    }
    family
}

/// Makes the table, or gives an existing one the families that the options ask for.
///
/// # Errors
/// The cluster refuses.
pub async fn init(admin: &Admin, name: &TableName, options: &LoadOptions, log: &Log) -> anyhow::Result<()> {
    match admin.describe(name).await? {
        None => {
            let servers = admin.servers().await?.len();
            anyhow::ensure!(servers > 0, "No live regionservers");
            let regions = servers * options.regions_per_server;
            log.info(
                "main",
                format!(
                    "Number of live regionservers: {servers}, pre-splitting table into {regions} regions (regions per \
                     server: {})",
                    options.regions_per_server
                ),
            );
            let families = options.families.iter().map(|name| family(name, None, options));
            let mut table = TableDescriptor::new(name.clone(), families);
            if options.deferred_log_flush {
                table.attributes.insert(Bytes::from_static(b"DURABILITY"), Bytes::from_static(b"ASYNC_WAL"));
            }
            admin.create_table(&table, &hex_splits(regions)).await?;
        }
        Some(mut table) => {
            log.warn("main", format!("Table {name} already exists, continuing"));
            let before = table.clone();
            for name in &options.families {
                let changed = family(name, table.families.get(name), options);
                table.families.insert(name.clone(), changed);
            }
            if table.families == before.families {
                return Ok(());
            }
            log.info("main", format!("Disabling table {name}"));
            admin.disable_table(name).await?;
            admin.modify_table(&table).await?;
            log.info("main", format!("Enabling table {name}"));
            admin.enable_table(name).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_are_cut_as_hexadecimal_numbers() {
        assert_eq!(super::hex_splits(5), ["33333333", "66666666", "99999999", "cccccccc"]);
        assert!(super::hex_splits(1).is_empty());
    }
}
