//! Which server serves a row: hbase:meta, remembered. Follows: `AsyncNonMetaRegionLocator`, `AsyncMetaRegionLocator`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use cell::CellBlock;
use model::{RegionInfo, Scan, ServerName, TableName};
use parking_lot::RwLock;
use proto::methods::Method;
use proto::{Message, magic, pb};

use crate::channel::{Reply, Request};
use crate::connection::Cluster;
use crate::connection::server::Server;
use crate::{Error, Result, Row, Rows};

/// Hint for servers: work on hbase:meta goes first.
pub(crate) const META_PRIORITY: u32 = 200;
/// Rows of hbase:meta read for one lookup: the region, and a few more in case it is a parent that was split.
const LOOKUP_ROWS: u32 = 5;

/// A region and where it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionLocation {
    /// The region.
    pub region: RegionInfo,
    /// Its server.
    pub server: ServerName,
}

/// A region with what a call to it needs.
pub(crate) struct Located {
    pub(crate) region: RegionInfo,
    pub(crate) server_name: ServerName,
    pub(crate) server: Arc<Server>,
    pub(crate) specifier: pb::RegionSpecifier,
    /// Numbers and servers of its read replicas.
    replicas: Vec<(u32, ServerName)>,
}

impl Located {
    fn new(
        cluster: &Cluster,
        region: RegionInfo,
        server_name: ServerName,
        replicas: Vec<(u32, ServerName)>,
    ) -> Arc<Located> {
        let server = cluster.server(&server_name.address());
        let specifier = convert::to_proto::region_specifier(&region);
        Arc::new(Located { region, server_name, server, specifier, replicas })
    }

    pub(crate) fn priority(&self) -> u32 {
        if self.region.table.is_system() { META_PRIORITY } else { 0 }
    }

    pub(crate) fn location(&self) -> RegionLocation {
        RegionLocation { region: self.region.clone(), server: self.server_name.clone() }
    }
}

/// Which region is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that holds the row.
    Current,
    /// The one that ends at the row, or the last one when the row is empty.
    Before,
}

/// What is known of a table's regions, by start key.
pub(crate) struct TableCache {
    pub(crate) table: TableName,
    regions: RwLock<BTreeMap<Bytes, Arc<Located>>>,
    /// Lookups go one at a time: many callers miss together.
    looking: tokio::sync::Mutex<()>,
}

impl TableCache {
    pub(crate) fn new(table: TableName) -> TableCache {
        TableCache { table, regions: RwLock::default(), looking: tokio::sync::Mutex::default() }
    }

    fn cached(&self, row: &[u8], side: Side) -> Option<Arc<Located>> {
        let regions = self.regions.read();
        let (_, located) = match side {
            Side::Current => regions.range::<[u8], _>((Bound::Unbounded, Bound::Included(row))).next_back(),
            Side::Before if row.is_empty() => regions.iter().next_back(),
            Side::Before => regions.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(row))).next_back(),
        }?;
        holds(&located.region, row, side).then(|| located.clone())
    }

    /// Remembers a region and forgets those that it overlaps with (they were split or merged away).
    fn remember(&self, located: &Arc<Located>) {
        let mut regions = self.regions.write();
        let region = &located.region;
        let stale: Vec<Bytes> = regions
            .range::<Bytes, _>((Bound::Included(&region.start_key), Bound::Unbounded))
            .take_while(|(start, _)| region.end_key.is_empty() || **start < region.end_key)
            .map(|(start, _)| start.clone())
            .collect();
        for start in stale {
            regions.remove(&start);
        }
        if let Some((start, before)) =
            regions.range::<Bytes, _>((Bound::Unbounded, Bound::Excluded(&region.start_key))).next_back()
            && (before.region.end_key.is_empty() || before.region.end_key > region.start_key)
        {
            let start = start.clone();
            regions.remove(&start);
        }
        regions.insert(region.start_key.clone(), located.clone());
    }

    fn forget(&self, located: &Arc<Located>) {
        let mut regions = self.regions.write();
        if regions.get(&located.region.start_key).is_some_and(|known| Arc::ptr_eq(known, located)) {
            regions.remove(&located.region.start_key);
        }
    }

    pub(crate) fn forget_server(&self, server: &Arc<Server>) {
        self.regions.write().retain(|_, located| !Arc::ptr_eq(&located.server, server));
    }

    pub(crate) fn forget_all(&self) {
        self.regions.write().clear();
    }
}

