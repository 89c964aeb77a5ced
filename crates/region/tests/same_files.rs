//! What flushes and compactions write is the same, byte for byte, whichever way the cells go: sums of the files that a program of puts and deletes leaves behind.

use crate::common::{Server, delete, family, flush, major_compact, put, write};
use basalt_region::{CompactionKind, Region, Unthrottled};
use base::Rng;
use cell::CellType;
use fs::{FilePath, MemVolume, Volume};
use model::FamilyDescriptor;
use std::sync::Arc;

/// FNV-1a over paths and contents, in order of the paths.
fn sum_of_files(volume: &MemVolume, dir: &FilePath, sum: &mut u64) {
    let mut add = |bytes: &[u8]| {
        bytes.iter().for_each(|byte| *sum = (*sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    };
    let entries = volume.list(dir).expect("listed");
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        add(entry.name.as_bytes());
        add(&volume.read(&dir.join(&entry.name)).expect("read"));
    }
    for entry in entries.iter().filter(|entry| entry.is_dir) {
        sum_of_files(volume, &dir.join(&entry.name), sum);
    }
}

fn minor_compact(region: &Arc<Region>) {
    while let Some(job) = region.select_compaction(None, CompactionKind::Minor).expect("open") {
        assert!(region.compact(job, &Unthrottled).expect("compacted").completed);
    }
}

/// `rows` of them, of few or many columns, some in order and some anywhere, with versions and deletes as `churn` in 100 says.
fn sum_after(family: FamilyDescriptor, rows: u64, churn: u64, value_bytes: u64) -> u64 {
    let server = Server::new(1_000_000);
    let region = server.table([family]);
    let rng = Rng::seeded(7);
    for round in 0..5u64 {
        for n in 0..rows {
            let number = if rng.below(100) < churn { rng.below(rows) } else { round * rows + n };
            let row = format!("row{number:08}");
            let value = "v".repeat(rng.below(value_bytes) as usize);
            let columns = if rng.below(10) == 0 { 1 + rng.below(40) } else { 1 };
            let mut mutations = Vec::new();
            for column in 0..columns {
                let timestamp = 900_000 + rng.below(200_000) as i64;
                mutations.push(put(&row, "f", &format!("q{column}"), timestamp, &value));
            }
            if rng.below(400) < churn {
                let kinds = [CellType::Delete, CellType::DeleteColumn, CellType::DeleteFamily];
                let kind = kinds[rng.below(3) as usize];
                let qualifier = if kind == CellType::DeleteFamily { "" } else { "q0" };
                mutations.push(delete(&row, "f", qualifier, 1_000_000, kind));
            }
            mutations.iter().for_each(|mutation| write(&region, std::slice::from_ref(mutation)));
        }
        flush(&region);
        server.clock.advance_ms(20_000);
        if round == 3 {
            minor_compact(&region);
        }
    }
    let mut sum = 0xcbf2_9ce4_8422_2325;
    sum_of_files(&server.volume, &FilePath::new("data"), &mut sum);
    major_compact(&region);
    sum_of_files(&server.volume, &FilePath::new("data"), &mut sum);
    sum
}

#[test]
fn files_are_the_same_as_ever() {
    let with = |key: &'static str, value: &'static str| family("f").with(key, value);
    // As they were before there was a short way: only a change of the format may change them.
    let sums = [
        ("plain, large", sum_after(family("f"), 600, 0, 3000), 0x8ff9_8c89_32b8_0041),
        ("plain, small", sum_after(family("f").with("BLOCKSIZE", "2048"), 1500, 2, 60), 0xaf29_cdf4_a1b0_1a7f),
        ("churn", sum_after(with("BLOCKSIZE", "4096"), 800, 60, 200), 0x7ed9_d455_15fc_efe6),
        ("versions", sum_after(with("VERSIONS", "3"), 800, 60, 200), 0x7629_64a9_7a96_9a32),
        (
            "row and column",
            sum_after(with("BLOOMFILTER", "ROWCOL").with("BLOCKSIZE", "1024"), 800, 20, 100),
            0x1d91_3e56_0bad_a583,
        ),
        ("expiring", sum_after(with("TTL", "80"), 800, 20, 100), 0x9998_268f_617e_c141),
        (
            "expiring, but one",
            sum_after(with("TTL", "80").with("MIN_VERSIONS", "1"), 800, 20, 100),
            0x0b0b_6d94_6f14_d95a,
        ),
        ("kept", sum_after(with("KEEP_DELETED_CELLS", "TRUE"), 800, 40, 100), 0x5d3a_f87e_ac7c_292c),
        ("by arrival", sum_after(with("NEW_VERSION_BEHAVIOR", "true"), 800, 40, 100), 0x1ed2_ec07_6604_e03b),
        ("encoded", sum_after(with("DATA_BLOCK_ENCODING", "FAST_DIFF"), 800, 10, 100), 0x88f5_790c_e5bc_b8ad),
        ("row index", sum_after(with("DATA_BLOCK_ENCODING", "ROW_INDEX_V1"), 800, 10, 100), 0xe15a_fdf0_a96d_3070),
    ];
    let differing: Vec<String> = sums
        .iter()
        .filter(|(_, sum, was)| sum != was)
        .map(|(name, sum, was)| format!("{name}: {sum:#x}, was {was:#x}"))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}
