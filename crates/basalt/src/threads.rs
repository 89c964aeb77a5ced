//! The threads of the process, as the kernel knows them.

use std::path::Path;
use web::details::Thread;

/// Milliseconds of one of the kernel's ticks: a hundred a second on every Linux that this runs on.
const TICK_MS: u64 = 10;

/// Every thread; nothing where there is no `/proc`.
#[allow(clippy::disallowed_methods, reason = "the kernel's files, not the volume's")]
pub fn all() -> Vec<Thread> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut threads: Vec<Thread> = entries.flatten().filter_map(|entry| of(&entry.path())).collect();
    threads.sort_by_key(|thread| thread.id);
    threads
}

#[allow(clippy::disallowed_methods, reason = "the kernel's files, not the volume's")]
fn of(directory: &Path) -> Option<Thread> {
    // A thread may have ended since the directory was listed.
    let stat = std::fs::read_to_string(directory.join("stat")).ok()?;
    let waits_in = std::fs::read_to_string(directory.join("wchan")).unwrap_or_default();
    parse(&stat, waits_in.trim_end_matches('0'))
}

/// From the line of `stat`: `pid (name) state ...`; the name may have spaces and parentheses.
fn parse(stat: &str, waits_in: &str) -> Option<Thread> {
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Some(Thread {
        id: id.parse().ok()?,
        name: name.to_owned(),
        state: (*fields.first()?).to_owned(),
        cpu_ms: (ticks(11)? + ticks(12)?) * TICK_MS,
        waits_in: waits_in.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = "77 (a (b) c) S 1 77 77 0 -1 4194368 9 0 0 0 25 7 0 0 20 0 9 0 100 1 2 3";
        let thread = parse(line, "futex_wait").expect("a thread");
        assert_eq!((thread.id, thread.name.as_str(), thread.state.as_str(), thread.cpu_ms), (77, "a (b) c", "S", 320));
        assert!(parse("", "").is_none() && parse("1 (x) S", "").is_none());
        assert!(all().iter().any(|thread| thread.id == u64::from(std::process::id())));
    }
}