fn holds(region: &RegionInfo, row: &[u8], side: Side) -> bool {
    match side {
        Side::Current => region.contains(row),
        Side::Before if row.is_empty() => region.end_key.is_empty(),
        Side::Before => *region.start_key < *row && (region.end_key.is_empty() || *region.end_key >= *row),
    }
}

impl Cluster {
    /// Where `row` of the table is served, from memory or from hbase:meta.
    pub(crate) async fn locate(&self, cache: &TableCache, row: &[u8], side: Side) -> Result<Arc<Located>> {
        if cache.table.is_meta() {
            return self.meta().await;
        }
        if let Some(located) = cache.cached(row, side) {
            self.counters.cache_hits.add(1);
            return Ok(located);
        }
        let _one_at_a_time = cache.looking.lock().await;
        if let Some(located) = cache.cached(row, side) {
            return Ok(located);
        }
        self.counters.cache_misses.add(1);
        let located = self.look_up(&cache.table, row, side).await?;
        cache.remember(&located);
        Ok(located)
    }

    /// As [`Cluster::locate`], and from hbase:meta for sure.
    pub(crate) async fn locate_anew(&self, cache: &TableCache, row: &[u8]) -> Result<Arc<Located>> {
        if cache.table.is_meta() {
            return self.meta_with_replicas().await;
        }
        let located = self.look_up(&cache.table, row, Side::Current).await?;
        cache.remember(&located);
        Ok(located)
    }

    /// The region of hbase:meta.
    pub(crate) async fn meta(&self) -> Result<Arc<Located>> {
        if let Some(located) = self.meta.read().clone() {
            return Ok(located);
        }
        self.look_meta_up(Vec::new()).await
    }

    async fn look_meta_up(&self, replicas: Vec<(u32, ServerName)>) -> Result<Arc<Located>> {
        let server = crate::registry::meta_location(&self.options).await?;
        let located = Located::new(self, RegionInfo::meta(), server, replicas);
        *self.meta.write() = Some(located.clone());
        Ok(located)
    }

    /// As the registry has it now, and with its read replicas.
    async fn meta_with_replicas(&self) -> Result<Arc<Located>> {
        self.forget_meta();
        self.look_meta_up(crate::registry::meta_replicas(&self.options).await?).await
    }

    pub(crate) fn forget_meta(&self) {
        *self.meta.write() = None;
    }

    /// Draws from a failed call what it says about locations.
    pub(crate) fn learn(&self, cache: &TableCache, located: &Arc<Located>, error: &Error) {
        if !error.doubts_location() {
            return;
        }
        if cache.table.is_meta() {
            self.forget_meta();
            return;
        }
        if error.doubts_server() {
            self.tables.read().values().for_each(|table| table.forget_server(&located.server));
            if self.meta.read().as_ref().is_some_and(|meta| Arc::ptr_eq(&meta.server, &located.server)) {
                self.forget_meta();
            }
        }
        let moved_to = match error {
            Error::Remote(e) => e.moved_to.as_ref().filter(|_| e.short_class() == "RegionMovedException"),
            _ => None,
        };
        cache.forget(located);
        self.counters.locations_dropped.add(1);
        if let Some((host, port)) = moved_to {
            let server = ServerName::new(host, *port, 0);
            cache.remember(&Located::new(self, located.region.clone(), server, located.replicas.clone()));
        }
    }

    /// Remembers a region that was read from hbase:meta.
    pub(crate) fn remember(&self, cache: &TableCache, location: &RegionLocation, replicas: Vec<(u32, ServerName)>) {
        cache.remember(&Located::new(self, location.region.clone(), location.server.clone(), replicas));
    }

