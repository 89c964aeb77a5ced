//! A region server made of maps.

use super::machine::{Machine, MachineVolume};
use basalt_master::{BoxFuture, HostError, RegionHost};
use base::SeqId;
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use fs::Volume;
use model::status::{Locality, RegionLoad};
use model::{Mutation, RegionInfo, Scan, ServerName, TableDescriptor};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

type Column = (Bytes, Bytes, Bytes);

/// The cells of the catalog tables: what a log would keep over a crash.
#[derive(Default, Clone)]
pub struct Cells {
    puts: BTreeMap<Column, BTreeMap<i64, Bytes>>,
    deleted_families: HashMap<(Bytes, Bytes), i64>,
    deleted_columns: HashMap<Column, i64>,
}

impl Cells {
    pub fn apply(&mut self, mutations: &[Mutation]) {
        for cell in mutations.iter().flat_map(|mutation| &mutation.cells) {
            let own = Bytes::copy_from_slice;
            let column = (own(cell.row()), own(cell.family()), own(cell.qualifier()));
            let stamp = cell.timestamp();
            match CellType::from_code(cell.type_code()) {
                Some(CellType::Put) => {
                    self.puts.entry(column).or_default().insert(stamp, own(cell.value()));
                }
                Some(CellType::DeleteFamily) => {
                    let newest = self.deleted_families.entry((column.0, column.1)).or_insert(stamp);
                    *newest = stamp.max(*newest);
                }
                Some(CellType::DeleteColumn) => {
                    let newest = self.deleted_columns.entry(column).or_insert(stamp);
                    *newest = stamp.max(*newest);
                }
                other => panic!("the master writes no {other:?}"),
            }
        }
    }

    /// As if the row had never been.
    pub fn lose_row(&mut self, row: &[u8]) {
        self.puts.retain(|(of, _, _), _| of != row);
    }

    pub fn scan(&self) -> CellBuffer {
        let mut out = CellBuffer::new();
        for (column, versions) in &self.puts {
            let (row, family, qualifier) = column;
            let hidden = self.deleted_families.get(&(row.clone(), family.clone())).copied().unwrap_or(i64::MIN);
            let hidden = hidden.max(self.deleted_columns.get(column).copied().unwrap_or(i64::MIN));
            let (stamp, value) = versions.iter().next_back().expect("a column has versions");
            if *stamp > hidden {
                let type_code = CellType::Put.code();
                let spec = CellSpec { row, family, qualifier, timestamp: *stamp, type_code, value, tags: &[] };
                out.push_spec(&spec, SeqId(1));
            }
        }
        out
    }

    fn put(&mut self, row: &[u8], family: &[u8], qualifier: &[u8], stamp: i64, value: &[u8]) {
        let own = Bytes::copy_from_slice;
        self.puts.entry((own(row), own(family), own(qualifier))).or_default().insert(stamp, own(value));
    }
}

/// Cells by region: hbase:meta and hbase:namespace. Shared by one life and the next.
pub type Catalog = Arc<Mutex<HashMap<String, Cells>>>;

/// Puts a cell into a catalog by hand.
pub fn put_cell(catalog: &Catalog, region: &str, row: &[u8], column: &str, stamp: i64, value: &[u8]) {
    let (family, qualifier) = column.split_once(':').expect("family:qualifier");
    catalog.lock().entry(region.to_owned()).or_default().put(
        row,
        family.as_bytes(),
        qualifier.as_bytes(),
        stamp,
        value,
    );
}

/// Told of a region.
pub type AtOpen = Box<dyn Fn(&RegionInfo) + Send>;

