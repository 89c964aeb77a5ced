//! CPU profiles of this process: recorded by `perf`, a program of its own, and kept as flame graphs. Follows: `ProfileServlet`, which asks
//! async-profiler.
//!
//! Always true: one is recorded at a time, and few are kept. Nothing of it runs inside the server's own threads.

use base::{Clock, Rng, SystemClock};
use flame::Folder;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use web::details::{PROFILE_EVENTS, Profile, ProfileRequest, Profiles};

/// Profiles that are kept.
const KEPT: usize = 8;
/// Samples per second and processor: not a divisor of what timers do.
const FREQUENCY: &str = "99";
/// Of each stack so many bytes are kept to be unwound: the release build has no frame pointers.
const CALL_GRAPH: &str = "dwarf,16384";
/// Of what perf has to say about a failure.
const MOST_SAID_BYTES: u64 = 4096;

/// The recorder of this process.
pub struct Recorder {
    /// The program that records.
    perf: OsString,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    recording: Option<ProfileRequest>,
    done: VecDeque<Done>,
    next_id: u64,
}

struct Done {
    profile: Profile,
    svg: String,
}

impl Recorder {
    /// One that has `perf` record.
    pub fn new(perf: impl Into<OsString>) -> Recorder {
        Recorder { perf: perf.into(), state: Arc::default() }
    }

    /// What is recorded and what was, the newest first.
    pub fn list(&self) -> Profiles {
        let state = self.state.lock();
        let done = state.done.iter().rev().map(|done| done.profile.clone()).collect();
        Profiles { recording: state.recording.clone(), done }
    }

    /// The picture of a profile that went well.
    pub fn svg(&self, id: u64) -> Option<String> {
        let state = self.state.lock();
        state.done.iter().find(|done| done.profile.id == id && !done.svg.is_empty()).map(|done| done.svg.clone())
    }

    /// Begins to record on a thread of its own.
    ///
    /// # Errors
    /// A sentence: one is being recorded, or the request is none.
    #[allow(clippy::disallowed_methods, reason = "it waits for another program, and for nothing of the server's")]
    pub fn start(&self, request: ProfileRequest) -> Result<(), String> {
        if !PROFILE_EVENTS.contains(&request.event.as_str()) {
            return Err(format!("{} is no event: {}", request.event, PROFILE_EVENTS.join(", ")));
        }
        if !(1..=ProfileRequest::MAX_SECONDS).contains(&request.seconds) {
            return Err(format!("a profile takes 1 to {} s", ProfileRequest::MAX_SECONDS));
        }
        let mut state = self.state.lock();
        if let Some(other) = &state.recording {
            return Err(format!("one of {} s is being recorded: wait for it", other.seconds));
        }
        let id = state.next_id;
        let (perf, shared, asked) = (self.perf.clone(), self.state.clone(), request.clone());
        let work = move || {
            let begun_ms = SystemClock::new().now_ms().0;
            let (svg, samples, error) = match record(&perf, &asked) {
                Ok((svg, samples)) => (svg, samples, None),
                Err(error) => (String::new(), 0, Some(error)),
            };
            let mut state = shared.lock();
            state.recording = None;
            state.done.push_back(Done { profile: Profile { id, begun_ms, request: asked, samples, error }, svg });
            if state.done.len() > KEPT {
                state.done.pop_front();
            }
        };
        std::thread::Builder::new().name("profile".into()).spawn(work).map_err(|error| error.to_string())?;
        state.next_id += 1;
        state.recording = Some(request);
        Ok(())
    }
}

/// The picture, and how many samples are in it.
fn record(perf: &OsString, request: &ProfileRequest) -> Result<(String, u64), String> {
    let file = Recorded::new()?;
    let mut record = Command::new(perf);
    record.args(["record", "--quiet", "--freq", FREQUENCY, "--call-graph", CALL_GRAPH, "--event", &request.event]);
    record.args(["--pid", &std::process::id().to_string(), "--output"]).arg(&file.0);
    record.args(["--", "sleep", &request.seconds.to_string()]);
    let said = run(record.stdout(Stdio::null()).stderr(Stdio::piped()), |_| ())?;
    let mut script = Command::new(perf);
    script.args(["script", "--no-inline", "--input"]).arg(&file.0);
    let mut folder = Folder::default();
    run(script.stdout(Stdio::piped()).stderr(Stdio::null()), |line| folder.line(line))?;
    let folded = folder.finish();
    let samples = folded.values().sum();
    if samples == 0 {
        return Err(if said.is_empty() { "perf has no sample: nothing ran".to_owned() } else { said });
    }
    let title = format!("basalt, {} for {} s", request.event, request.seconds);
    Ok((flame::draw(&title, &folded), samples))
}

