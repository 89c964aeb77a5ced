//! Scans of a whole table, region by region and piece by piece, while the table moves: what HBase's client does, and what it
//! may rely on.

use crate::calls::{self, Failure, RowCells};
use crate::promises::{Outcome, Promises};
use crate::world::Life;
use crate::{Violation, ensure};
use base::Rng;
use bytes::Bytes;
use model::{Scan, TableName};
use std::collections::BTreeMap;

/// How a scan is made.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// From the last row to the first.
    pub reversed: bool,
    /// Results of one call.
    pub rows: u32,
    /// Bytes of one reply.
    pub bytes: Option<u64>,
    /// Cells of one result.
    pub batch: Option<u32>,
    /// Whether others go on between two calls.
    pub pauses: bool,
}

impl Manner {
    /// One chosen at random.
    pub fn any(rng: &Rng) -> Manner {
        Manner {
            reversed: rng.one_in(3),
            rows: [1, 2, 3, 7, 1000][rng.below(5) as usize],
            bytes: [None, Some(1), Some(200), Some(2000)][rng.below(4) as usize],
            batch: [None, None, Some(1), Some(2)][rng.below(4) as usize],
            pauses: true,
        }
    }

    /// All at once.
    pub const AT_ONCE: Manner = Manner { reversed: false, rows: 10_000, bytes: None, batch: None, pauses: false };
}

/// All rows of `table` in the order of the scan. A scanner that is lost is opened again behind the last whole row.
///
/// # Errors
/// A region that cannot be read for long.
pub async fn whole(life: &Life, table: &TableName, manner: Manner) -> Result<Vec<(String, RowCells)>, Failure> {
    let mut out: Vec<(String, RowCells)> = Vec::new();
    let mut lost = 0;
    // The next region is the one with this row (forward), or the one that ends there (reverse; empty: the last).
    let mut edge = Bytes::new();
    'regions: loop {
        if manner.pauses {
            life.settle().await;
        }
        let region = {
            let cluster = life.master.cluster();
            let mut live = cluster.regions_of(table).filter(|node| node.is_live()).map(|node| &node.info);
            let found = if manner.reversed {
                // The region with the last row below the edge.
                live.find(|r| {
                    (edge.is_empty() && r.end_key.is_empty())
                        || (!edge.is_empty() && r.start_key < edge && (r.end_key.is_empty() || edge <= r.end_key))
                })
            } else {
                live.find(|r| r.contains(&edge))
            };
            found.cloned()
        };
        let again = |failure: Failure, lost: &mut u32| {
            *lost += 1;
            if *lost > 60 { Err(failure) } else { Ok(()) }
        };
        let Some(region) = region else {
            again(Failure::No("no region there".into()), &mut lost)?;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            continue;
        };
        let mut scan = Scan {
            max_versions: u32::MAX >> 1,
            reversed: manner.reversed,
            batch: manner.batch,
            max_result_size: manner.bytes,
            allow_partial_results: manner.bytes.is_some(),
            ..Scan::default()
        };
        // Behind the last whole row, within what is left of the table.
        match out.last() {
            Some((row, _)) => {
                scan.start_row = Bytes::from(row.clone());
                scan.include_start_row = false;
            }
            None => scan.start_row = Bytes::new(),
        }
        let from_region = if manner.reversed { &region.end_key } else { &region.start_key };
        let beyond = match out.last() {
            None => true,
            Some((row, _)) if manner.reversed => !from_region.is_empty() && row.as_bytes() > &from_region[..],
            Some((row, _)) => row.as_bytes() < &from_region[..],
        };
        if beyond {
            scan.start_row = from_region.clone();
            scan.include_start_row = !manner.reversed || from_region.is_empty();
        }
        let mut scanner: Option<(u64, u64)> = None;
        let mut partial: Option<(String, RowCells)> = None;
        loop {
            if manner.pauses && scanner.is_some() {
                life.settle().await;
            }
            let pieces = match calls::scan(life, &region, &scan, scanner, manner.rows).await {
                Ok(pieces) => pieces,
                Err(failure) => {
                    // What came of the row under way is thrown away.
                    again(failure, &mut lost)?;
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    continue 'regions;
                }
            };
            scanner = Some((pieces.scanner, scanner.map_or(0, |(_, sequence)| sequence + 1)));
            for (row, cells, goes_on) in pieces.rows {
                match &mut partial {
                    Some((begun, all)) if *begun == row => all.extend(cells),
                    // With a batch, a row ends when the next one begins.
                    before => out.extend(before.replace((row, cells))),
                }
                if !goes_on && manner.batch.is_none() {
                    out.extend(partial.take());
                }
            }
            if !pieces.more {
                out.extend(partial.take());
                break;
            }
        }
        edge = if manner.reversed { region.start_key.clone() } else { region.end_key.clone() };
        if edge.is_empty() {
            return Ok(out);
        }
    }
}