pub struct FakeHost {
    pub machine: Arc<Machine>,
    pub volume: Arc<MachineVolume>,
    pub catalog: Catalog,
    pub open: Mutex<BTreeMap<String, (RegionInfo, Arc<TableDescriptor>)>>,
    pub split_points: Mutex<HashMap<String, Bytes>>,
    /// Regions that cannot be opened: encoded names, or names of their tables.
    pub broken: Mutex<BTreeSet<String>>,
    pub flushed: Mutex<Vec<String>>,
    /// Log entries written to catalog tables.
    pub log_entries: AtomicI64,
    pub server: ServerName,
    /// Regions may be opened without a directory.
    pub lenient: bool,
    /// How long a sync of the log takes.
    pub sync_ms: AtomicU64,
    /// What it reports of where the files of each of its regions are.
    pub locality: Mutex<Locality>,
    /// It is not reached: no order comes to it.
    pub unreached: AtomicBool,
    /// It is another process, which lives on when the master ends.
    pub remote: AtomicBool,
    /// So many scans of this table come before it has taken in that the region is open.
    pub late: Mutex<Option<(String, usize)>>,
    /// Told of each region that it is to open, before it does.
    pub at_open: Mutex<Option<AtOpen>>,
}

impl FakeHost {
    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError>,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        let result = if self.machine.runs() { work() } else { Err(HostError::Stopping) };
        Box::pin(async move { result })
    }
}

impl RegionHost for FakeHost {
    fn server_name(&self) -> ServerName {
        self.server.clone()
    }

    fn is_remote(&self) -> bool {
        self.remote.load(Ordering::SeqCst)
    }

    fn open_region(&self, info: RegionInfo, table: Arc<TableDescriptor>) -> BoxFuture<'_, Result<u64, HostError>> {
        self.answer(|| {
            if let Some(at_open) = &*self.at_open.lock() {
                at_open(&info);
            }
            if self.unreached.load(Ordering::SeqCst) {
                return Err(HostError::NotTaken("nobody listens".into()));
            }
            let broken = self.broken.lock();
            if broken.contains(&**info.encoded_name()) || broken.contains(info.table.as_str()) {
                return Err(HostError::Failed("a store file is damaged".into()));
            }
            drop(broken);
            // A region without its directory would lose its edits when a log is split.
            let there = self.volume.memory.exists(&rootdir::region_dir(&info)).expect("memory");
            assert!(there || self.lenient, "opened without a directory: {}", info.name_string());
            assert_eq!(info.table, table.name);
            assert!(!info.split && !info.offline, "opened a parent: {}", info.name_string());
            let mut open = self.open.lock();
            open.insert(info.encoded_name().to_string(), (info, table));
            Ok(2)
        })
    }

    fn close_region(&self, encoded_name: &str) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.answer(move || {
            if self.unreached.load(Ordering::SeqCst) {
                return Err(HostError::Unreachable("it may have closed it or not".into()));
            }
            self.open.lock().remove(&name);
            Ok(())
        })
    }

    fn flush_region(&self, encoded_name: &str, _families: Vec<Bytes>) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.answer(move || {
            self.flushed.lock().push(name);
            Ok(())
        })
    }

    fn compact_region(
        &self,
        _encoded_name: &str,
        _family: Option<Bytes>,
        _major: bool,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        self.answer(|| Ok(()))
    }

    fn split_point(&self, encoded_name: &str) -> BoxFuture<'_, Result<Option<Bytes>, HostError>> {
        let point = self.split_points.lock().get(encoded_name).cloned();
        self.answer(|| Ok(point))
    }

    fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: Arc<TableDescriptor>,
        daughters: [RegionInfo; 2],
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let parent = parent.clone();
        self.answer(move || {
            assert!(!self.open.lock().contains_key(&**parent.encoded_name()), "the parent is closed first");
            split_files(&*self.volume, &parent, &table, &daughters)
                .map_err(|error| HostError::Failed(error.to_string()))
        })
    }

    fn snapshot_region(&self, encoded_name: &str, snapshot: &str, flush: bool) -> BoxFuture<'_, Result<(), HostError>> {
        let (name, snapshot) = (encoded_name.to_owned(), snapshot.to_owned());
        self.answer(move || {
            let (info, table) = self.open.lock().get(&name).cloned().ok_or_else(|| HostError::Failed(name.clone()))?;
            if flush {
                self.flushed.lock().push(name);
            }
            add_to_snapshot(&*self.volume, &info, &table, &snapshot)
                .map_err(|error| HostError::Failed(error.to_string()))
        })
    }

    fn snapshot_closed_region(
        &self,
        info: RegionInfo,
        table: Arc<TableDescriptor>,
        snapshot: &str,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let snapshot = snapshot.to_owned();
        self.answer(move || {
            assert!(!self.open.lock().contains_key(&**info.encoded_name()), "it is closed");
            if self.broken.lock().contains(info.table.as_str()) {
                return Err(HostError::Failed("a store file is damaged".into()));
            }
            add_to_snapshot(&*self.volume, &info, &table, &snapshot)
                .map_err(|error| HostError::Failed(error.to_string()))
        })
    }

    fn mutate(&self, encoded_name: &str, mutations: Vec<Mutation>) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        let done = self.answer(move || {
            self.log_entries.fetch_add(1, Ordering::SeqCst);
            self.catalog.lock().entry(name).or_default().apply(&mutations);
            // Durable, and the machine may still go off before the answer leaves.
            if self.machine.runs() { Ok(()) } else { Err(HostError::Stopping) }
        });
        let sync_time = std::time::Duration::from_millis(self.sync_ms.load(Ordering::SeqCst));
        Box::pin(async move {
            if !sync_time.is_zero() {
                tokio::time::sleep(sync_time).await;
            }
            done.await
        })
    }

    fn scan(&self, encoded_name: &str, _scan: Scan) -> BoxFuture<'_, Result<CellBuffer, HostError>> {
        let cells = self.catalog.lock().get(encoded_name).cloned().unwrap_or_default();
        let of_table = self.open.lock().get(encoded_name).map(|(info, _)| info.table.as_str().to_owned());
        self.answer(move || {
            if let Some((table, scans)) = &mut *self.late.lock()
                && of_table.as_ref() == Some(table)
                && *scans > 0
            {
                *scans -= 1;
                return Err(HostError::Unreachable(format!("RegionOpeningException: a region of {table} is opening")));
            }
            Ok(cells.scan())
        })
    }

    fn region_loads(&self) -> Vec<RegionLoad> {
        let open = self.open.lock();
        let load = |info: &RegionInfo| RegionLoad {
            name: info.name().clone(),
            encoded_name: Arc::clone(info.encoded_name()),
            stores: 1,
            store_file_size_bytes: 3 << 20,
            own_file_size_bytes: 2 << 20,
            cached_bytes: 1 << 20,
            memstore_size_bytes: 1,
            store_references: 4,
            max_compacted_file_references: 2,
            coprocessors: vec!["MultiRowMutationEndpoint"],
            read_requests: 7,
            write_requests: 5,
            locality: *self.locality.lock(),
            ..RegionLoad::default()
        };
        open.values().map(|(info, _)| load(info)).collect()
    }
}

