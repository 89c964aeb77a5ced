//! What tables there are: the mappings in the system table `basalt:sql`, and HBase's tables that nobody described.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use client::{CheckAndMutate, Connection, Delete, Put, ScanOptions};
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::TableProvider;
use datafusion::error::{DataFusionError, Result};
use model::{FamilyDescriptor, Scan, TableDescriptor, TableName};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;
use types::SqlType;

use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, Kind, Mapping, Place, Versions, hbase_name, schema_of_namespace};
use crate::sequence::KnownSequences;
use crate::table::HBaseTable;

const NAMESPACE: &str = "basalt";
/// One row for each mapping: schema, 0x00, name.
const SYSTEM_TABLE: &str = "basalt:sql";
pub(crate) const FAMILY: &str = "m";
const QUALIFIER: &str = "mapping";
/// Rows of an undescribed table that are looked at for its columns, and columns at most.
const SAMPLE_ROWS: u64 = 100;
const SAMPLE_COLUMNS: usize = 200;
/// Name of the only key column of an undescribed table.
pub const RAW_KEY: &str = "row_key";

/// A table's schema and name.
type Name = (String, String);

#[derive(Clone)]
enum Entry {
    Mapped(Arc<HBaseTable>),
    /// An HBase table that nobody described: its columns are looked for when it is used.
    Raw(String),
}

impl Entry {
    fn is_same(&self, other: &Entry) -> bool {
        match (self, other) {
            (Entry::Mapped(a), Entry::Mapped(b)) => Arc::ptr_eq(a, b),
            (Entry::Raw(a), Entry::Raw(b)) => a == b,
            _ => false,
        }
    }
}

#[derive(Default)]
struct Known {
    loaded: Option<Instant>,
    entries: BTreeMap<Name, Entry>,
    sampled: BTreeMap<Name, Arc<HBaseTable>>,
    schemas: Vec<String>,
}

/// The tables of a cluster. Others may change them at any time: what is known here grows old.
pub struct Catalog {
    connection: Connection,
    known: RwLock<Known>,
    /// Counts the changes of what is known.
    version: AtomicU64,
    refreshing: tokio::sync::Mutex<()>,
    other_schemas: Mutex<BTreeMap<String, Arc<dyn SchemaProvider>>>,
    /// Sequences, as far as they were asked for.
    pub(crate) sequences: KnownSequences,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").finish_non_exhaustive()
    }
}

impl Catalog {
    /// The tables that a connection reaches; nothing is read yet.
    pub fn new(connection: Connection) -> Arc<Catalog> {
        Arc::new(Catalog {
            connection,
            known: RwLock::default(),
            version: AtomicU64::new(0),
            refreshing: tokio::sync::Mutex::default(),
            other_schemas: Mutex::default(),
            sequences: KnownSequences::default(),
        })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn age(&self) -> Option<Duration> {
        self.known.read().loaded.map(|at| at.elapsed())
    }

    /// Reads anew what is older than `most`.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn refresh(&self, most: Duration) -> std::result::Result<(), SqlError> {
        if self.age().is_some_and(|age| age < most) {
            return Ok(());
        }
        // Those who come meanwhile share one reading.
        let _one = self.refreshing.lock().await;
        if self.age().is_some_and(|age| age < most) {
            return Ok(());
        }
        let known = self.read().await?;
        let mut before = self.known.write();
        let is_same = before.loaded.is_some()
            && before.entries.len() == known.entries.len()
            && before.entries.iter().zip(&known.entries).all(|(old, new)| old.0 == new.0 && old.1.is_same(new.1));
        *before = known;
        if !is_same {
            self.version.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// As [`Catalog::refresh`], for those who need not wait for it, unless nothing is known yet.
    ///
    /// # Errors
    /// As [`Catalog::refresh`].
    pub async fn refresh_behind(self: &Arc<Self>, most: Duration) -> std::result::Result<(), SqlError> {
        match self.age() {
            None => return self.refresh(most).await,
            Some(age) if age < most => return Ok(()),
            Some(_) => {}
        }
        if self.refreshing.try_lock().is_ok() {
            let catalog = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(e) = catalog.refresh(most).await {
                    tracing::debug!("what is known of the tables grows old: {e}");
                }
            });
        }
        Ok(())
    }

