//! Settings from `hbase-site.xml` and `-D key=value`, and a few of Hadoop's from `core-site.xml`, in HBase's way: later sources win, `${name}` stands for another
//! key, an environment variable (`${env.NAME}`) or one of the few Java properties that HBase's files use.

use anyhow::{Context, Result, anyhow, bail};
use base::Config;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is read in `core-site.xml`: in which racks machines stand.
const OF_CORE_SITE: &str = "net.topology.";

/// Most substitutions in one value, as Hadoop's `Configuration` allows.
const MAX_SUBSTITUTIONS: usize = 20;

/// The settings that `directory`'s `hbase-site.xml` (if a directory is given) and `overrides` make.
///
/// # Errors
/// A sentence naming the file and what is wrong in it, or the override that is not `key=value`.
pub fn load(directory: Option<&Path>, overrides: &[String]) -> Result<Config> {
    let Some(directory) = directory else { return read(None, overrides) };
    let file = directory.join("hbase-site.xml");
    #[allow(clippy::disallowed_methods, reason = "configuration is read before there is a volume")]
    let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    read_over(core_site(directory)?, Some((&file, &text)), overrides)
}

/// What `core-site.xml` says, in the same directory or else in Hadoop's own. Nothing where there is none.
#[allow(clippy::disallowed_methods, reason = "configuration is read before there is a volume")]
fn core_site(directory: &Path) -> Result<BTreeMap<String, String>> {
    let hadoops = std::env::var_os("HADOOP_CONF_DIR").map(PathBuf::from);
    let mut core = BTreeMap::new();
    for file in [Some(directory.to_owned()), hadoops].into_iter().flatten().map(|dir| dir.join("core-site.xml")) {
        match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            text => {
                let text = text.with_context(|| format!("cannot read {}", file.display()))?;
                parse_site(&text, &mut core)
                    .with_context(|| format!("{} is not a usable core-site.xml", file.display()))?;
                break;
            }
        }
    }
    Ok(core)
}

/// As [`load`], with the file's path and text.
///
/// # Errors
/// As [`load`].
pub fn read(site: Option<(&Path, &[u8])>, overrides: &[String]) -> Result<Config> {
    read_over(BTreeMap::new(), site, overrides)
}

/// As [`read`], over what `core-site.xml` says: keys that servers of HBase's read there, too, hold if nothing else says more.
fn read_over(core: BTreeMap<String, String>, site: Option<(&Path, &[u8])>, overrides: &[String]) -> Result<Config> {
    let of_core = |(key, _): &(&String, &String)| key.starts_with(OF_CORE_SITE);
    let mut raw: BTreeMap<String, String> =
        core.iter().filter(of_core).map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some((file, text)) = site {
        parse_site(text, &mut raw).with_context(|| format!("{} is not a usable hbase-site.xml", file.display()))?;
    }
    for item in overrides {
        let (key, value) = item.split_once('=').ok_or_else(|| anyhow!("-D {item} is not of the form key=value"))?;
        if key.trim().is_empty() {
            bail!("-D {item} has no key before the '='");
        }
        raw.insert(key.trim().to_owned(), value.to_owned());
    }
    let mut config = Config::default();
    let mut all = core;
    all.extend(raw.clone());
    for (key, value) in &raw {
        let value = substitute(value, &all).with_context(|| format!("the value of {key}"))?;
        config.set(key, value);
    }
    Ok(config)
}

/// Reads `<configuration><property><name/><value/></property>...` into `into`.
fn parse_site(text: &[u8], into: &mut BTreeMap<String, String>) -> Result<()> {
    let text = std::str::from_utf8(text)?;
    let document = roxmltree::Document::parse(text)?;
    let root = document.root_element();
    if root.tag_name().name() != "configuration" {
        bail!("the outermost element is <{}>, not <configuration>", root.tag_name().name());
    }
    for property in root.children().filter(|node| node.has_tag_name("property")) {
        let text_of = |tag: &str| {
            let element = property.children().find(|node| node.has_tag_name(tag));
            element.map(|element| element.text().unwrap_or_default().trim().to_owned())
        };
        let Some(name) = text_of("name").filter(|name| !name.is_empty()) else {
            let line = document.text_pos_at(property.range().start).row;
            bail!("the <property> in line {line} has no <name>");
        };
        into.insert(name, text_of("value").unwrap_or_default());
    }
    Ok(())
}

