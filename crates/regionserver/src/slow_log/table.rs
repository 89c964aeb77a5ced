//! The table hbase:slowlog, which remembers more than the ring, and over restarts. Follows: `SlowLogTableAccessor`,
//! `SlowLogPersistentService`, `NamedQueueServiceChore`.

use crate::server::RegionServer;
use crate::settings;
use base::{Config, Rng, SeqId, TimestampMs};
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use model::{Durability, Mutation, MutationKind, TableName};
use proto::pb;
use std::time::Duration;

/// How many calls are written at once.
const BATCH_CALLS: usize = 100;
/// The part of a row's number that tells calls of one millisecond apart.
const ROWS_PER_MS: u64 = 100_000;
const FAMILY: &[u8] = b"info";

/// Whether slow calls go to the table.
pub(super) fn is_wanted(config: &Config) -> bool {
    config.get(&settings::SLOW_LOG_BUFFER) && config.get(&rpc::settings::SLOW_LOG_TABLE)
}

/// How often they do; `None` where they never do.
pub(crate) fn period(config: &Config) -> Option<Duration> {
    let both = [&settings::SLOW_LOG_TABLE_PERIOD_MS, &settings::NAMED_QUEUE_PERIOD_MS];
    both.iter().map(|setting| config.get(*setting)).min().filter(|_| is_wanted(config)).map(Duration::from_millis)
}

/// Writes what waits, as HBase without the log: what a crash takes was never promised. What cannot be written is lost.
pub(crate) fn write_table(server: &RegionServer) {
    loop {
        let calls = server.slow_log.take_for_table(BATCH_CALLS);
        if calls.is_empty() {
            return;
        }
        let mut written = 0;
        if let Err(why) = write(server, &calls, &mut written) {
            let lost = calls.len() - written;
            tracing::warn!(
                "could not write {lost} slow or large calls to hbase:slowlog, the ring buffer alone has them: {why}"
            );
        }
    }
}

/// Writes `calls` one after the other and counts them; what follows one that fails is left.
fn write(server: &RegionServer, calls: &[pb::SlowLogPayload], count: &mut usize) -> Result<(), String> {
    let table = TableName::slowlog_table();
    let mut regions = server.regions();
    regions.retain(|region| region.info().table == table);
    for call in calls {
        let row = row(server.env.clock.now_ms(), &server.env.rng);
        let region = regions.iter().find(|region| region.info().contains(&row));
        let region = region.ok_or("the region of its row is not open on this server")?;
        let written = region.mutate_rows(&[mutation(row, call)], None);
        let committed = written.and_then(|written| written.commit.wait());
        committed.map_err(|error| server.escalate_fatal(error).to_string())?;
        *count += 1;
        server.maintenance.consider_flush(region);
    }
    Ok(())
}

/// Rows are in the order of time, and of one time in none.
fn row(now: TimestampMs, rng: &Rng) -> Bytes {
    let now_ms = u64::try_from(now.0).unwrap_or_default();
    Bytes::copy_from_slice(&(now_ms * ROWS_PER_MS + rng.below(ROWS_PER_MS)).to_be_bytes())
}

fn mutation(row: Bytes, call: &pb::SlowLogPayload) -> Mutation {
    let numbers = [
        ("processing_time", i64::from(call.processing_time)),
        ("queue_time", i64::from(call.queue_time)),
        ("fs_read_time", call.fs_read_time()),
        ("response_size", call.response_size),
        ("block_bytes_scanned", call.block_bytes_scanned()),
        ("start_time", call.start_time),
    ];
    let texts = [
        ("call_details", call.call_details.as_str()),
        ("client_address", &call.client_address),
        ("method_name", &call.method_name),
        ("param", call.param()),
        ("region_name", call.region_name()),
        ("server_class", &call.server_class),
        ("type", call.r#type().as_str_name()),
        ("username", &call.user_name),
    ];
    let texts = texts.into_iter().map(|(name, text)| (name, text.to_owned()));
    let mut columns: Vec<_> = texts.chain(numbers.map(|(name, number)| (name, number.to_string()))).collect();
    columns.sort_unstable();
    let mut cells = CellBuffer::new();
    for (name, value) in &columns {
        let spec = CellSpec {
            row: &row,
            family: FAMILY,
            qualifier: name.as_bytes(),
            timestamp: i64::MAX,
            type_code: CellType::Put.code(),
            value: value.as_bytes(),
            tags: &[],
        };
        cells.push_spec(&spec, SeqId(0));
    }
    let mutation = Mutation::new(MutationKind::Put, row, cells.into_block());
    Mutation { durability: Durability::SkipWal, ..mutation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_time_and_five_digits() {
        let rng = Rng::seeded(1);
        for _ in 0..100 {
            let row = row(TimestampMs(1_700_000_000_123), &rng);
            let number = u64::from_be_bytes(row[..].try_into().expect("eight bytes"));
            assert_eq!(number / ROWS_PER_MS, 1_700_000_000_123);
        }
    }

    #[test]
    fn the_shorter_of_both_periods_counts_and_none_without_the_ring() {
        let mut config = Config::default();
        config.set("hbase.regionserver.slowlog.systable.enabled", "true");
        assert_eq!(period(&config), None);
        config.set("hbase.regionserver.slowlog.buffer.enabled", "true");
        assert_eq!(period(&config), Some(Duration::from_secs(600)));
        config.set("hbase.slowlog.systable.chore.duration", "5000");
        assert_eq!(period(&config), Some(Duration::from_secs(5)));
        config.set("hbase.regionserver.named.queue.chore.duration", "1000");
        assert_eq!(period(&config), Some(Duration::from_secs(1)));
    }
}