/// Checks a scan that took a while: order, rows that were there all the time, rows whole. `before` are the promises when it
/// began.
///
/// # Errors
/// A promise broken.
pub fn check_moving(before: &Promises, rows: &[(String, RowCells)], manner: Manner) -> Result<(), Violation> {
    for pair in rows.windows(2) {
        let ordered = if manner.reversed { pair[0].0 > pair[1].0 } else { pair[0].0 < pair[1].0 };
        ensure(ordered, || format!("{manner:?}: row {} comes before {}", pair[0].0, pair[1].0))?;
    }
    let by_row: BTreeMap<&str, &RowCells> = rows.iter().map(|(row, cells)| (row.as_str(), cells)).collect();
    for row in &before.still {
        let cells = by_row.get(row.as_str());
        ensure(cells.is_some_and(|cells| cells.len() == 2), || format!("{manner:?}: row {row} shows {cells:?}"))?;
    }
    for (row, bank) in &before.banks {
        let cells = by_row.get(row.as_str()).ok_or_else(|| Violation(format!("{manner:?}: {row} is missing")))?;
        let number = |column: &str| {
            let cell = cells.iter().find(|(c, ..)| c == column);
            cell.and_then(|(_, _, v)| String::from_utf8_lossy(v).parse::<i64>().ok()).unwrap_or(i64::MIN / 8)
        };
        let sum: i64 = crate::promises::ACCOUNTS.iter().map(|column| number(column)).sum();
        ensure(sum == crate::promises::BANK_SUM, || format!("{manner:?}: {row} in part: {cells:?}"))?;
        ensure(number("f:ver") >= bank.seen, || {
            format!("{manner:?}: {row} went back from {}: {cells:?}, {:?}", bank.seen, bank.transfers)
        })?;
    }
    for (row, writes) in &before.journal {
        let empty = RowCells::new();
        let cells = by_row.get(row.as_str()).copied().unwrap_or(&empty);
        let in_f = cells.iter().filter(|(c, ..)| c == "f:v").map(|(_, n, _)| *n).max();
        let in_g = cells.iter().filter(|(c, ..)| c == "g:v").map(|(_, n, _)| *n).max();
        ensure(in_f == in_g, || format!("{manner:?}: {row} in part: f {in_f:?}, g {in_g:?}"))?;
        // Writes acknowledged before the scan began, with no delete that could have come since.
        let last_delete = writes.iter().filter(|w| w.deletes && w.outcome != Outcome::Gone).map(|w| w.number).max();
        let newest = writes.iter().filter(|w| w.outcome == Outcome::Acked && !w.deletes).map(|w| w.number).max();
        if let Some(newest) = newest
            && last_delete.is_none_or(|deleted| deleted < newest)
        {
            // A delete sent since the scan began may have emptied the row; one that shows anything shows no less.
            ensure(in_f.is_none_or(|seen| seen >= newest), || format!("{manner:?}: {row} shows {in_f:?} of {newest}"))?;
        }
    }
    for (row, node) in &before.nodes {
        let seen = by_row.contains_key(row.as_str());
        ensure(seen || node.outcome != Outcome::Acked, || {
            format!("{manner:?}: node {row} -> {} is missing", node.before)
        })?;
    }
    Ok(())
}