fn substitute(value: &str, all: &BTreeMap<String, String>) -> Result<String> {
    let mut text = value.to_owned();
    for _ in 0..MAX_SUBSTITUTIONS {
        let Some(start) = text.find("${") else { return Ok(text) };
        let Some(end) = text[start..].find('}') else { return Ok(text) };
        let inner = text[start + 2..start + end].to_owned();
        let replacement = match inner.as_str() {
            "user.name" => std::env::var("USER").unwrap_or_else(|_| "hbase".into()),
            "user.home" => std::env::var("HOME").unwrap_or_else(|_| "/".into()),
            "java.io.tmpdir" => std::env::temp_dir().to_string_lossy().into_owned(),
            "user.dir" => std::env::current_dir()?.to_string_lossy().into_owned(),
            other => match (other.strip_prefix("env."), all.get(other)) {
                (Some(variable), _) => std::env::var(variable).unwrap_or_default(),
                (None, Some(value)) => value.clone(),
                // Hadoop leaves an unknown name as it stands.
                (None, None) => return Ok(text),
            },
        };
        text.replace_range(start..=start + end, &replacement);
    }
    bail!("it refers to itself: more than {MAX_SUBSTITUTIONS} substitutions in {value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(text: &str) -> Result<BTreeMap<String, String>> {
        let mut map = BTreeMap::new();
        parse_site(text.as_bytes(), &mut map).map(|()| map)
    }

    #[test]
    fn a_site_file_is_read_as_hadoop_reads_it() {
        let text = "<?xml version=\"1.0\"?><!-- c --><configuration>\n<property><name>a.b</name>\n<value> x &amp; y </value>\
                    <description>d</description></property><property><name>empty</name><value></value></property></configuration>";
        let map = site(text).expect("a good file");
        assert_eq!(map["a.b"], "x & y");
        assert_eq!(map["empty"], "");
        for bad in
            ["", "<a></a>", "<configuration><property><value>1</value></property></configuration>", "<configuration>"]
        {
            assert!(site(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn where_machines_stand_is_read_in_core_site_too() {
        let core = site(
            "<configuration><property><name>net.topology.script.file.name</name><value>${etc}/racks.sh</value></property>\
             <property><name>net.topology.script.number.args</name><value>7</value></property>\
             <property><name>etc</name><value>/etc</value></property>\
             <property><name>fs.defaultFS</name><value>hdfs://n</value></property></configuration>",
        );
        let text = "<configuration><property><name>net.topology.script.number.args</name><value>9</value></property></configuration>";
        let config = read_over(core.expect("good"), Some((Path::new("x"), text.as_bytes())), &[]).expect("good");
        assert_eq!(config.text("net.topology.script.file.name"), Some("/etc/racks.sh"));
        assert_eq!(config.text("net.topology.script.number.args"), Some("9"), "hbase-site.xml says more");
        assert!(config.text("fs.defaultFS").is_none() && config.text("etc").is_none(), "not HBase's");
    }

    #[test]
    fn names_are_substituted_and_loops_end() {
        let all = BTreeMap::from([
            ("a".to_owned(), "1".to_owned()),
            ("b".to_owned(), "${a}2".to_owned()),
            ("c".to_owned(), "${c}".to_owned()),
        ]);
        assert_eq!(substitute("${b}3", &all).expect("fine"), "123");
        assert_eq!(substitute("${nobody}", &all).expect("left as it stands"), "${nobody}");
        assert!(substitute("${c}", &all).is_err());
    }
}