/// What a region server writes for a snapshot: the names of the files that are there.
fn add_to_snapshot(volume: &dyn Volume, info: &RegionInfo, table: &TableDescriptor, snapshot: &str) -> fs::Result<()> {
    use rootdir::snapshot::{FamilyFiles, RegionManifest, SnapshotFile, add_region};
    let mut families = Vec::new();
    for family in table.families.keys() {
        let listed = rootdir::list_if_exists(volume, &rootdir::family_dir(info, family))?.into_iter();
        let file = |entry: fs::DirEntry| SnapshotFile { name: entry.name, reference: None, len_bytes: entry.len };
        families.push(FamilyFiles { name: family.clone(), files: listed.map(file).collect() });
    }
    add_region(volume, snapshot, &RegionManifest { info: info.clone(), families })
}

/// What a region server writes for daughters: directories and references to every file of the parent.
fn split_files(
    volume: &dyn Volume,
    parent: &RegionInfo,
    table: &TableDescriptor,
    daughters: &[RegionInfo; 2],
) -> fs::Result<()> {
    for daughter in daughters {
        rootdir::create_region_dir(volume, daughter, table)?;
        for family in table.families.keys() {
            let family = String::from_utf8_lossy(family).into_owned();
            let from = rootdir::region_dir(parent).join(&family);
            for file in rootdir::list_if_exists(volume, &from)? {
                let name = format!("{}.{}", file.name, parent.encoded_name());
                volume.publish(&rootdir::region_dir(daughter).join(&family).join(name), b"PBUFreference")?;
            }
        }
    }
    volume.sync_dir(&rootdir::table_dir(&parent.table))
}