/// Runs perf to its end, each line of its output handed over; what it has to say on the side is returned, or is the error where it fails.
fn run(command: &mut Command, mut line: impl FnMut(&str)) -> Result<String, String> {
    let mut child = command.stdin(Stdio::null()).spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "perf is not installed here (Debian: apt-get install linux-perf)".to_owned(),
        _ => format!("perf does not run: {error}"),
    })?;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout);
        let mut bytes = Vec::new();
        while lines.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            line(String::from_utf8_lossy(&bytes).trim_end_matches('\n'));
            bytes.clear();
        }
    }
    let mut said = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.by_ref().take(MOST_SAID_BYTES).read_to_end(&mut said);
        // What is beyond is drained, or perf would wait.
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    }
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match child.wait() {
        Ok(status) if status.success() => Ok(said),
        Ok(status) if said.is_empty() => Err(format!("perf ended with {status}")),
        Ok(_) => Err(said),
        Err(error) => Err(format!("perf: {error}")),
    }
}

/// A file in a directory that nobody else may enter; both are removed with the value.
struct Recorded(PathBuf);

impl Recorded {
    #[allow(clippy::disallowed_methods, reason = "a directory of the system's, not the volume's")]
    fn new() -> Result<Recorded, String> {
        let directory = std::env::temp_dir().join(format!("basalt-profile-{}", Rng::from_system().uuid_hex()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        Ok(Recorded(directory.join("recorded")))
    }
}

impl Drop for Recorded {
    #[allow(clippy::disallowed_methods, reason = "a file of the system's, not the volume's")]
    fn drop(&mut self) {
        if let Some(directory) = self.0.parent() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a program in a scratch directory stands for perf")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn request(event: &str, seconds: u32) -> ProfileRequest {
        ProfileRequest { event: event.into(), seconds }
    }

    /// A recorder whose perf is a shell script.
    fn recorder(name: &str, script: &str) -> Recorder {
        let path = std::env::temp_dir().join(format!("basalt-perf-{}-{name}", std::process::id()));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made a program");
        Recorder::new(path)
    }

    fn wait(recorder: &Recorder) -> Profile {
        loop {
            let mut list = recorder.list();
            if list.recording.is_none() {
                return list.done.swap_remove(0);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_profile_is_recorded_drawn_and_kept() {
        let perf = recorder(
            "good",
            "if [ $1 = script ]; then printf 'worker 1/2 5.1: 1 cycles:\\n\\t55 rpc::read+0x1 (x)\\n\\t56 main+0x2 (x)\\n\\n'; fi",
        );
        for id in 0..10 {
            perf.start(request("cpu-clock", 1)).expect("it begins");
            assert_eq!(
                wait(&perf),
                Profile {
                    id,
                    begun_ms: wait(&perf).begun_ms,
                    request: request("cpu-clock", 1),
                    samples: 1,
                    error: None
                }
            );
        }
        let svg = perf.svg(9).expect("the newest");
        assert!(svg.starts_with("<svg") && svg.contains("rpc::read"), "{svg}");
        assert!(perf.svg(1).is_none() && perf.list().done.len() == KEPT);
    }

    #[test]
    fn what_perf_says_of_a_failure_is_told() {
        let perf = recorder("bad", "echo 'perf_event_paranoid is 4' >&2; exit 1");
        perf.start(request("cpu-clock", 1)).expect("it begins");
        assert_eq!(wait(&perf).error.as_deref(), Some("perf_event_paranoid is 4"));
        let none = Recorder::new("/nowhere/perf");
        none.start(request("cpu-clock", 1)).expect("it begins");
        assert!(wait(&none).error.expect("an error").contains("apt-get install linux-perf"));
    }

    #[test]
    fn requests_that_are_none_are_refused() {
        let perf = recorder("asked", "exit 0");
        assert!(perf.start(request("rm -rf", 1)).expect_err("no event").contains("cpu-clock"));
        assert!(perf.start(request("cpu-clock", 0)).is_err() && perf.start(request("cpu-clock", 3600)).is_err());
    }
}
