//! HBase's own linked list, `IntegrationTestBigLinkedList`, beside ours: its generator again and again while the cluster is harmed, and its
//! verification when that is over.

use crate::joined::lab::{Lab, Piece};
use std::time::{Duration, Instant};

const PROGRAM: &str = "org.apache.hadoop.hbase.test.IntegrationTestBigLinkedList";
/// What one generator writes: so many lists side by side, so many nodes each, of which `WIDTH * WRAP` are a circle.
const MAPPERS: u64 = 2;
const NODES: u64 = 50_000;
const WIDTH: u64 = 1000;
const WRAP: u64 = 25;
/// One generator, or the verification of what all have written.
const AT_MOST: Duration = Duration::from_secs(1200);

pub struct HbasesList {
    /// The class path of HBase's test programs, beside that of its servers.
    jars: String,
    running: Option<Piece>,
    runs: u64,
    failed: u64,
}

impl HbasesList {
    /// `None` where it is not wanted: `BASALT_TEST_HBASE_TOOLS` has no class path.
    pub fn wanted() -> Option<HbasesList> {
        let jars = std::env::var("BASALT_TEST_HBASE_TOOLS").ok()?;
        Some(HbasesList { jars, running: None, runs: 0, failed: 0 })
    }

    /// The next generator, where the one before is done.
    pub fn go_on(&mut self, lab: &Lab) {
        if let Some(running) = &mut self.running {
            let Some(status) = running.has_ended_with() else { return };
            self.count(lab, status.success());
        }
        self.runs += 1;
        let arguments = [MAPPERS, NODES].map(|n| n.to_string()).into_iter().chain([self.out(lab, "generated")]);
        let arguments: Vec<String> = arguments.chain([WIDTH, WRAP].map(|n| n.to_string())).collect();
        self.running = Some(self.start(lab, "Generator", &arguments));
    }

    fn count(&mut self, lab: &Lab, is_well: bool) {
        if !is_well {
            self.failed += 1;
            lab.note(&format!("generator {} of HBase's list gave up: its client did not get through", self.runs));
        }
    }

    fn start(&self, lab: &Lab, what: &str, arguments: &[String]) -> Piece {
        let local = |key: &str, value: &str| format!("-D{key}={value}");
        let tmp = lab.file("hadoop");
        let options = [
            local("fs.defaultFS", "file:///"),
            local("hadoop.tmp.dir", &tmp),
            local("mapreduce.framework.name", "local"),
            local("mapreduce.task.io.sort.mb", "32"),
        ];
        let words: Vec<&str> = options
            .iter()
            .map(String::as_str)
            .chain(["-m", "calm", what])
            .chain(arguments.iter().map(String::as_str))
            .collect();
        lab.java_tool(&format!("hbases-list-{}", self.runs), "512m", (&self.jars, PROGRAM), &words)
    }

    fn out(&self, lab: &Lab, what: &str) -> String {
        format!("file://{}", lab.file(&format!("hbases-list-{what}-{}", self.runs)))
    }

    /// Waits for the last generator and verifies what all have written. Returns how many nodes others name.
    ///
    /// # Panics
    /// When one is named that is not there, or one is not named although all generators came to their end.
    pub async fn verify(mut self, lab: &Lab) -> u64 {
        if let Some(running) = self.running.take() {
            let is_well = ended_well(running, "the last generator").await.0;
            self.count(lab, is_well);
        }
        let written = (self.runs - self.failed) * MAPPERS * NODES;
        lab.note(&format!(
            "HBase's list: {} generators, {} gave up; {written} nodes to verify",
            self.runs, self.failed
        ));
        assert!(written > 0, "no generator of HBase's list came to its end");
        self.runs += 1;
        let verification = self.start(lab, "Verify", &[self.out(lab, "verified"), "1".to_owned()]);
        let (is_well, said) = ended_well(verification, "the verification").await;
        let counted = |name: &str| {
            let found = said.lines().rev().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
            found.map_or(0, |number| number.trim().parse::<u64>().expect("a number"))
        };
        let [referenced, mut undefined, unreferenced, lost] =
            ["REFERENCED", "UNDEFINED", "UNREFERENCED", "LOST_FAMILIES"].map(counted);
        // A list begins with nodes that name no other (the key of one zero byte) until its circle is closed: a generator that gave up leaves such.
        let names_no_other = said.lines().any(|line| line.trim() == r"\x00=1");
        let is_open = self.failed > 0 && names_no_other && undefined > 0;
        undefined -= u64::from(is_open);
        let told = format!(
            "{referenced} referenced, {undefined} undefined, {unreferenced} unreferenced, {lost} without a family"
        );
        lab.note(&format!("HBase's list: {told}"));
        assert!(is_well || is_open, "HBase's verification failed: {told}");
        assert_eq!((undefined, lost), (0, 0), "{told}");
        assert!(referenced >= written, "{told}, and {written} were written");
        assert!(self.failed > 0 || (referenced, unreferenced) == (written, 0), "{told}, and {written} were written");
        referenced
    }
}

/// Whether it ended well, and what it said.
async fn ended_well(mut piece: Piece, what: &str) -> (bool, String) {
    let began = Instant::now();
    loop {
        if let Some(status) = piece.has_ended_with() {
            return (status.success(), piece.said());
        }
        assert!(began.elapsed() < AT_MOST, "{what} of HBase's list is not done after {} s", AT_MOST.as_secs());
        // A process that ends wakes nobody here.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
