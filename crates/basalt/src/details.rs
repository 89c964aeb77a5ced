//! What the pages beside the status page show, gathered from the parts of the process.

use key_statistics::{Grid, Measure};
use master::Master;
use model::TableName;
use proto::pb;
use regionserver::RegionServer;
use std::sync::Arc;
use std::time::Duration;
use web::details::{
    Lock, MeasuredSnapshots, Procedure, Quota, Reports, Running, SlowCall, Snapshot, SnapshotSizes, StoreFile,
};

/// Slow calls, and calls with large answers, that are looked at.
const CALLS: u32 = 200;
/// How long one region server may take to say what it keeps.
const PATIENCE_WITH_A_SERVER: Duration = Duration::from_secs(3);
/// How long hbase:quota and the snapshots' directory are waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a page waits for snapshots to be measured before it is to be asked for again.
const PATIENCE_WITH_SIZES: Duration = Duration::from_secs(3);

/// The source of these pages.
pub struct PageDetails {
    /// `None`: region servers are other processes, whose pages have what is theirs.
    server: Option<Arc<RegionServer>>,
    master: Arc<Master>,
    /// The node that all others are below.
    znode_parent: String,
}

impl PageDetails {
    /// Of a node that serves.
    pub fn new(server: &Arc<RegionServer>, master: &Arc<Master>, znode_parent: &str) -> PageDetails {
        PageDetails { server: Some(server.clone()), ..PageDetails::of_master(master, znode_parent) }
    }

    /// Of a master whose region servers are other processes.
    pub fn of_master(master: &Arc<Master>, znode_parent: &str) -> PageDetails {
        PageDetails { server: None, master: master.clone(), znode_parent: znode_parent.to_owned() }
    }
}

/// Waits for `work`, which reads files; a page's thread has nothing else to do.
fn wait_for<T>(work: impl Future<Output = master::Result<T>>) -> Result<T, String> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Err("there is no runtime".to_owned()) };
    match runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await }) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

impl web::Details for PageDetails {
    fn procedures(&self) -> Vec<Procedure> {
        self.master.views().procedures().iter().map(|record| procedure(record)).collect()
    }

    fn locks(&self) -> Vec<Lock> {
        let held = self.master.views().locks().into_iter();
        held.map(|lock| Lock { kind: lock.kind, name: lock.name, is_exclusive: lock.is_exclusive }).collect()
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, String> {
        Ok(wait_for(self.master.list_snapshots())?.iter().map(snapshot).collect())
    }

    fn snapshot_sizes(&self) -> Result<(Vec<Snapshot>, Option<MeasuredSnapshots>), String> {
        let (taken, measured) = wait_for(self.master.snapshot_sizes(PATIENCE_WITH_SIZES))?;
        Ok((taken.iter().map(snapshot).collect(), measured.map(|measured| measured_snapshots(&measured))))
    }

    fn quotas(&self) -> Result<Vec<Quota>, String> {
        let views = self.master.views();
        let found = wait_for(views.quotas())?;
        Ok(found.into_iter().map(|(subject, quotas)| Quota { subject, limits: limits(&quotas) }).collect())
    }

    fn slow_calls(&self) -> Vec<SlowCall> {
        self.server.as_ref().map(|server| slow_calls(server)).unwrap_or_default()
    }

    fn slow_calls_everywhere(&self) -> (Vec<SlowCall>, Vec<String>) {
        if self.server.is_some() {
            return (self.slow_calls(), Vec::new());
        }
        let asked = wait_for(async { Ok(self.master.slow_calls(CALLS, PATIENCE_WITH_A_SERVER).await) });
        let answers = match asked {
            Ok(answers) => answers,
            Err(why) => return (Vec::new(), vec![why]),
        };
        let (mut calls, mut silent) = (Vec::new(), Vec::new());
        for (server, answer) in answers {
            match answer {
                Ok(payloads) => {
                    let of = |payload| SlowCall { server: server.to_string(), ..slow_call(payload) };
                    calls.extend(payloads.iter().map(of));
                }
                Err(error) => silent.push(format!("{server} has not said which calls were slow: {error}")),
            }
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.at_ms));
        (calls, silent)
    }

