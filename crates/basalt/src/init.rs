//! `basalt init`: a commented `hbase-site.xml` to begin with.

use crate::settings::{self, rows};
use anyhow::{Context, Result, bail};
use base::setting::SettingText;
use std::fmt::Write;
use std::path::Path;

/// What stands at the top, open: what nearly everybody decides.
const DECIDED: [&str; 4] = [
    settings::ROOT_DIRECTORY.key,
    settings::BIND.key,
    settings::MEMORY_SIZE.key,
    coordination::settings::CLIENT_PORT.key,
];

/// Writes the file into `directory`, whose data is to be in `data`.
///
/// # Errors
/// It is there already, or cannot be written.
#[allow(clippy::disallowed_methods, reason = "configuration is written before there is a volume")]
pub fn run(directory: &Path, data: Option<&Path>) -> Result<()> {
    let file = directory.join("hbase-site.xml");
    if file.exists() {
        bail!("{} is there already; move it away, or name another directory", file.display());
    }
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let data = data.map_or_else(|| directory.join("data"), Path::to_path_buf);
    let data = std::path::absolute(&data).with_context(|| format!("cannot use {}", data.display()))?;
    std::fs::write(&file, site(&data.display().to_string()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("{} is written. Start with: basalt --config {}", file.display(), directory.display());
    Ok(())
}

/// The text of the file.
fn site(data: &str) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\"?>\n<!-- Settings of Basalt. Every one that is read is here, with its default; those in comments have it.\n\
         `basalt config explain KEY` says more, `basalt doctor` whether this machine suits. -->\n<configuration>\n",
    );
    let rows: Vec<SettingText> = rows().iter().map(|row| row.describe()).collect();
    for key in DECIDED {
        if let Some(text) = rows.iter().find(|text| text.key == key) {
            let value = if key == settings::ROOT_DIRECTORY.key { data } else { &text.default };
            write!(out, "\n  <!-- {} -->\n  {}\n", comment(text.doc), property(key, value))
                .expect("writing to a string");
        }
    }
    out.push_str("\n  <!-- From here on everything has its default. To change one, take it out of its comment. -->\n");
    for text in rows.iter().filter(|text| !DECIDED.contains(&text.key)) {
        let unit = if text.unit.is_empty() { String::new() } else { format!(" ({})", text.unit) };
        let property = comment(&property(text.key, &text.default));
        write!(out, "\n  <!-- {}{unit}\n  {property} -->\n", comment(text.doc)).expect("writing to a string");
    }
    out.push_str("\n</configuration>\n");
    out
}

fn property(key: &str, value: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<property><name>{key}</name><value>{escaped}</value></property>")
}

/// A text as it may stand in a comment of XML, which ends at two dashes.
fn comment(text: &str) -> String {
    let mut out = text.replace("--", "- -");
    if out.ends_with('-') {
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_back_and_every_setting_is_in_it() {
        let text = site("/var/lib/basalt & co");
        let config =
            crate::config::read(Some((Path::new("hbase-site.xml"), text.as_bytes())), &[]).expect("it can be read");
        assert_eq!(config.text(settings::ROOT_DIRECTORY.key), Some("/var/lib/basalt & co"));
        assert_eq!(config.check(&rows()).expect("legal"), Vec::<String>::new());
        for row in rows() {
            assert!(text.contains(&format!("<name>{}</name>", row.key())), "{}", row.key());
        }
    }
}
