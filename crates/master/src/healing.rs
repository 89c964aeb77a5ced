//! Self-healing: what an operator of HBase finds with hbck and mends with hbck2, the master finds and mends by itself.
//!
//! A run looks at all that can be wrong ([`Kind`]) and acts only on what the run before found, too: what is on its way passes by itself. Under
//! the locks of whom it works on it looks once more, then does what hbck2 would do. What fails three times, and that for which the evidence does
//! not suffice, is left for a person: in the report of the hbck chore, in the log, on the page of checks.
//!
//! Always true:
//!  1. Nothing is deleted. Rows of hbase:meta are added, never taken away; a directory stays where it is, is served again, or is set aside below
//!     `.hbck`, the last only where nobody's data can be in it.
//!  2. Who works on a table, region or server is not waited for: its turn is in a later run.
//!  3. Each remedy may be broken off anywhere. What a next run, of this or of another master, then finds is what was wrong before, or nothing.
//!
//! Follows: `HBCK2`, `MetaFixer`, `AssignmentManager#checkOnlineRegionsReport`.

mod chain;
mod files;
mod procedures;
mod regions;

use crate::consistency::Hole;
use crate::hbck::{self, HbckReport};
use crate::master::Master;
use crate::{MasterError, Result};
use base::TimestampMs;
use fs::FilePath;
use model::{RegionInfo, ServerName, TableName};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Failures after which a finding is left for a person, and tried again every [`RETRY_MS`] only: a remedy may interrupt a region.
const MOST_FAILURES: u32 = 3;
/// An hour.
const RETRY_MS: i64 = 3_600_000;
/// How long is waited for a server's answer, or a procedure's end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Remedies in one run: the rest has its turn in the next.
const MOST_REMEDIES: usize = 500;
/// What was mended lately is remembered, for who looks at the report.
const MOST_MENDED: usize = 100;

/// What can be wrong. The words are hbck's, where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Regions are said to be on a server that is neither online nor being recovered.
    UnknownServer,
    /// A region is in transition, and nobody moves it.
    StuckRegion,
    /// A region is open on several servers.
    MultiDeployed,
    /// A region is open elsewhere than hbase:meta has it.
    ServerDoesNotMatchMeta,
    /// A region that should be open is open nowhere.
    NotDeployed,
    /// A region of a disabled table is open.
    ShouldNotBeDeployed,
    /// A server has a region open that hbase:meta does not have.
    NotInMeta,
    /// A region's directory lost the file that says which region it is.
    NoRegionInfoFile,
    /// The file says that the directory is another region's.
    WrongRegionInfo,
    /// A region has no directory.
    NotInHdfs,
    /// Rows of a table are in no region.
    Hole,
    /// Regions have rows in common.
    Overlap,
    /// A directory is no region's that hbase:meta has.
    OrphanRegion,
    /// A table has no descriptor that can be read.
    NoTableInfoFile,
    /// A procedure makes no progress.
    StuckProcedure,
}

impl Kind {
    /// Its name, as `basalt hbck` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::UnknownServer => "UNKNOWN_SERVER",
            Kind::StuckRegion => "STUCK_REGION_IN_TRANSITION",
            Kind::MultiDeployed => "MULTI_DEPLOYED",
            Kind::ServerDoesNotMatchMeta => "SERVER_DOES_NOT_MATCH_META",
            Kind::NotDeployed => "NOT_DEPLOYED",
            Kind::ShouldNotBeDeployed => "SHOULD_NOT_BE_DEPLOYED",
            Kind::NotInMeta => "NOT_IN_META",
            Kind::NoRegionInfoFile => "NO_REGIONINFO_FILE",
            Kind::WrongRegionInfo => "WRONG_REGIONINFO",
            Kind::NotInHdfs => "NOT_IN_HDFS",
            Kind::Hole => "HOLE_IN_REGION_CHAIN",
            Kind::Overlap => "OVERLAP_IN_REGION_CHAIN",
            Kind::OrphanRegion => "ORPHAN_HDFS_REGION",
            Kind::NoTableInfoFile => "NO_TABLEINFO_FILE",
            Kind::StuckProcedure => "STUCK_PROCEDURE",
        }
    }

    /// Whether it is found in files.
    fn is_of_files(self) -> bool {
        use Kind::{Hole, NoRegionInfoFile, NoTableInfoFile, NotInHdfs, OrphanRegion, WrongRegionInfo};
        matches!(self, NoRegionInfoFile | WrongRegionInfo | NotInHdfs | Hole | OrphanRegion | NoTableInfoFile)
    }
}