    /// Grows with each change of what is known.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// A table that was described, by its name.
    pub fn described(&self, schema: &str, name: &str) -> Option<Arc<HBaseTable>> {
        match self.known.read().entries.get(&(schema.to_owned(), name.to_owned())) {
            Some(Entry::Mapped(table)) => Some(Arc::clone(table)),
            _ => None,
        }
    }

    async fn read(&self) -> std::result::Result<Known, SqlError> {
        let names = self.connection.admin().list_table_names(None, false).await?;
        let mut entries = BTreeMap::new();
        let mut mapped = Vec::new();
        if names.iter().any(|name| name.as_str() == SYSTEM_TABLE) {
            for mapping in self.read_mappings().await? {
                mapped.push(mapping.hbase_table.clone());
                let name = (mapping.schema.clone(), mapping.name.clone());
                let before = self.known.read().entries.get(&name).cloned();
                let entry = match before {
                    // The same object keeps what it knows of the regions.
                    Some(Entry::Mapped(table)) if *table.mapping == mapping => Entry::Mapped(table),
                    _ => Entry::Mapped(Arc::new(HBaseTable::new(mapping, &self.connection)?)),
                };
                entries.insert(name, entry);
            }
        }
        for name in names.iter().filter(|name| name.as_str() != SYSTEM_TABLE) {
            if mapped.iter().any(|mapped| mapped == name.as_str()) {
                continue;
            }
            let (namespace, qualifier) = name.as_str().split_once(':').unwrap_or(("default", name.as_str()));
            let sql_name = (schema_of_namespace(namespace).to_owned(), qualifier.to_owned());
            entries.entry(sql_name).or_insert_with(|| Entry::Raw(name.as_str().to_owned()));
        }
        let mut schemas: Vec<String> = entries.keys().map(|(schema, _)| schema.clone()).collect();
        schemas.push("public".to_owned());
        schemas.sort_unstable();
        schemas.dedup();
        Ok(Known { loaded: Some(Instant::now()), entries, sampled: BTreeMap::new(), schemas })
    }

    async fn read_mappings(&self) -> std::result::Result<Vec<Mapping>, SqlError> {
        let table = self.connection.table(&hbase_name(SYSTEM_TABLE)?);
        let mut scanner = table.scan(Scan::default(), ScanOptions::default());
        let mut mappings = Vec::new();
        while let Some(row) = scanner.next().await? {
            let Some(value) = row.value(FAMILY.as_bytes(), QUALIFIER.as_bytes()) else { continue };
            match serde_json::from_slice(value) {
                Ok(mapping) => mappings.push(mapping),
                // One that a later version wrote must not take the others away.
                Err(e) => tracing::warn!("row '{}' of {SYSTEM_TABLE} is passed over: {e}", row.row().escape_ascii()),
            }
        }
        Ok(mappings)
    }

