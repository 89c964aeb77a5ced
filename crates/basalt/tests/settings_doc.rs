//! `docs/operations/settings.md` is made from the rows of the settings, and this holds it to them.
//! `UPDATE_DOCS=1 cargo test -p basalt --test main settings_doc` writes it again.
#![allow(clippy::disallowed_methods, reason = "a test reads and writes a page of the tree")]

#[allow(dead_code, reason = "the binary's rows, of which only the lists are wanted here")]
#[path = "../src/settings.rs"]
pub mod settings;
#[allow(dead_code, reason = "the binary's table, of which only the lists are wanted here")]
#[path = "../src/unheeded.rs"]
mod unheeded;

use base::setting::SettingText;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
<!-- Generated: `UPDATE_DOCS=1 cargo test -p basalt --test main settings_doc`; the same test compares. Do not edit. -->
# Settings

Every key that Basalt reads. Keys are HBase's where HBase has one; those that begin with `basalt.` are its own. They come from
`hbase-site.xml` in the directory given by `--config DIR` (or `HBASE_CONF_DIR`), and from `-D key=value`, which wins. A value that
is not legal ends the start with a sentence that names it; one of HBase's keys that has no effect is named in the log at start, with
the reason (the last table here), and so is a key that nobody knows. `basalt config list` and `basalt config explain KEY` say the same
as this page.

Keys of regions and stores may also be set for a table or a family, in its CONFIGURATION or among its attributes. A family wins over its
table, and the table over the server.
";

/// `1048576` as `1 MiB`, `3600000` as `1 h`; nothing where that says no more.
fn in_words(value: &str, unit: &str) -> Option<String> {
    let number: u64 = value.parse().ok().filter(|n| *n > 0)?;
    let steps: &[(u64, &str)] = match unit {
        "bytes" => &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
        "ms" => &[(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")],
        _ => &[],
    };
    steps.iter().find(|(step, _)| number.is_multiple_of(*step)).map(|(step, name)| format!("{} {name}", number / step))
}

fn legal(row: &SettingText) -> String {
    if let Some(names) = row.legal {
        return names.to_owned();
    }
    if row.type_name == "bool" {
        return "true, false".to_owned();
    }
    let ends = [i64::MIN.to_string(), i64::MAX.to_string(), u64::MAX.to_string(), u32::MAX.to_string()];
    let unit = if matches!(row.unit, "" | "count" | "fraction") { String::new() } else { format!(" {}", row.unit) };
    match (ends.contains(&row.min), ends.contains(&row.max)) {
        (true, true) => format!("any number{unit}"),
        (false, true) => format!("{}{unit} or more", row.min),
        _ => format!("{} to {}{unit}", row.min, row.max),
    }
}

/// One line, with nothing that a table would take for its own.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn page() -> String {
    let mut out = String::from(HEAD);
    out.push_str("\n## Numbers and switches\n\n| key | default | legal | what it does |\n|---|---|---|---|\n");
    let rows = settings::rows().into_iter().map(base::SettingRow::describe);
    let (texts, others): (Vec<_>, Vec<_>) = rows.partition(|row| row.type_name == base::TextSetting::TYPE);
    for row in others {
        let default = match in_words(&row.default, row.unit) {
            Some(words) => format!("{} ({words})", row.default),
            None => row.default.clone(),
        };
        writeln!(out, "| `{}` | {default} | {} | {} |", row.key, legal(&row), cell(row.doc)).expect("a string");
    }
    out.push_str("\n## Texts\n\n| key | default | what it does |\n|---|---|---|\n");
    for row in texts {
        writeln!(out, "| `{}` | `{}` | {} |", row.key, row.default, cell(row.doc)).expect("a string");
    }
    out.push_str("\n## Keys of HBase's that have no effect\n\n| why | keys |\n|---|---|\n");
    for (reason, keys) in unheeded::UNHEEDED {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        writeln!(out, "| {} | {} |", cell(reason), keys.join(", ")).expect("a string");
    }
    out
}

/// No key of hbase-default.xml is ignored in silence.
#[test]
fn every_key_of_hbase_is_read_or_has_a_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/inventory/config_keys.csv");
    let inventory = std::fs::read_to_string(path).expect("the inventory");
    let rows = settings::rows();
    let is_read = |key: &str| rows.iter().chain(client::settings::ALL).any(|row| row.key() == key);
    // What starts and clients read by their own constants.
    let others = [client::settings::REGISTRY_KEY, client::settings::CODEC_KEY, client::settings::BOOTSTRAP_KEY];
    let silent: Vec<&str> = inventory
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .filter(|key| !is_read(key) && !others.contains(key) && unheeded::reason(key).is_none())
        .collect();
    assert!(silent.is_empty(), "neither read nor in unheeded.rs: {silent:?}");
    let both: Vec<&&str> = unheeded::UNHEEDED.iter().flat_map(|(_, keys)| *keys).filter(|key| is_read(key)).collect();
    assert!(both.is_empty(), "in unheeded.rs and read: {both:?}");
}

#[test]
fn what_has_no_effect_is_told_from_what_nobody_knows() {
    let mut config = base::Config::default();
    for key in ["hbase.hstore.compaction.kv.max", "hbase.client.retries.number", "hbase.regionserver.handler.cuont"] {
        config.set(key, "1");
    }
    let unread = unheeded::of(&config, &settings::rows()).expect("legal");
    assert_eq!(unread.unheeded.len(), 1);
    assert_eq!(unread.unheeded[0].0, "hbase.hstore.compaction.kv.max");
    assert!(unread.unheeded[0].1.contains("one by one"));
    assert_eq!(unread.unknown, ["hbase.regionserver.handler.cuont"]);
}

#[test]
fn the_page_of_settings_is_what_the_rows_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations/settings.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("docs/operations")).expect("the directory");
        std::fs::write(&path, &page).expect("the page");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/operations/settings.md is stale: run `UPDATE_DOCS=1 cargo test -p basalt --test main settings_doc`"
    );
}

#[test]
fn each_key_is_there_once_and_says_what_it_does() {
    let rows = settings::rows();
    for pair in rows.windows(2) {
        assert!(pair[0].key() < pair[1].key(), "{} is there twice", pair[0].key());
    }
    for row in rows {
        let text = row.describe();
        assert!(text.doc.len() > 20, "{} does not say what it does", text.key);
        row.check(&text.default).expect("the default is legal");
    }
}