    fn running(&self) -> Vec<Running> {
        self.server.as_ref().map(|server| running(server)).unwrap_or_default()
    }

    fn table(&self, name: &str) -> Option<Vec<String>> {
        let name = model::TableName::parse(name).ok()?;
        let cluster = self.master.cluster();
        cluster.tables().find(|(table, _)| table.name == name).map(|(table, _)| shell::describe_lines(table))
    }

    fn store_files(&self, region: &str) -> Option<Vec<StoreFile>> {
        store_files(self.server.as_ref()?, region)
    }

    fn reports(&self) -> Reports {
        let mut reports = Reports::default();
        let findings = &mut reports.findings;
        if let Some(catalog) = self.master.catalog_report() {
            let key = |key: &[u8]| key.escape_ascii().to_string();
            findings.extend(
                catalog
                    .holes
                    .iter()
                    .map(|hole| ("hole", format!("{} from {} to {}", hole.table, key(&hole.start), key(&hole.end)))),
            );
            let names =
                |(a, b): &(model::RegionInfo, model::RegionInfo)| format!("{} {}", a.name_string(), b.name_string());
            findings.extend(catalog.overlaps.iter().map(|pair| ("overlap", names(pair))));
            findings.extend(catalog.empty_region_infos.iter().map(|row| ("row without a region", row.clone())));
        }
        if let Some(hbck) = self.master.hbck_report() {
            reports.hbck_ended_ms = hbck.ended.0;
            findings.extend(hbck.findings.iter().map(|finding| (finding.kind.name(), finding.to_string())));
            let inconsistent = hbck.inconsistent_regions.iter();
            findings.extend(inconsistent.map(|(region, place)| ("inconsistent region", format!("{region} {place:?}"))));
            let orphans = hbck.orphan_regions_on_servers.iter();
            findings.extend(orphans.map(|(region, server)| ("orphan on a server", format!("{region} {server}"))));
            let orphans = hbck.orphan_regions_on_volume.iter();
            findings.extend(orphans.map(|(region, path)| ("orphan directory", format!("{region} {path}"))));
        }
        reports
    }

    fn tables_with_keys(&self) -> Vec<TableName> {
        self.server.as_ref().map(|server| server.tables_with_keys()).unwrap_or_default()
    }

    fn key_grid(&self, table: &TableName, measure: Measure, span_ms: i64) -> Option<Grid> {
        self.server.as_ref()?.key_grid(table, measure, span_ms)
    }

    fn znodes(&self) -> String {
        let (views, lines) = (self.master.views(), |servers: &[model::ServerName]| {
            servers.iter().map(|server| format!("\n {server}")).collect::<String>()
        });
        format!(
            "HBase is rooted at {}\nActive master address:\n {}\n{}Region server holding hbase:meta:{}\nRegion servers:{}\n",
            self.znode_parent,
            self.master.server_name(),
            // Those of a cluster are known to ZooKeeper alone.
            self.server.as_ref().map_or("", |_| "Backup master addresses:\n"),
            lines(views.meta_server().as_slice()),
            lines(&views.servers().0),
        )
    }
}

/// Slow calls and those with large answers, the newest first.
pub fn slow_calls(server: &RegionServer) -> Vec<SlowCall> {
    let [slow, large] = [false, true].map(|large| server.slow_calls(large, CALLS));
    let mut calls: Vec<SlowCall> = slow.iter().map(slow_call).collect();
    // Those that are both are in the first list already.
    calls.extend(large.iter().map(slow_call).filter(|call| !call.is_slow));
    calls.sort_by_key(|call| std::cmp::Reverse(call.at_ms));
    calls
}

/// Flushes and compactions that run.
pub fn running(server: &RegionServer) -> Vec<Running> {
    let of = |work: regionserver::RunningWork| {
        let region = server.region(&work.region)?;
        let stats = region.stats();
        let cells = (work.what != "flush").then_some((stats.current_compacted_cells, stats.total_compacting_cells));
        Some(Running {
            what: work.what,
            region: work.region.to_string(),
            table: region.info().table.to_string(),
            cells,
        })
    };
    server.running_work().into_iter().filter_map(of).collect()
}