    /// A table by its name.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn table(&self, schema: &str, name: &str) -> std::result::Result<Option<Arc<HBaseTable>>, SqlError> {
        let key = (schema.to_owned(), name.to_owned());
        let entry = self.known.read().entries.get(&key).cloned();
        let hbase_table = match entry {
            None => {
                let Some((name, versions)) = with_versions(name) else { return Ok(None) };
                let table = Box::pin(self.table(schema, name)).await?;
                return Ok(table.map(|table| Arc::new(table.with_versions(versions))));
            }
            Some(Entry::Mapped(table)) => return Ok(Some(table)),
            Some(Entry::Raw(hbase_table)) => hbase_table,
        };
        if let Some(table) = self.known.read().sampled.get(&key) {
            return Ok(Some(Arc::clone(table)));
        }
        let mapping = self.sample(schema, name, &hbase_table).await?;
        let table = Arc::new(HBaseTable::new(mapping, &self.connection)?);
        self.known.write().sampled.insert(key, Arc::clone(&table));
        Ok(Some(table))
    }

    /// The columns of an undescribed table, from its first rows: everything is bytes.
    async fn sample(&self, schema: &str, name: &str, hbase_table: &str) -> std::result::Result<Mapping, SqlError> {
        let table = self.connection.table(&hbase_name(hbase_table)?);
        let options = ScanOptions { limit: Some(SAMPLE_ROWS), ..table.scan_options() };
        let filter = filter::Filter::KeyOnly { len_as_val: false };
        let mut scanner = table.scan(Scan { filter: Some(Arc::new(filter)), ..Scan::default() }, options);
        let mut cells = std::collections::BTreeSet::new();
        while let Some(row) = scanner.next().await? {
            cells.extend(row.iter().map(|cell| (cell.family().to_vec(), cell.qualifier().to_vec())));
            if cells.len() >= SAMPLE_COLUMNS {
                break;
            }
        }
        let raw = |name: String, place, not_null| Column {
            name,
            sql_type: SqlType::Varbinary,
            max_chars: None,
            decimal: None,
            not_null,
            descending: false,
            is_array: false,
            with_time: false,
            place,
            comment: None,
        };
        let mut columns = vec![raw(RAW_KEY.to_owned(), Place::Key(0), true)];
        for (family, qualifier) in cells.into_iter().take(SAMPLE_COLUMNS) {
            let family = String::from_utf8_lossy(&family).into_owned();
            let name = format!("{family}:{}", qualifier.escape_ascii());
            columns.push(raw(name, Place::Cell { family, qualifier }, false));
        }
        Ok(Mapping {
            schema: schema.to_owned(),
            name: name.to_owned(),
            hbase_table: hbase_table.to_owned(),
            kind: Kind::Raw,
            columns,
            salt_buckets: 0,
            phoenix: None,
            comment: None,
            version: 0,
        })
    }

    /// The system table, where it is there.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn known_system_table(&self) -> std::result::Result<Option<client::Table>, SqlError> {
        let name = hbase_name(SYSTEM_TABLE)?;
        Ok(self.connection.admin().table_exists(&name).await?.then(|| self.connection.table(&name)))
    }

    /// The system table, made where it is missing.
    pub(crate) async fn system_table(&self) -> std::result::Result<client::Table, SqlError> {
        let name = hbase_name(SYSTEM_TABLE)?;
        let admin = self.connection.admin();
        if !admin.table_exists(&name).await? {
            let namespaces = admin.list_namespaces().await?;
            if !namespaces.iter().any(|namespace| namespace == NAMESPACE) {
                admin.create_namespace(NAMESPACE, &BTreeMap::new()).await?;
            }
            let family = FamilyDescriptor::new(Bytes::from_static(FAMILY.as_bytes()));
            match admin.create_table(&TableDescriptor::new(name.clone(), [family]), &[]).await {
                // Another server was faster.
                Err(e) if e.short_class() == Some("TableExistsException") => {}
                made => made?,
            }
        }
        Ok(self.connection.table(&name))
    }

    /// Makes a mapping known.
    ///
    /// # Errors
    /// The name is taken; the cluster does not answer.
    pub async fn add(&self, mapping: &Mapping) -> std::result::Result<(), SqlError> {
        let row = system_row(&mapping.schema, &mapping.name);
        let put = Put::new(&row).add(FAMILY, QUALIFIER, to_json(mapping)?).build();
        let check = CheckAndMutate::if_not_exists(&row, FAMILY, QUALIFIER).then([put]);
        if !self.system_table().await?.check(&check).await?.processed {
            let message = format!("relation \"{}\" already exists", mapping.name);
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        self.refresh(Duration::ZERO).await
    }

    /// Replaces a mapping, unless somebody else did meanwhile.
    ///
    /// # Errors
    /// It was changed meanwhile; the cluster does not answer.
    pub async fn replace(&self, before: &Mapping, after: &Mapping) -> std::result::Result<(), SqlError> {
        let row = system_row(&before.schema, &before.name);
        let after = Mapping { version: before.version + 1, ..after.clone() };
        let put = Put::new(&row).add(FAMILY, QUALIFIER, to_json(&after)?).build();
        let check = CheckAndMutate::if_equals(&row, FAMILY, QUALIFIER, to_json(before)?).then([put]);
        if !self.system_table().await?.check(&check).await?.processed {
            let message = format!("\"{}\" was changed by somebody else meanwhile: try again", before.name);
            return Err(SqlError::new("40001", message));
        }
        self.refresh(Duration::ZERO).await
    }

    /// Forgets a mapping.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn remove(&self, mapping: &Mapping) -> std::result::Result<(), SqlError> {
        let row = system_row(&mapping.schema, &mapping.name);
        self.system_table().await?.delete(&Delete::new(row).build()).await?;
        self.refresh(Duration::ZERO).await
    }

    /// Whether HBase has a table of this name.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn hbase_has(&self, name: &TableName) -> std::result::Result<bool, SqlError> {
        Ok(self.connection.admin().table_exists(name).await?)
    }
}