    /// The read replica of that number; the region itself with 0. One that is not remembered is looked for in hbase:meta.
    ///
    /// # Errors
    /// hbase:meta tells of none, or cannot be read.
    pub(crate) async fn locate_replica(
        &self,
        cache: &TableCache,
        located: &Arc<Located>,
        replica_id: u32,
    ) -> Result<Arc<Located>> {
        match self.replica_of(located, replica_id) {
            Ok(replica) => Ok(replica),
            Err(_) => {
                let anew = self.locate_anew(cache, &located.region.start_key).await?;
                self.replica_of(&anew, replica_id)
            }
        }
    }

    fn replica_of(&self, located: &Arc<Located>, replica_id: u32) -> Result<Arc<Located>> {
        if replica_id == 0 {
            return Ok(Arc::clone(located));
        }
        let found = self.replicas_of(located).into_iter().find(|replica| replica.region.replica_id == replica_id);
        found.ok_or_else(|| {
            Error::Request(format!("region {} has no read replica {replica_id}", located.region.name_string()))
        })
    }

    /// The read replicas of a region.
    pub(crate) fn replicas_of(&self, located: &Located) -> Vec<Arc<Located>> {
        let of = &located.region;
        let replica = |(id, server): &(u32, ServerName)| {
            let (start, end) = (of.start_key.clone(), of.end_key.clone());
            let region = RegionInfo::with_replica(of.table.clone(), start, end, of.region_id, *id);
            Located::new(self, region, server.clone(), Vec::new())
        };
        located.replicas.iter().map(replica).collect()
    }

    async fn look_up(&self, table: &TableName, row: &[u8], side: Side) -> Result<Arc<Located>> {
        let name = table.as_str().as_bytes();
        let start_row = match side {
            // Fourteen nines sort behind every region id in use.
            Side::Current => [name, b",", row, b",99999999999999"].concat(),
            Side::Before if row.is_empty() => [name, b"\0"].concat(),
            Side::Before => [name, b",", row, b",00000000000000"].concat(),
        };
        let scan = Scan {
            start_row: Bytes::from(start_row),
            stop_row: Bytes::from([name, b",,"].concat()),
            include_stop_row: true,
            columns: [(Bytes::from_static(b"info"), Vec::new())].into(),
            reversed: true,
            pread: true,
            ..Scan::default()
        };
        let meta = self.meta().await?;
        let rows = match self.scan_meta(&meta, &scan).await {
            Ok(rows) => rows,
            Err(e) => {
                if e.doubts_location() {
                    self.forget_meta();
                }
                return Err(e);
            }
        };
        let no_region = |why| Error::NoRegion { table: table.clone(), row: printable(row), why };
        let mut unusable = None;
        for found in &rows {
            let Some(region) = region_of(found) else { continue };
            if region.table != *table || region.replica_id != 0 {
                continue;
            }
            if region.offline || region.split {
                unusable = Some("its region is being split or merged");
                continue;
            }
            if !holds(&region, row, side) {
                break;
            }
            let Some(server) = server_of(found) else { return Err(no_region("its region has no server yet")) };
            return Ok(Located::new(self, region, server, replicas_of(found)));
        }
        match unusable {
            Some(why) => Err(no_region(why)),
            None if rows.iter().any(|r| region_of(r).is_some_and(|region| region.table == *table)) => {
                Err(no_region("hbase:meta has a hole there"))
            }
            None => Err(Error::TableNotFound(table.clone())),
        }
    }

    /// The first rows of a scan of hbase:meta, in one call.
    async fn scan_meta(&self, meta: &Located, scan: &Scan) -> Result<Vec<Row>> {
        let request = pb::ScanRequest {
            region: Some(meta.specifier.clone()),
            scan: Some(convert::to_proto::scan(scan)),
            number_of_rows: Some(LOOKUP_ROWS),
            limit_of_rows: Some(LOOKUP_ROWS),
            close_scanner: Some(true),
            ..pb::ScanRequest::default()
        };
        let channel = meta.server.client().await?;
        let reply = channel.call(Request::new(Method::ClientScan, &request).priority(META_PRIORITY)).await?;
        let message: pb::ScanResponse = reply.decode()?;
        Ok(rows_of(&message, &reply)?.collect())
    }
}

