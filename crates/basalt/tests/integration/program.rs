//! Programs of HBase's, and their ends.

use crate::joined::lab::{Lab, Piece};
use std::time::{Duration, Instant};

/// No program takes longer.
const AT_MOST: Duration = Duration::from_secs(900);

/// A program of HBase's, by the name of its class.
pub struct Program {
    jars: Jars,
    class: &'static str,
    name: String,
    settings: Vec<(&'static str, String)>,
    words: Vec<String>,
}

/// Which jars it runs on.
#[derive(Clone, Copy)]
pub enum Jars {
    /// HBase 2.6.4's, with integration tests of 2.4.8.
    Newest,
    /// The integration tests' own: all of 2.4.8.
    OfTheTests,
}

impl Program {
    pub fn new(jars: Jars, class: &'static str) -> Program {
        let name = class.rsplit('.').next().unwrap_or_default().to_owned();
        Program { jars, class, name, settings: Vec::new(), words: Vec::new() }
    }

    /// With that in its hbase-site.xml.
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Program {
        self.settings.push((key, value.to_string()));
        self
    }

    pub fn with_all(mut self, settings: impl IntoIterator<Item = (&'static str, String)>) -> Program {
        self.settings.extend(settings);
        self
    }

    /// With these words behind its name.
    pub fn words(mut self, words: &[&str]) -> Program {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// The words of a shell that start it; `None`, with a line, where its jars are not there.
    pub fn command(&self, lab: &Lab) -> Option<Vec<String>> {
        let of = |name: &str| {
            let value = std::env::var(name).ok();
            if value.is_none() {
                println!("skipped: {name} is not set; `cargo xtask cluster integration` sets it");
            }
            value
        };
        let conf = lab.conf_with(self.name(), &self.settings).display().to_string();
        let (launcher, class_path) = match self.jars {
            Jars::Newest => (lab.launcher().to_owned(), format!("{conf}:{}", of("BASALT_TEST_HBASE_TOOLS")?)),
            Jars::OfTheTests => (of("BASALT_TEST_HBASE_IT_LAUNCHER")?, conf),
        };
        let start = ["sh", &launcher, &class_path, "512m", self.class].map(str::to_owned);
        Some(start.into_iter().chain(self.words.iter().cloned()).collect())
    }

    /// With that name of its log, for one of several.
    pub fn named(mut self, name: &str) -> Program {
        name.clone_into(&mut self.name);
        self
    }

    /// The name of its log, and of its configuration: the last part of its class's where nothing else was said.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn start(&self, lab: &Lab) -> Option<Piece> {
        let words = self.command(lab)?;
        let mut command = std::process::Command::new(&words[0]);
        // Test programs of HBase's write to `target` where they are.
        Some(lab.launch(self.name(), command.args(&words[1..]).current_dir(lab.file(""))))
    }
}

/// Waits until it has ended, and calls `meanwhile` again and again; what it said.
pub async fn ends_well(mut program: Piece, mut meanwhile: impl AsyncFnMut()) -> String {
    let began = Instant::now();
    let status = loop {
        if let Some(status) = program.has_ended_with() {
            break status;
        }
        assert!(began.elapsed() < AT_MOST, "not done after {} s:\n{}", AT_MOST.as_secs(), last_of(&program.said()));
        meanwhile().await;
        // A process that ends wakes nobody here.
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let said = program.said();
    assert!(status.success(), "it failed; its last lines, newest first:\n{}", last_of(&said));
    said
}

/// What it said last.
pub fn last_of(said: &str) -> String {
    said.lines().rev().take(40).collect::<Vec<_>>().join("\n")
}
