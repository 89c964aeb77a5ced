//! In which racks machines stand, as Hadoop is told: by a script or by a table. Follows: `RackManager`, `ScriptBasedMapping`, `TableMapping`,
//! `CachedDNSToSwitchMapping`.

use crate::{script, settings};
use base::Config;
use master::{BoxFuture, DEFAULT_RACK, RackMapping};
use std::collections::HashMap;
use std::time::Duration;

/// A script that says nothing for so long is ended. Hadoop waits for ever.
const SCRIPT_AT_MOST: Duration = Duration::from_secs(30);

/// How the operator says where machines stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Racks {
    /// Not at all: they are all in one.
    One,
    /// A program that is called with addresses and prints a rack for each.
    Script {
        /// Its file.
        file: String,
        /// Addresses that one call is given at most.
        most: usize,
    },
    /// A file with an address and a rack in each line.
    Table(String),
}

impl Racks {
    /// As the configuration says. A mapping that is not here puts all machines into one rack, which the log tells.
    pub fn from_config(config: &Config) -> Racks {
        let file = |key: &str| config.text(key).map(str::trim).filter(|file| !file.is_empty()).map(str::to_owned);
        let determiner = config.text(settings::RACK_DETERMINER.key).unwrap_or(settings::RACK_DETERMINER.default);
        match determiner.trim() {
            settings::SCRIPT_MAPPING => match file(settings::RACK_SCRIPT.key) {
                Some(file) => Racks::Script { file, most: config.get(&settings::RACK_SCRIPT_ARGS) as usize },
                None => Racks::One,
            },
            settings::TABLE_MAPPING => match file(settings::RACK_TABLE.key) {
                Some(file) => Racks::Table(file),
                None => {
                    tracing::warn!(
                        "{} is not set: all hosts are taken to be in {DEFAULT_RACK}; set it to a file that has the address of a host and its rack \
                         in each line, and restart the master",
                        settings::RACK_TABLE.key
                    );
                    Racks::One
                }
            },
            other => {
                tracing::warn!(
                    "{} is {other}, which is not supported: all hosts are taken to be in {DEFAULT_RACK}; supported are {} and {}",
                    settings::RACK_DETERMINER.key,
                    settings::SCRIPT_MAPPING,
                    settings::TABLE_MAPPING
                );
                Racks::One
            }
        }
    }

    async fn find(&self, hosts: Vec<String>) -> Option<Vec<String>> {
        if *self == Racks::One {
            return Some(vec![DEFAULT_RACK.to_owned(); hosts.len()]);
        }
        let mut addresses = Vec::with_capacity(hosts.len());
        for host in hosts {
            addresses.push(address(host).await);
        }
        match self {
            Racks::One => None,
            Racks::Script { file, most } => {
                let mut racks = Vec::with_capacity(addresses.len());
                for some in addresses.chunks((*most).max(1)) {
                    racks.extend(from_script(file, some).await?);
                }
                Some(racks)
            }
            Racks::Table(file) => {
                let table = from_table(file.clone()).await;
                let rack = |address: &String| table.get(address).map_or(DEFAULT_RACK, String::as_str).to_owned();
                Some(addresses.iter().map(rack).collect())
            }
        }
    }
}

impl RackMapping for Racks {
    fn racks(&self, hosts: Vec<String>) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(self.find(hosts))
    }
}

/// Scripts and tables go by addresses; a name that leads to none stays. Follows: `NetUtils#normalizeHostName`.
async fn address(host: String) -> String {
    let found = tokio::net::lookup_host((host.as_str(), 0)).await;
    found.ok().and_then(|mut found| found.next()).map_or(host, |address| address.ip().to_string())
}

async fn from_script(file: &str, addresses: &[String]) -> Option<Vec<String>> {
    let failed = |what: String| {
        tracing::warn!(
            "the topology script {file} ({}) failed for {}: {what}; it is called again before the next run of the balancer",
            settings::RACK_SCRIPT.key,
            addresses.join(", ")
        );
        None
    };
    let said = match script::run(file, addresses, SCRIPT_AT_MOST).await {
        Ok(said) => said,
        Err(what) => return failed(what),
    };
    let racks: Vec<String> = said.split_ascii_whitespace().map(str::to_owned).collect();
    if racks.len() != addresses.len() {
        return failed(format!("it printed {} racks for {} machines", racks.len(), addresses.len()));
    }
    Some(racks)
}