/// The results of a scan's reply.
pub(crate) fn rows_of(message: &pb::ScanResponse, reply: &Reply) -> Result<Rows> {
    if message.cells_per_result.is_empty() {
        return message.results.iter().map(inline_row).collect();
    }
    let runs = reply
        .cell_runs(&message.cells_per_result)?
        .ok_or_else(|| Error::Malformed("fewer cells than the scan's reply announces".to_owned()))?;
    Ok(Rows::new(runs))
}

/// A result whose cells stand in the message.
pub(crate) fn inline_row(result: &pb::Result) -> Result<Row> {
    let specs = result.cell.iter().map(|cell| cell::CellSpec {
        row: cell.row(),
        family: cell.family(),
        qualifier: cell.qualifier(),
        timestamp: cell.timestamp() as i64,
        type_code: cell.cell_type() as u8,
        value: cell.value(),
        tags: cell.tags.as_deref().unwrap_or_default(),
    });
    if specs.clone().any(|spec| !spec.has_room()) {
        return Err(Error::Malformed("a cell whose row, family or tags are longer than any can be".to_owned()));
    }
    // What else can be wrong with a cell shows in its bytes.
    let cells = CellBlock::from_specs(specs).bytes().clone();
    CellBlock::parse(cells).map(Row::new).map_err(Error::malformed)
}

/// The region of a row of hbase:meta.
pub(crate) fn region_of(row: &Row) -> Option<RegionInfo> {
    let value = Bytes::copy_from_slice(row.value(b"info", b"regioninfo")?);
    let info = pb::RegionInfo::decode(magic::strip(&value)?).ok()?;
    convert::from_proto::region_info(&info).ok()
}

/// The server of a row of hbase:meta.
pub(crate) fn server_of(row: &Row) -> Option<ServerName> {
    server_in(row, "")
}

/// The servers of the read replicas of a row of hbase:meta: their columns end with the replica's number. Follows: `CatalogFamilyFormat`.
pub(crate) fn replicas_of(row: &Row) -> Vec<(u32, ServerName)> {
    let suffix = |cell: cell::CellRef<'_>| {
        let suffix = cell.qualifier().strip_prefix(b"server_").filter(|suffix| suffix.len() == 4)?;
        std::str::from_utf8(suffix).ok().map(str::to_owned)
    };
    let replica = |suffix: String| {
        let id = u32::from_str_radix(&suffix, 16).ok().filter(|id| *id > 0)?;
        Some((id, server_in(row, &format!("_{suffix}"))?))
    };
    row.iter().filter_map(suffix).filter_map(replica).collect()
}

fn server_in(row: &Row, suffix: &str) -> Option<ServerName> {
    let value = |name: &str| row.value(b"info", format!("{name}{suffix}").as_bytes());
    let address = std::str::from_utf8(value("server")?).ok()?;
    let (host, port) = address.rsplit_once(':')?;
    let start_code = value("serverstartcode")?.try_into().map(u64::from_be_bytes).ok()?;
    Some(ServerName::new(host, port.parse().ok()?, start_code))
}

/// As `Bytes.toStringBinary`.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\x5C"),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_in_a_message_that_is_too_long_for_any_is_malformed() {
        let (at_most, more) =
            (|len: usize| Bytes::from(vec![b'x'; len]), |len: usize| Bytes::from(vec![b'x'; len + 1]));
        let of = |row: Bytes, family: Bytes, tags: Bytes| {
            let cell = pb::Cell {
                row: Some(row),
                family: Some(family),
                tags: Some(tags),
                timestamp: Some(1),
                cell_type: Some(4),
                ..pb::Cell::default()
            };
            inline_row(&pb::Result { cell: vec![cell], ..pb::Result::default() })
        };
        let mut one_tag = vec![b'x'; 65535];
        one_tag[..2].copy_from_slice(&65533_u16.to_be_bytes());
        let row = of(at_most(32767), at_most(255), Bytes::from(one_tag)).expect("as long as they can be");
        assert_eq!((row.row().len(), row.len()), (32767, 1));
        assert!(of(more(32767), at_most(1), at_most(0)).is_err());
        assert!(of(at_most(1), more(255), at_most(0)).is_err());
        assert!(of(at_most(1), at_most(1), more(65535)).is_err());
        assert!(of(at_most(1), at_most(1), at_most(3)).is_err(), "tags that are none");
    }
}