/// What became of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass by itself: the next run looks again.
    Watched,
    /// What was done.
    Mended(String),
    /// Why it could not be mended in this run; the next tries again.
    Later(String),
    /// It stays as it is: why, and what a person can do.
    ForAPerson(String),
}

/// Something that is wrong, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// Of what: a region's name, a table, a server, a directory.
    pub subject: String,
    /// In a sentence.
    pub what: String,
    /// When it was found first.
    pub since: TimestampMs,
    /// What became of it.
    pub verdict: Verdict,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.what)?;
        match &self.verdict {
            Verdict::Watched => write!(f, " (it may pass by itself; the next run of the self-healing looks again)"),
            Verdict::Mended(done) => write!(f, " (mended: {done})"),
            Verdict::Later(why) => write!(f, " (tried again: {why})"),
            Verdict::ForAPerson(why) => write!(f, " (left for a person: {why})"),
        }
    }
}

/// What would mend a finding.
#[derive(Clone, Debug)]
enum Remedy {
    /// The server is handled as crashed: its logs are split, its regions opened elsewhere.
    Recover(ServerName),
    /// The region is closed wherever it is open, and opened once if it is to be.
    Settle(RegionInfo),
    /// The directories in a hole are regions again.
    Adopt(Hole, Vec<RegionInfo>),
    /// An empty region takes the place of a hole.
    Fill(Hole),
    /// Regions with rows in common become one.
    Merge(Vec<RegionInfo>),
    /// `.regioninfo` is written again.
    NameDirectory(RegionInfo),
    /// The table's descriptor is written again.
    WriteDescriptor(TableName),
    /// The directory goes below `.hbck`.
    SetAside(TableName, FilePath),
    /// The procedure is rolled back.
    Abort(u64),
    /// There is none: why, and what a person can do.
    Nothing(String),
}

/// A finding of this run.
struct Found {
    kind: Kind,
    subject: String,
    what: String,
    remedy: Remedy,
}

/// What a remedy came to.
enum Tried {
    Done(String),
    /// It is not so any more.
    Passed,
    NotNow(String),
    /// A closer look shows that it is for a person.
    Cannot(String),
}

/// What is known of a finding from earlier runs.
struct Known {
    since: TimestampMs,
    failures: u32,
    failed_at: TimestampMs,
    verdict: Verdict,
}

/// What a run knows of those before.
#[derive(Default)]
struct Memory {
    known: BTreeMap<(Kind, String), Known>,
    /// Where the next run goes on with reading small files of regions, and of tables.
    next_region: String,
    next_table: Option<TableName>,
}

/// The runs of the self-healing.
#[derive(Default)]
pub(crate) struct Healing {
    memory: tokio::sync::Mutex<Memory>,
    standing: Mutex<Vec<Finding>>,
    mended: Mutex<VecDeque<Finding>>,
}

impl Healing {
    /// What is wrong, then what was mended lately.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.standing.lock().clone();
        findings.extend(self.mended.lock().iter().rev().cloned());
        findings
    }
}

/// Looks and mends; false when it is switched off, runs already, or the master is not up yet.
pub(crate) async fn run(master: &Arc<Master>) -> bool {
    if master.settings().healing_interval.is_none() || !master.is_initialized() {
        return false;
    }
    let Ok(mut memory) = master.healing.memory.try_lock() else { return false };
    let (mut report, is_listed) = hbck::look(master).await;
    let Ok((found, files_known)) = look(master, &mut memory, &report, is_listed).await else {
        // The master stops.
        return false;
    };
    let are_there: BTreeSet<(Kind, String)> = found.iter().map(|one| (one.kind, one.subject.clone())).collect();
    // What could not be looked at is not gone.
    memory.known.retain(|key, _| are_there.contains(key) || (key.0.is_of_files() && !files_known));
    let mut standing = Vec::new();
    let mut turns = MOST_REMEDIES;
    for one in found {
        match treat(master, &mut memory, one, &mut turns).await {
            Ok(Some(finding @ Finding { verdict: Verdict::Mended(_), .. })) => remember_mended(master, finding),
            Ok(finding) => standing.extend(finding),
            // The master stops.
            Err(_) => return false,
        }
    }
    *master.healing.standing.lock() = standing;
    report.findings = master.healing.findings();
    report.ended = master.clock.now_ms();
    master.hbck.set_report(report);
    true
}

fn remember_mended(master: &Master, finding: Finding) {
    let mut mended = master.healing.mended.lock();
    if mended.len() >= MOST_MENDED {
        mended.pop_front();
    }
    mended.push_back(finding);
}

