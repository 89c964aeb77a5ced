//! The process's log: to standard error, with its newest lines kept for the pages, and a filter that can be changed while the process runs.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::reload::Handle;

/// What logs unless `BASALT_LOG` says otherwise.
const DEFAULT_FILTER: &str = "warn,basalt=info,basalt_regionserver=info";
/// Lines that are kept.
const KEPT_LINES: usize = 1000;
/// Bytes of a line that are kept.
const KEPT_BYTES: usize = 1000;
/// Levels as people write them.
const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"];

/// Exchanges the filter.
type Reload = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

/// The log of this process.
pub struct Log {
    lines: Arc<Lines>,
    /// What the process was started with, and what was set since by part.
    filter: Mutex<(String, BTreeMap<String, String>)>,
    reload: Reload,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Says something to whoever started the process, in one piece: a reader sees all of it or nothing. One that is gone, or a full disk that it
/// goes to, is no reason for a server to end.
pub fn tell(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Logs go to standard error from now on, as `BASALT_LOG` says.
pub fn to_stderr() {
    to_stderr_from(DEFAULT_FILTER);
}

/// The same, from another level on where `BASALT_LOG` says nothing. The first call counts.
pub fn to_stderr_from(default: &str) {
    let wanted = std::env::var("BASALT_LOG").ok();
    let parsed = wanted.and_then(|text| EnvFilter::try_new(&text).ok().map(|filter| (text, filter)));
    let (text, filter) = parsed.unwrap_or_else(|| (default.to_owned(), EnvFilter::new(default)));
    let lines = Arc::new(Lines::default());
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Tee(lines.clone()));
    let subscriber = subscriber.with_filter_reloading();
    let reload = reload_by(subscriber.reload_handle());
    if subscriber.try_init().is_ok() {
        let _ = LOG.set(Log { lines, filter: Mutex::new((text, BTreeMap::new())), reload });
    }
}

fn reload_by<S: 'static>(handle: Handle<EnvFilter, S>) -> Reload {
    Box::new(move |filter| handle.reload(filter).map_err(|error| format!("the filter cannot be exchanged: {error}")))
}

/// The log, once [`to_stderr`] has been called.
pub fn log() -> Option<&'static Log> {
    LOG.get()
}

impl Log {
    /// The newest lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.lines.0.lock().iter().cloned().collect()
    }

    /// The filter in force.
    pub fn filter(&self) -> String {
        let filter = self.filter.lock();
        whole(&filter.0, &filter.1)
    }

    /// Has `part` (and what is below it) log from `level` on; answers the whole filter.
    ///
    /// # Errors
    /// A sentence: no such level, no name of a part.
    pub fn set_level(&self, part: &str, level: &str) -> Result<String, String> {
        let level = level.to_ascii_uppercase();
        if !LEVELS.contains(&level.as_str()) {
            return Err(format!("{level:?} is no level: choose one of {}", LEVELS.join(", ")));
        }
        let is_name = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':');
        if part.is_empty() || part.len() > 100 || !is_name(part) {
            return Err(format!("{part:?} is no part of the program: basalt_wal is one, and basalt_region::flush"));
        }
        let mut filter = self.filter.lock();
        let mut set = filter.1.clone();
        set.insert(part.to_owned(), level.to_ascii_lowercase());
        let text = whole(&filter.0, &set);
        (self.reload)(EnvFilter::try_new(&text).map_err(|error| error.to_string())?)?;
        filter.1 = set;
        tracing::info!("the log's filter is {text} from now on");
        Ok(text)
    }
}

fn whole(base: &str, set: &BTreeMap<String, String>) -> String {
    set.iter().fold(base.to_owned(), |text, (part, level)| format!("{text},{part}={level}"))
}

/// The newest lines.
#[derive(Default)]
struct Lines(Mutex<VecDeque<String>>);

impl Lines {
    fn keep(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT_BYTES)]);
        let mut lines = self.0.lock();
        for line in text.lines() {
            if lines.len() == KEPT_LINES {
                lines.pop_front();
            }
            lines.push_back(without_colours(line));
        }
    }
}

/// A line without the sequences that colour it in a terminal.
fn without_colours(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

/// Writes to standard error, and keeps.
struct Tee(Arc<Lines>);

impl<'a> MakeWriter<'a> for Tee {
    type Writer = TeeWriter<'a>;

    fn make_writer(&'a self) -> TeeWriter<'a> {
        TeeWriter(&self.0)
    }
}

/// One message's way out.
struct TeeWriter<'a>(&'a Lines);

impl Write for TeeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.keep(bytes);
        // Nobody may be there to read it; the server goes on all the same.
        let _ = std::io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Log {
        Log {
            lines: Arc::default(),
            filter: Mutex::new(("warn".into(), BTreeMap::new())),
            reload: Box::new(|_| Ok(())),
        }
    }

    #[test]
    fn levels_are_set_by_part_and_nonsense_is_refused() {
        let log = log();
        assert_eq!(log.set_level("basalt_wal", "debug"), Ok("warn,basalt_wal=debug".to_owned()));
        assert_eq!(log.set_level("basalt_wal", "OFF"), Ok("warn,basalt_wal=off".to_owned()));
        for (part, level) in [("a b", "INFO"), ("", "INFO"), ("a=b", "INFO"), ("basalt", "LOUD"), ("a,b", "INFO")] {
            assert!(log.set_level(part, level).is_err(), "{part} {level}");
        }
        assert_eq!(log.filter(), "warn,basalt_wal=off");
    }

    #[test]
    fn the_newest_lines_are_kept_and_no_more() {
        let log = log();
        (0..KEPT_LINES + 5).for_each(|n| log.lines.keep(format!("\u{1b}[32mline\u{1b}[0m {n}\n").as_bytes()));
        log.lines.keep(&vec![b'x'; 10 * KEPT_BYTES]);
        let lines = log.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (KEPT_LINES, "line 6"));
        assert_eq!(lines[KEPT_LINES - 1].len(), KEPT_BYTES);
    }
}