/// Addresses and their racks; nothing of a file that cannot be read.
async fn from_table(file: String) -> HashMap<String, String> {
    let name = file.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator's file, which is on this machine and not on the volume"
    )]
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await;
    match read.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
        Ok(text) => table(&name, &text),
        Err(error) => {
            tracing::warn!(
                %error,
                "cannot read the topology table {name} ({}): all hosts are taken to be in {DEFAULT_RACK}; make it readable and restart the master",
                settings::RACK_TABLE.key
            );
            HashMap::new()
        }
    }
}

fn table(name: &str, text: &str) -> HashMap<String, String> {
    let mut racks = HashMap::new();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(address), Some(rack), None) => _ = racks.insert(address.to_owned(), rack.to_owned()),
            _ => tracing::warn!(
                "{name}, line {number}: expected the address of a host and its rack, and nothing else; the line is ignored"
            ),
        }
    }
    racks
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write scripts and tables to this machine's disk")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A file of this test, which goes with it.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> File {
            let path = std::env::temp_dir().join(format!("basalt-racks-{}-{name}", std::process::id()));
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
            File(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    async fn ask(pairs: &[(&str, &str)], hosts: &[&str]) -> Option<Vec<String>> {
        let mut config = Config::default();
        pairs.iter().for_each(|(key, value)| config.set(*key, *value));
        Racks::from_config(&config).racks(hosts.iter().map(|host| (*host).to_owned()).collect()).await
    }

    #[tokio::test]
    async fn without_a_word_all_machines_are_in_one_rack() {
        assert_eq!(ask(&[], &["10.0.0.1", "b"]).await.expect("an answer"), [DEFAULT_RACK, DEFAULT_RACK]);
        let other = [("hbase.util.ip.to.rack.determiner", "com.example.Racks")];
        assert_eq!(ask(&other, &["a"]).await.expect("an answer"), [DEFAULT_RACK]);
    }

    #[tokio::test]
    async fn a_script_is_called_with_addresses_and_not_with_too_many() {
        let script = File::new("good", "#!/bin/sh\nfor a in \"$@\"; do echo \"/rack-$a-of-$#\"; done\n");
        let file = script.0.to_str().expect("text");
        let pairs = [("net.topology.script.file.name", file), ("net.topology.script.number.args", "2")];
        let racks = ask(&pairs, &["10.0.0.1", "10.0.0.2", "10.0.0.3"]).await.expect("an answer");
        assert_eq!(racks, ["/rack-10.0.0.1-of-2", "/rack-10.0.0.2-of-2", "/rack-10.0.0.3-of-1"]);
    }

    #[tokio::test]
    async fn a_script_that_fails_or_says_too_little_says_nothing() {
        for (name, text) in [("fails", "#!/bin/sh\necho /a /b\nexit 3\n"), ("little", "#!/bin/sh\necho /a\n")] {
            let script = File::new(name, text);
            let file = script.0.to_str().expect("text");
            assert_eq!(ask(&[("net.topology.script.file.name", file)], &["10.0.0.1", "10.0.0.2"]).await, None);
        }
        assert_eq!(ask(&[("net.topology.script.file.name", "/nowhere/script")], &["10.0.0.1"]).await, None);
    }

    #[tokio::test]
    async fn a_table_is_read_by_addresses_and_what_is_not_in_it_is_in_the_default_rack() {
        let text = "# racks\n10.0.0.1 /a\n\n10.0.0.2 /b more\n 10.0.0.3\t/c\n";
        let file = File::new("table", text);
        let determiner = ("hbase.util.ip.to.rack.determiner", "org.apache.hadoop.net.TableMapping");
        let pairs = [determiner, ("net.topology.table.file.name", file.0.to_str().expect("text"))];
        let hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
        assert_eq!(ask(&pairs, &hosts).await.expect("an answer"), ["/a", DEFAULT_RACK, "/c"]);
        let gone = [determiner, ("net.topology.table.file.name", "/nowhere/table")];
        assert_eq!(ask(&gone, &hosts).await.expect("an answer"), [DEFAULT_RACK; 3]);
        assert_eq!(ask(&[determiner], &["a"]).await.expect("an answer"), [DEFAULT_RACK]);
    }
}
