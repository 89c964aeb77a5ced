//! Administration of tables, and where regions are.

use super::types::*;
use super::{Handler, parse_column, table_name};
use crate::fault::{Fault, Outcome};
use bytes::Bytes;
use client::{Error, RegionLocation};
use model::{BloomType, Compression, FamilyDescriptor, TableDescriptor};
use std::collections::BTreeMap;

/// Follows: `ThriftUtilities#colDescFromThrift`.
fn family(from: &ColumnDescriptor) -> Outcome<FamilyDescriptor> {
    let unsupported =
        || Fault::Argument(format!("Unsupported compression algorithm name: {}", from.compression.to_lowercase()));
    let compression = Compression::parse(&from.compression.to_uppercase()).ok_or_else(unsupported)?;
    let no_bloom = || {
        let class = "org.apache.hadoop.hbase.regionserver.BloomType";
        Fault::Argument(format!("No enum constant {class}.{}", from.bloom_filter_type))
    };
    let bloom = BloomType::parse(&from.bloom_filter_type).ok_or_else(no_bloom)?;
    if from.name.is_empty() {
        return Err(Fault::Illegal("column name is empty".to_owned()));
    }
    let (name, _) = parse_column(&from.name);
    model::name::check_family(&name)?;
    let ttl_seconds = if from.time_to_live > 0 { from.time_to_live } else { i32::MAX };
    Ok(FamilyDescriptor::new(name)
        .with("VERSIONS", from.max_versions.to_string())
        .with("COMPRESSION", compression.as_str())
        .with("IN_MEMORY", from.in_memory.to_string())
        .with("BLOCKCACHE", from.block_cache_enabled.to_string())
        .with("TTL", ttl_seconds.to_string())
        .with("BLOOMFILTER", bloom.as_str()))
}

/// Follows: `ThriftUtilities#colDescFromHbase`.
fn wire_family(from: &FamilyDescriptor) -> ColumnDescriptor {
    let ttl_seconds = from.ttl_ms().and_then(|ms| i32::try_from(ms / 1000).ok());
    ColumnDescriptor {
        name: [&from.name[..], b":"].concat().into(),
        max_versions: from.max_versions() as i32,
        compression: from.compression().as_str().to_owned(),
        in_memory: from.in_memory(),
        bloom_filter_type: from.bloom_type().as_str().to_owned(),
        bloom_filter_vector_size: 0,
        bloom_filter_nb_hashes: 0,
        block_cache_enabled: from.block_cache_enabled(),
        time_to_live: ttl_seconds.unwrap_or(i32::MAX),
    }
}

fn wire_region(from: &RegionLocation) -> TRegionInfo {
    TRegionInfo {
        start_key: from.region.start_key.clone(),
        end_key: from.region.end_key.clone(),
        id: from.region.region_id as i64,
        name: from.region.name().clone(),
        // As HBase has it since regions have no version.
        version: 1,
        server_name: Bytes::copy_from_slice(from.server.host.as_bytes()),
        port: from.server.port.into(),
    }
}

impl Handler {
    pub(super) async fn enable_table(&self, table_name: Bytes) -> Outcome<()> {
        Ok(self.admin().enable_table(&self::table_name(&table_name)?).await?)
    }

    pub(super) async fn disable_table(&self, table_name: Bytes) -> Outcome<()> {
        Ok(self.admin().disable_table(&self::table_name(&table_name)?).await?)
    }

    pub(super) async fn is_table_enabled(&self, table_name: Bytes) -> Outcome<bool> {
        Ok(self.admin().is_enabled(&self::table_name(&table_name)?).await?)
    }

    pub(super) async fn get_table_names(&self) -> Outcome<Vec<Bytes>> {
        let names = self.admin().list_table_names(None, false).await?;
        Ok(names.iter().map(|name| Bytes::copy_from_slice(name.as_str().as_bytes())).collect())
    }

    pub(super) async fn get_table_names_with_is_table_enabled(&self) -> Outcome<BTreeMap<Bytes, bool>> {
        let mut tables = BTreeMap::new();
        for name in self.get_table_names().await? {
            let is_enabled = self.is_table_enabled(name.clone()).await?;
            tables.insert(name, is_enabled);
        }
        Ok(tables)
    }

    /// A region by its name, else a table.
    pub(super) async fn compact(&self, table_name_or_region_name: Bytes) -> Outcome<()> {
        self.compact_as(&table_name_or_region_name, false).await
    }

    pub(super) async fn major_compact(&self, table_name_or_region_name: Bytes) -> Outcome<()> {
        self.compact_as(&table_name_or_region_name, true).await
    }

    async fn compact_as(&self, name: &Bytes, major: bool) -> Outcome<()> {
        match table_name(name) {
            Ok(table) => Ok(self.admin().compact_family(&table, None, major).await?),
            // With commas and a point it is a region's.
            Err(_) => Ok(self.admin().compact_region(name, None, major).await?),
        }
    }

    pub(super) async fn create_table(&self, table_name: Bytes, column_families: Vec<ColumnDescriptor>) -> Outcome<()> {
        let name = self::table_name(&table_name).map_err(Fault::declared)?;
        let admin = self.admin();
        if admin.table_exists(&name).await? {
            return Err(Fault::Exists("table name already in use".to_owned()));
        }
        let families = column_families.iter().map(family).collect::<Outcome<Vec<_>>>().map_err(Fault::declared)?;
        let table = TableDescriptor::new(name, families);
        admin.create_table(&table, &[]).await.map_err(|error| Fault::from(error).declared())
    }

    pub(super) async fn delete_table(&self, table_name: Bytes) -> Outcome<()> {
        let name = self::table_name(&table_name)?;
        if !self.admin().table_exists(&name).await? {
            return Err(Fault::io("table does not exist"));
        }
        Ok(self.admin().delete_table(&name).await?)
    }

    pub(super) async fn get_column_descriptors(&self, table_name: Bytes) -> Outcome<BTreeMap<Bytes, ColumnDescriptor>> {
        let name = self::table_name(&table_name)?;
        let table = self.admin().describe(&name).await?.ok_or(Error::TableNotFound(name))?;
        let families = table.families.values().map(wire_family);
        Ok(families.map(|family| (family.name.clone(), family)).collect())
    }

    /// None where there is no such table.
    pub(super) async fn get_table_regions(&self, table_name: Bytes) -> Outcome<Vec<TRegionInfo>> {
        match self.table(&table_name)?.regions().await {
            Ok(regions) => Ok(regions.iter().map(wire_region).collect()),
            Err(Error::TableNotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// The region in whose range a row of hbase:meta, `table,row,id`, lies.
    pub(super) async fn get_region_info(&self, row: Bytes) -> Outcome<TRegionInfo> {
        let comma = |byte: &u8| *byte == b',';
        let (first, last) = (row.iter().position(comma), row.iter().rposition(comma));
        let (Some(first), Some(last)) = (first, last) else {
            let row = String::from_utf8_lossy(&row);
            return Err(Fault::io(format!("Cannot find row in hbase:meta, row={row}")));
        };
        let table = self.table(&row.slice(..first))?;
        let key = if first < last { row.slice(first + 1..last) } else { row.slice(first + 1..) };
        Ok(wire_region(&table.region_of(&key, true).await?))
    }

    pub(super) async fn get_thrift_server_type(&self) -> Outcome<TThriftServerType> {
        Ok(TThriftServerType::ONE)
    }

    pub(super) async fn get_cluster_id(&self) -> Outcome<String> {
        Ok(self.connection.cluster_id().await?)
    }
}