/// The name of a table with other versions of its rows: what `AS OF` and `FOR SYSTEM_TIME` become.
pub fn name_with(name: &str, versions: Versions) -> String {
    match versions {
        Versions::Newest => name.to_owned(),
        Versions::AsOf { last_ms, with_start: false } => format!("{name}@{last_ms}"),
        Versions::AsOf { last_ms, with_start: true } => format!("{name}@{last_ms}+"),
        Versions::All => format!("{name}@all"),
    }
}

fn with_versions(name: &str) -> Option<(&str, Versions)> {
    let (name, which) = name.rsplit_once('@')?;
    let versions = match (which, which.strip_suffix('+')) {
        ("all", _) => Versions::All,
        (_, Some(time)) => Versions::AsOf { last_ms: time.parse().ok()?, with_start: true },
        (time, None) => Versions::AsOf { last_ms: time.parse().ok()?, with_start: false },
    };
    Some((name, versions))
}

pub(crate) fn system_row(schema: &str, name: &str) -> Vec<u8> {
    [schema.as_bytes(), &[0], name.as_bytes()].concat()
}

fn to_json(mapping: &Mapping) -> std::result::Result<Vec<u8>, SqlError> {
    serde_json::to_vec(mapping).map_err(|e| SqlError::new(SqlState::INTERNAL_ERROR, e.to_string()))
}

/// The catalog as DataFusion asks it.
#[derive(Debug)]
pub struct Provider(pub Arc<Catalog>);

impl CatalogProvider for Provider {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.0.known.read().schemas.clone();
        names.extend(self.0.other_schemas.lock().keys().cloned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if let Some(schema) = self.0.other_schemas.lock().get(name) {
            return Some(Arc::clone(schema));
        }
        if self.0.known.read().schemas.iter().any(|schema| schema == name) {
            return Some(Arc::new(Schema { catalog: Arc::clone(&self.0), name: name.to_owned() }));
        }
        // Before the first reading, planners may ask already.
        (name == "public").then(|| Arc::new(MemorySchemaProvider::new()) as Arc<dyn SchemaProvider>)
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        Ok(self.0.other_schemas.lock().insert(name.to_owned(), schema))
    }
}

#[derive(Debug)]
struct Schema {
    catalog: Arc<Catalog>,
    name: String,
}

impl Schema {
    /// `pg_catalog`, where it may have what a name without a schema means.
    fn system(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let is_searched = self.name == "public" && name.starts_with("pg_");
        is_searched.then(|| self.catalog.other_schemas.lock().get("pg_catalog").cloned())?
    }
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        let known = self.catalog.known.read();
        known.entries.keys().filter(|(schema, _)| *schema == self.name).map(|(_, name)| name.clone()).collect()
    }

    async fn table(&self, name: &str) -> std::result::Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some(table) = self.catalog.table(&self.name, name).await? {
            return Ok(Some(table));
        }
        match self.system(name) {
            Some(system) => system.table(name).await,
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        let known = self.catalog.known.read();
        let has = |name: &str| known.entries.contains_key(&(self.name.clone(), name.to_owned()));
        has(name)
            || with_versions(name).is_some_and(|(name, _)| has(name))
            || self.system(name).is_some_and(|system| system.table_exist(name))
    }
}