/// All that is wrong; whether the files could be looked at.
///
/// # Errors
/// The master stops.
async fn look(
    master: &Arc<Master>,
    memory: &mut Memory,
    report: &HbckReport,
    is_listed: bool,
) -> Result<(Vec<Found>, bool)> {
    let mut found = Vec::new();
    regions::look(master, &mut found);
    procedures::look(master, &mut found);
    if !is_listed {
        return Ok((found, false));
    }
    let files = match files::read(master, memory, &report.orphan_regions_on_volume).await {
        Ok(files) => files,
        Err(error) if error.is_stopped() => return Err(error),
        Err(error) => {
            tracing::warn!(%error, "self-healing: cannot read the directories of tables and regions; earlier findings stay, and the next run reads them again");
            return Ok((found, false));
        }
    };
    files::look(master, &files, &mut found);
    chain::look(master, &files.orphans, &mut found);
    Ok((found, true))
}

/// Acts on what the run before found, too; `None` when it is not so any more.
///
/// # Errors
/// The master stops.
async fn treat(master: &Arc<Master>, memory: &mut Memory, found: Found, turns: &mut usize) -> Result<Option<Finding>> {
    let Found { kind, subject, what, remedy } = found;
    let key = (kind, subject);
    let before = memory.known.get(&key);
    let now = master.clock.now_ms();
    let since = before.map_or(now, |known| known.since);
    let (mut failures, mut failed_at) = before.map_or((0, now), |known| (known.failures, known.failed_at));
    let rests = failures >= MOST_FAILURES && now.0 - failed_at.0 < RETRY_MS;
    let verdict = match (remedy, before) {
        (_, None) => Verdict::Watched,
        (Remedy::Nothing(why), _) => Verdict::ForAPerson(why),
        (_, Some(known)) if rests => known.verdict.clone(),
        (_, Some(_)) if *turns == 0 => Verdict::Later("others come first".into()),
        (remedy, Some(_)) => {
            *turns -= 1;
            match mend(master, remedy).await {
                Ok(Tried::Done(done)) => Verdict::Mended(done),
                Ok(Tried::Passed) => {
                    memory.known.remove(&key);
                    return Ok(None);
                }
                Ok(Tried::NotNow(why)) => Verdict::Later(why),
                Ok(Tried::Cannot(why)) => Verdict::ForAPerson(why),
                Err(error) if error.is_stopped() || master.is_stopping() => return Err(error),
                Err(error) => {
                    (failures, failed_at) = (failures + 1, now);
                    match failures {
                        MOST_FAILURES.. => {
                            Verdict::ForAPerson(format!("mending failed {failures} times, last with: {error}"))
                        }
                        _ => Verdict::Later(error.to_string()),
                    }
                }
            }
        }
    };
    let is_news = before.is_none_or(|known| known.verdict != verdict);
    if matches!(verdict, Verdict::Mended(_)) {
        // Whatever is found of it again is new.
        memory.known.remove(&key);
    } else {
        memory.known.insert(key.clone(), Known { since, failures, failed_at, verdict: verdict.clone() });
    }
    let finding = Finding { kind, subject: key.1, what, since, verdict };
    if is_news {
        match finding.verdict {
            Verdict::Mended(_) => tracing::warn!("self-healing: {} {finding}", kind.name()),
            Verdict::ForAPerson(_) => tracing::error!("self-healing: {} {finding}", kind.name()),
            Verdict::Later(_) => tracing::info!("self-healing: {} {finding}", kind.name()),
            Verdict::Watched => tracing::debug!("self-healing: {} {finding}", kind.name()),
        }
    }
    Ok(Some(finding))
}

async fn mend(master: &Arc<Master>, remedy: Remedy) -> Result<Tried> {
    match remedy {
        Remedy::Recover(server) => regions::recover(master, &server).await,
        Remedy::Settle(info) => regions::settle(master, info).await,
        Remedy::Adopt(hole, regions) => chain::adopt(master, &hole, regions).await,
        Remedy::Fill(hole) => chain::fill(master, &hole).await,
        Remedy::Merge(regions) => chain::merge(master, &regions).await,
        Remedy::NameDirectory(info) => files::name_directory(master, info).await,
        Remedy::WriteDescriptor(table) => files::write_descriptor(master, &table).await,
        Remedy::SetAside(table, dir) => files::set_aside(master, &table, dir).await,
        Remedy::Abort(id) => procedures::abort(master, id).await,
        Remedy::Nothing(why) => Ok(Tried::Cannot(why)),
    }
}

/// Somebody works on it.
fn busy(what: impl fmt::Display) -> Tried {
    Tried::NotNow(format!("a procedure works on {what}"))
}

fn list_of<T: fmt::Display>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

fn io(error: impl fmt::Display) -> MasterError {
    MasterError::new(crate::ErrorKind::Io, error)
}
