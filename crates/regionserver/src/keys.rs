//! Which keys are read and written here, over time: gathered every minute, kept over restarts.

use crate::server::RegionServer;
use crate::settings;
use base::{Config, LogThrottle};
use fs::FilePath;
use key_statistics::{Grid, History, KeySampler, Measure};
use model::TableName;
use std::sync::Arc;
use std::time::Duration;

/// How often what was picked becomes a column.
const GATHER_EVERY: Duration = Duration::from_secs(60);
/// Gatherings between two savings.
const SAVE_EVERY: u32 = 10;
/// Memory of the history, beside the budget of the server, which it is a small part of. As many bytes are in the file.
const MOST_HISTORY_BYTES: u64 = 16 << 20;
const LEAST_HISTORY_BYTES: u64 = 1 << 20;
const BUDGET_SHARE: u64 = 32;
/// A failure to save is told of once an hour.
const REPEAT_MESSAGE_US: u64 = 3_600_000_000;

/// What picks keys, as the settings say.
pub fn sampler(config: &Config) -> Arc<KeySampler> {
    Arc::new(if config.get(&settings::KEY_STATISTICS) { KeySampler::new() } else { KeySampler::off() })
}

/// Nothing is known yet.
pub(crate) fn history(memory_budget_bytes: u64) -> History {
    History::new(history_bytes(memory_budget_bytes))
}

fn history_bytes(memory_budget_bytes: u64) -> usize {
    (memory_budget_bytes / BUDGET_SHARE).clamp(LEAST_HISTORY_BYTES, MOST_HISTORY_BYTES) as usize
}

/// One file for each place that a server is at: the next process there goes on with it.
fn file(server: &RegionServer) -> FilePath {
    rootdir::key_statistics_dir().join(format!("{},{}", server.name.host, server.name.port))
}

/// Gathers and saves until the server stops, and once more then. On a thread of its own: it reads and writes files.
pub(crate) fn run(server: &Arc<RegionServer>) {
    restore(server);
    let failures = LogThrottle::every_us(REPEAT_MESSAGE_US);
    let mut gathered = 0u32;
    loop {
        let stops = server.stop.wait(GATHER_EVERY);
        server.gather_keys();
        gathered += 1;
        if stops || gathered.is_multiple_of(SAVE_EVERY) {
            save(server, &failures);
        }
        if stops {
            return;
        }
    }
}

fn restore(server: &RegionServer) {
    let (volume, file) = (&server.env.volume, file(server));
    let most_bytes = history_bytes(server.memory_budget_bytes);
    let saved = match volume.stat(&file) {
        Ok(None) => return,
        Ok(Some(_)) => volume.read(&file).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match saved.and_then(|bytes| History::decode(&bytes, most_bytes).map_err(|error| error.to_string())) {
        Ok(saved) => server.keys.lock().restore(saved),
        Err(error) => tracing::warn!("cannot read {file}: {error}; the Key Visualizer starts empty"),
    }
}

fn save(server: &RegionServer, failures: &LogThrottle) {
    let bytes = server.keys.lock().encode();
    let volume = &server.env.volume;
    let saved =
        volume.create_dir_all(&rootdir::key_statistics_dir()).and_then(|()| volume.publish(&file(server), &bytes));
    if let Err(error) = saved
        && failures.allow(&*server.env.clock)
    {
        tracing::warn!("cannot save the key statistics, which are lost when this process ends: {error}");
    }
}

impl RegionServer {
    /// What was picked becomes part of what is known.
    fn gather_keys(&self) {
        let (columns, now_ms) = (self.env.keys.take(), self.env.clock.now_ms().0);
        self.keys.lock().record(now_ms, columns);
    }

    /// Tables of whose keys something is known, up to now. Cost: sorts the samples of the last minute.
    pub fn tables_with_keys(&self) -> Vec<TableName> {
        self.gather_keys();
        self.keys.lock().tables()
    }

    /// The load of a table's keys from `span_ms` ago until now; `None`: nothing is gathered.
    pub fn key_grid(&self, table: &TableName, measure: Measure, span_ms: i64) -> Option<Grid> {
        if !self.env.keys.is_on() {
            return None;
        }
        self.gather_keys();
        Some(self.keys.lock().grid(table, measure, self.env.clock.now_ms().0, span_ms))
    }
}
