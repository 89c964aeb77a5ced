//! Files of every kind with a wrong bit.

use basalt_sim::calls;
use basalt_sim::stage::Stage;
use basalt_sim::steps;
use basalt_sim::work::table;
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use model::Scan;
use std::collections::BTreeMap;

/// Bytes of one file that are tried; beyond it every so many-th.
const TRIED_BYTES: usize = 120;

/// What kind of file a path is; `None` for logs, whose damage has tests of its own, and what nobody reads.
fn kind(path: &FilePath) -> Option<&'static str> {
    let path = path.as_str();
    let name = path.rsplit('/').next()?;
    match name {
        "hbase.version" => return Some("version"),
        "hbase.id" => return Some("id"),
        ".regioninfo" => return Some("region info"),
        _ if name.starts_with(".tableinfo") => return Some("table descriptor"),
        _ => {}
    }
    let is_file = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match () {
        () if path.starts_with("data/hbase/") && is_file => Some("store file of the system"),
        () if path.starts_with("data/") && is_file => Some("store file"),
        () if path.starts_with("MasterData/") || path.contains("procedure") => Some("procedure"),
        () => None,
    }
}

/// A start, and all rows of the table; what it says when that does not go.
fn read_all(stage: &mut Stage) -> Result<Vec<(String, calls::RowCells)>, String> {
    stage.act(async |desk| {
        let mut rows = Vec::new();
        for _ in 0..20 {
            desk.life.settle().await;
        }
        let infos: Vec<_> = {
            let cluster = desk.life.master.cluster();
            cluster.regions_of(&table()).filter(|node| node.is_live()).map(|node| node.info.clone()).collect()
        };
        for info in infos {
            let pieces = calls::scan(&desk.life, &info, &Scan::default(), None, 100_000).await;
            let pieces = pieces.map_err(|failure| format!("{failure:?}"))?;
            rows.extend(pieces.rows.into_iter().map(|(row, cells, _)| (row, cells)));
        }
        Ok(rows)
    })?
}

/// Ganesan et al., FAST 2017: one wrong byte in one file of any kind. A file with checksums gives what it gave before or an error that names it;
/// one without (HBase has none in its descriptors) may mean something else, and never stops the process.
#[test]
fn f47_a_wrong_byte_in_a_file_of_every_kind() {
    let mut stage = Stage::new(47);
    stage
        .act(async |desk| {
            steps::write(desk, 6).await;
            steps::flush(desk, &[]);
            steps::write(desk, 3).await;
            desk.life.stop().await.expect("stopped");
        })
        .expect("starts");
    stage.crash(CrashPolicy::KeepAll, 47);
    let left: MemVolume = stage.world.snapshot();
    let before = read_all(&mut stage).expect("whole");
    assert!(!before.is_empty());
    let mut seen: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for path in left.all_files() {
        let Some(kind) = kind(&path) else { continue };
        let bytes = left.read(&path).expect("readable");
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(TRIED_BYTES).max(1)) {
            stage.world.volume = left.crash(&base::Rng::seeded(0), CrashPolicy::KeepAll);
            let mut damaged = bytes.clone();
            damaged[at] ^= [0x01, 0x80, 0xFF][at % 3];
            stage.world.volume.put_file(&path, &damaged);
            let count = seen.entry(kind).or_default();
            let name = path.as_str().rsplit('/').next().expect("a name");
            match read_all(&mut stage) {
                Ok(rows) if rows == before => count[0] += 1,
                Ok(_) if kind.starts_with("store file") => panic!("{}: byte {at} gives other rows", path.as_str()),
                Ok(_) => count[1] += 1,
                Err(why) => {
                    // A region that is closed for it says so in the server's log, which names the file.
                    if kind == "store file" {
                        assert!(
                            why.contains(name) || why.contains("NotServing"),
                            "{}: byte {at}: {why}",
                            path.as_str()
                        );
                    }
                    count[2] += 1;
                }
            }
        }
    }
    for (kind, [same, other, refused]) in &seen {
        println!("{kind}: {same} as before, {other} mean something else, {refused} refused");
    }
    for kind in ["version", "region info", "table descriptor", "store file", "store file of the system"] {
        assert!(seen.contains_key(kind), "no {kind} was met: {seen:?}");
    }
    assert!(seen["store file"][2] > 0 && seen["version"][2] > 0, "{seen:?}");
}