/// The files of a region; `None`: it is not open here.
pub fn store_files(server: &RegionServer, region: &str) -> Option<Vec<StoreFile>> {
    // An encoded name, or a whole one, which ends in it.
    let encoded = region.trim_end_matches('.').rsplit('.').next().unwrap_or(region);
    let found = server.region(encoded)?;
    let of = |file: region::FileStats| StoreFile {
        family: String::from_utf8_lossy(&file.family).into_owned(),
        name: file.name,
        bytes: file.bytes,
        cells: file.cells,
        created_ms: file.created_ms,
        is_reference: file.is_reference,
        index_bytes: file.index_bytes,
        bloom_bytes: file.bloom_bytes,
    };
    Some(found.file_stats().into_iter().map(of).collect())
}

fn as_ms(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

fn procedure(record: &pb::Procedure) -> Procedure {
    Procedure {
        id: record.proc_id,
        parent: record.parent_id,
        class: record.class_name.rsplit('.').next().unwrap_or_default().to_owned(),
        state: record.state().as_str_name().to_owned(),
        owner: record.owner().to_owned(),
        submitted_ms: as_ms(record.submitted_time),
        updated_ms: as_ms(record.last_update),
        error: record.exception.as_ref().map(|error| format!("{error:?}").chars().take(300).collect()),
    }
}

fn snapshot(taken: &pb::SnapshotDescription) -> Snapshot {
    Snapshot {
        name: taken.name.clone(),
        table: taken.table().to_owned(),
        kind: taken.r#type().as_str_name().to_owned(),
        created_ms: taken.creation_time(),
        ttl_seconds: taken.ttl(),
        owner: taken.owner().to_owned(),
        version: taken.version(),
    }
}

fn measured_snapshots(measured: &master::SnapshotSizes) -> MeasuredSnapshots {
    let sizes = |sizes: &rootdir::snapshot::sizes::Sizes| SnapshotSizes {
        files: sizes.files,
        archived_files: sizes.archived_files,
        shared_bytes: sizes.shared_bytes,
        mob_bytes: sizes.mob_bytes,
        archived_bytes: sizes.archived_bytes,
        own_archived_bytes: sizes.own_archived_bytes,
        missing: sizes.missing,
        corrupted: sizes.corrupted,
    };
    let found = &measured.measured;
    let each = found.snapshots.iter().map(|(name, of)| (name.clone(), of.as_ref().map(sizes).map_err(Clone::clone)));
    MeasuredSnapshots {
        at_ms: measured.at.0,
        each: each.collect(),
        all: sizes(&found.all),
        is_whole: measured.is_whole,
    }
}

/// A quota in words.
fn limits(quotas: &pb::Quotas) -> String {
    let mut said = Vec::new();
    if quotas.bypass_globals() {
        said.push("exempt from the limits of others".to_owned());
    }
    if let Some(throttle) = &quotas.throttle {
        let kinds = [
            ("requests", &throttle.req_num),
            ("bytes", &throttle.req_size),
            ("writes", &throttle.write_num),
            ("bytes written", &throttle.write_size),
            ("reads", &throttle.read_num),
            ("bytes read", &throttle.read_size),
        ];
        for (what, limit) in kinds {
            if let Some(limit) = limit {
                let unit = limit.time_unit().as_str_name().to_ascii_lowercase();
                said.push(format!("{} {what} in each of {unit}", limit.soft_limit()));
            }
        }
    }
    if quotas.space.is_some() {
        said.push("a limit of space, which is kept and not enforced".to_owned());
    }
    said.join("; ")
}

fn slow_call(payload: &pb::SlowLogPayload) -> SlowCall {
    use pb::slow_log_payload::Type;
    SlowCall {
        server: String::new(),
        at_ms: payload.start_time,
        took_ms: i64::from(payload.processing_time),
        response_bytes: payload.response_size,
        client: payload.client_address.clone(),
        user: payload.user_name.clone(),
        method: payload.method_name.clone(),
        region: payload.region_name().to_owned(),
        details: payload.param().to_owned(),
        is_slow: matches!(payload.r#type(), Type::SlowLog | Type::All),
        is_large: matches!(payload.r#type(), Type::LargeLog | Type::All),
    }
}
