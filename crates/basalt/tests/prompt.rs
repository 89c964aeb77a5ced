//! The shell's prompt, driven through a pseudo terminal: what a person at a terminal meets. `script` of util-linux makes the terminal.
#![allow(clippy::disallowed_methods, reason = "waits for a real process")]

use crate::common::{Scratch, Server};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A person at a terminal.
struct Person {
    child: Child,
    keys: ChildStdin,
    screen: mpsc::Receiver<Vec<u8>>,
    seen: String,
}

impl Person {
    fn sits_down(server: &Server, home: &std::path::Path, more: &str) -> Person {
        let binary = env!("CARGO_BIN_EXE_basalt");
        // Without exec a shell between would have its own ideas of Ctrl-C.
        let line = format!("exec {binary} -D hbase.zookeeper.property.clientPort={} shell {more}", server.zk_port);
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env_remove("HBASE_CONF_DIR")
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("script of util-linux runs");
        let (keys, mut output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (send, screen) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = output.read(&mut bytes) {
                if read == 0 || send.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Person { child, keys, screen, seen: String::new() }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("typed");
    }

    /// Waits until the screen has shown a text, and forgets what came up to it.
    fn sees(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{text:?} did not appear ({error}):\n{}", self.seen),
            }
        }
        let at = self.seen.find(text).expect("it was seen") + text.len();
        self.seen.drain(..at);
    }

    fn leaves(mut self) -> Option<i32> {
        self.types("exit 7\r");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether there can be a terminal at all: some sandboxes have none.
fn has_terminals() -> bool {
    let made = Command::new("script").args(["-qec", "true", "/dev/null"]).stdin(Stdio::null()).output();
    match made {
        Ok(made) if made.status.success() => true,
        made => {
            println!("skipped: no pseudo terminal can be made here: {made:?}");
            false
        }
    }
}

/// What is promised is 50 ms; a build for tests, on a machine that runs others, gets ten times that in the best of some tries.
const PROMPT_WITHIN: Duration = Duration::from_millis(500);

#[test]
fn the_prompt_is_there_at_once() {
    if !has_terminals() {
        return;
    }
    let scratch = Scratch::new("prompt-time");
    let server = Server::start(&scratch.join("data"), &[]);
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let begin = Instant::now();
        let mut person = Person::sits_down(&server, &scratch.0, "");
        person.sees("hbase:001:0>");
        best = best.min(begin.elapsed());
        assert_eq!(person.leaves(), Some(7));
    }
    println!("from the start of the process to the prompt: {} us", best.as_micros());
    assert!(best < PROMPT_WITHIN, "the prompt took {} ms", best.as_millis());
}

// Each key comes when its prompt is there: before that the terminal acts on it, and not the shell.
#[test]
fn a_person_at_a_terminal_gets_prompt_completion_colours_and_a_way_out() {
    if !has_terminals() {
        return;
    }
    let scratch = Scratch::new("prompt");
    let server = Server::start(&scratch.join("data"), &[]);
    let mut person = Person::sits_down(&server, &scratch.0, "");
    person.sees("HBase Shell");
    person.sees("hbase:001:0>");
    person.types("create 'tab', 'fam'\r");
    person.sees("Created table tab");
    person.sees("hbase:002:0>");
    // A statement of several lines.
    person.types("put 'tab', 'r1',\r");
    person.sees("hbase:003:");
    person.types("'fam:q', 'v1'\r");
    person.sees("Took ");
    person.sees("hbase:004:");
    // A tabulator completes a command, a table and a family of it.
    person.types("is_enab\t 't\t'\r");
    person.sees("true");
    person.sees("hbase:005:");
    person.types("get 'tab', 'r1', 'fa\tq'\r");
    person.sees("\u{1B}[1m");
    person.sees("value=v1");
    person.sees("Took ");
    person.sees("hbase:006:");
    // Ctrl-C ends what runs, and the shell goes on.
    person.types("exists 'tab'; sleep 3000\r");
    person.sees("Table tab does exist");
    person.sees("Took ");
    person.types("\u{3}");
    person.sees("^C");
    person.sees("hbase:007:");
    person.types("scan 'none'\r");
    person.sees("\u{1B}[31m");
    person.sees("ERROR: Unknown table none!");
    person.sees("hbase:008:");
    person.types("puts 'still ' + 'here'\r");
    person.sees("still here");
    person.sees("hbase:009:");
    // What was begun is forgotten.
    person.types("1 +\r");
    person.sees("hbase:010:");
    person.types("\u{3}");
    person.sees("hbase:011:");
    person.types("puts 'for' + 'gotten'\r");
    person.sees("forgotten");
    person.sees("hbase:012:");
    assert_eq!(person.leaves(), Some(7));
    let history = std::fs::read_to_string(scratch.join(".basalt_shell_history")).expect("it was kept");
    assert!(history.contains("create 'tab', 'fam'") && history.contains("scan 'none'"), "{history}");

    let mut person = Person::sits_down(&server, &scratch.0, "--no-color");
    person.sees("hbase:001:0>");
    person.types("scan 'tab'\r");
    person.sees("ROW");
    assert!(!person.seen.contains("\u{1B}[1m"), "{}", person.seen);
    person.sees("value=v1");
    person.sees("hbase:002:");
    assert_eq!(person.leaves(), Some(7));
}
