//! What stands around the servers: clients, shell, gateways, pages, tools, extensions.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;

use super::formats::check_given;
use super::lists::Reasons;
use super::source::Source;
use super::{Item, Listing, Row, Standing, Surface, Tree};

/// Every surface of this kind.
pub fn all(tree: &Tree) -> anyhow::Result<Vec<Surface>> {
    Ok(vec![
        client_api(tree)?,
        request_setters(tree)?,
        shell_commands(tree)?,
        web_pages(tree)?,
        metrics(tree)?,
        super::gateways::rest_routes(tree)?,
        super::thrift::methods(tree)?,
        super::thrift::types(tree)?,
        super::tools::tools(tree)?,
        absent(
            tree,
            "coprocessor_hooks",
            "Coprocessor hooks",
            "Hooks of the observer interfaces. Java classes cannot be loaded into this process.",
        )?,
    ])
}

/// The literals of the server of pages, and the words in them; nothing when the binary does not start it.
fn page_words(tree: &Tree) -> BTreeSet<&str> {
    let wired = tree.of_crate("basalt").any(|source| source.plain.contains("web::"));
    let literals = tree.of_crate("web").filter(|_| wired).flat_map(Source::literals);
    literals.flat_map(|text| text.split(['"', '\\', ' ']).chain([text])).filter(|word| !word.is_empty()).collect()
}

/// Pages, and the beans that monitoring looks at.
fn web_pages(tree: &Tree) -> anyhow::Result<Surface> {
    let (words, names) = (page_words(tree), metric_words(tree));
    let inventory = tree.table("web_ui")?;
    let items = inventory.rows().map(|row| {
        let (path, what) = (row.get("path_or_bean"), row.get("parameters_or_metric"));
        if row.get("kind") != "metric" {
            let all: Vec<&str> = path.split(", ").collect();
            let known = all.iter().filter(|path| words.contains(*path)).count();
            let standing = match known {
                0 => Standing::Missing,
                n if n == all.len() => Standing::There,
                _ => Standing::Part,
            };
            return Item::new(row, "", path, standing);
        }
        if path.starts_with("java.lang:") {
            // Which attributes, and which beans are left out, is a test's: crates/basalt/tests/metrics.rs.
            let all = ["Memory", "Runtime", "OperatingSystem", "Threading"].map(|of| format!("java.lang:type={of}"));
            let standing =
                if all.iter().all(|bean| words.contains(&**bean)) { Standing::There } else { Standing::Missing };
            return Item::new(row, path, what, standing);
        }
        let metrics: Vec<&str> = what.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let known = metrics.iter().filter(|name| names.iter().any(|known| is_metric(name, known))).count();
        let standing = match known {
            0 => Standing::Missing,
            n if n == metrics.len() => Standing::There,
            _ => Standing::Part,
        };
        Item::new(row, path, what, standing)
    });
    Ok(surface_of_pages(
        "Web pages",
        "A page counts when the server of pages knows its path and the binary starts that server; a row of metrics when every \
         name in it is written, *in part* when some are.",
        items.collect(),
    ))
}

/// Literals of the files that register metrics, and of the server of pages.
fn metric_words(tree: &Tree) -> BTreeSet<&str> {
    let mut words = page_words(tree);
    let registering = tree.sources.iter().filter(|source| source.plain.contains("base::metrics"));
    words.extend(registering.flat_map(Source::literals));
    words
}

/// Whether what the table of pages calls `asked` (`Get_*`, `slow*Count`, `tag.x`, a metric of each table) is the metric called `known` where it
/// is registered, with a small first letter for histograms.
fn is_metric(asked: &str, known: &str) -> bool {
    let asked = asked.strip_prefix("tag.").unwrap_or(asked);
    if let Some((_, of)) = asked.split_once("Namespace_<ns>_table_<t>_") {
        return known.starts_with("Namespace_") && known.contains("_region_") == of.starts_with("region_");
    }
    let Some((before, after)) = asked.split_once('*') else { return asked == known };
    match before.strip_suffix('_') {
        Some(histogram) if after.is_empty() => histogram.eq_ignore_ascii_case(known),
        _ => known.starts_with(before) && known.ends_with(after),
    }
}

/// Metrics that nothing here could fill, or that HBase 2.6.4 does not show either.
const WITHOUT_SOURCE: &str = "tests/inventory/covered/metrics_without_source.txt";

/// Names of metrics: literals of the files that register some, and of the server of pages.
fn metrics(tree: &Tree) -> anyhow::Result<Surface> {
    let words = metric_words(tree);
    let inventory = tree.table("metrics")?;
    let mut without_source = Reasons::read(tree, WITHOUT_SOURCE)?;
    let left_out = without_source.len();
    let mut items = Vec::new();
    for row in inventory.rows() {
        let (source, name) = (row.get("source_interface"), row.get("metric_name"));
        // That none of them is shown is a test's: crates/basalt/tests/metrics.rs.
        if without_source.take(&format!("{source}: {name}")) {
            continue;
        }
        let standing = if words.contains(name) { Standing::There } else { Standing::Missing };
        items.push(Item::new(row, source, name, standing));
    }
    without_source.finish()?;
    let rule = format!(
        "A metric counts when a file that registers metrics has a literal of that name, or the server of pages writes it. Not counted: {left_out} \
         of core and common that nothing here could fill, or that HBase 2.6.4 does not show either, which `{WITHOUT_SOURCE}` lists with the reason \
         of each."
    );
    Ok(surface_of_pages("Metrics", &rule, items))
}

fn surface_of_pages(title: &'static str, rule: &str, items: Vec<Item>) -> Surface {
    let any = items.iter().any(|item| item.standing != Standing::Missing);
    let rule = if any { rule.to_owned() } else { format!("Not there yet. {rule}") };
    Surface { title, rule, items, listing: if any { Listing::CoreAndCommon } else { Listing::None } }
}

fn absent(tree: &Tree, table: &str, title: &'static str, what: &str) -> anyhow::Result<Surface> {
    let inventory = tree.table(table)?;
    let items = inventory.rows().map(|row| Item::new(row, "", "", Standing::Missing)).collect();
    Ok(Surface { title, rule: format!("Not there yet. {what}"), items, listing: Listing::None })
}

/// The text of every test below `dir` whose name ends in `extension`.
pub(super) fn test_text(tree: &Tree, dir: &str, extension: &str) -> anyhow::Result<String> {
    let mut dirs: Vec<PathBuf> = vec![tree.root.join(dir)];
    let mut files = Vec::new();
    while let Some(dir) = dirs.pop() {
        if !dir.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut text = String::new();
    for file in files {
        text.push_str(&std::fs::read_to_string(file)?);
        text.push('\n');
    }
    Ok(text)
}

/// Options of the shell, the word by which a test gives each, and the test.
const OPTIONS: [(&str, &str, &str); 3] = [
    (
        "-Dkey=value",
        "\"hbase.client.pause=10\"",
        "crates/basalt/tests/shell.rs::the_shell_starts_at_once_and_says_what_it_tried_where_no_cluster_is",
    ),
    ("-n / --noninteractive", "\"-n\"", "crates/basalt/tests/shell.rs::commands_pipes_and_exit_codes"),
    ("SCRIPT file argument", "script]", "crates/basalt/tests/shell.rs::an_administrators_script_runs_to_its_end"),
];

/// Commands of Basalt's shell that a script gives to it.
fn shell_commands(tree: &Tree) -> anyhow::Result<Surface> {
    let script = test_text(tree, "tests/interop/shell", "rb")? + &test_text(tree, "tests/shell", "rb")?;
    let known: BTreeSet<&str> = tree
        .of_crate("shell")
        .filter(|source| source.path.starts_with("crates/shell/src/commands/"))
        .flat_map(Source::literals)
        .collect();
    // These are the language's own, not commands.
    let built_in = ["exit", "help", "tools"];
    // Words of the script's code: not of its comments, nor in quotes.
    let code = script.lines().filter(|line| !line.trim_start().starts_with('#'));
    let unquoted = code.flat_map(|line| line.split('\'').step_by(2));
    let given: BTreeSet<&str> =
        unquoted.flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_'))).collect();
    let inventory = tree.table("shell_commands")?;
    let items = inventory.rows().map(|row| {
        let command = row.get("command");
        if let Some((_, word, owner)) = OPTIONS.iter().find(|(option, ..)| *option == command) {
            check_given(tree, owner, &[word]).with_context(|| format!("shell: {command}"))?;
            return Ok(Item::new(row, row.get("group"), command, Standing::There));
        }
        let standing = match known.contains(command) || built_in.contains(&command) {
            true if given.contains(command) => Standing::There,
            true => Standing::Part,
            false => Standing::Missing,
        };
        Ok(Item::new(row, row.get("group"), command, standing))
    });
    Ok(Surface {
        title: "Shell commands",
        rule: "A command counts when `basalt shell` has it and a script below `tests/interop/shell` (HBase's own shell runs it, too, and \
               both print the same) or `tests/shell` gives it; *in part* when no script does. An option counts when a test of the binary gives it. \
               HBase's shell works as well: see the methods above."
            .into(),
        items: items.collect::<anyhow::Result<_>>()?,
        listing: Listing::CoreAndCommon,
    })
}

/// Classes whose every setter has a case of its own.
const REQUESTS: [&str; 9] =
    ["Get", "Scan", "Put", "Delete", "Append", "Increment", "CheckAndMutate", "CheckAndMutate.Builder", "RowMutations"];

/// Setters of what a client sends: reads, writes and conditions.
fn request_setters(tree: &Tree) -> anyhow::Result<Surface> {
    let java = test_text(tree, "tests/interop/java", "java")?;
    let inventory = tree.table("client_api")?;
    let setters = inventory.rows().filter(|row| row.get("kind") == "setter" && REQUESTS.contains(&row.get("class")));
    let mut items = Vec::new();
    for row in setters {
        let name = format!("{}({})", row.get("method"), row.get("parameters"));
        let case = format!("\"{}.{name}\"", row.get("class"));
        if !java.contains(&case) {
            anyhow::bail!("no case under tests/interop/java is called {case}");
        }
        items.push(Item::new(row, row.get("class"), &name, Standing::There));
    }
    Ok(Surface {
        title: "Setters of requests",
        rule: "Every setter of Get, Scan, Put, Delete, Append, Increment, CheckAndMutate and RowMutations of the Java client has a \
               case of its own under `tests/interop/java` that is named after it, with its parameters. One without a case fails \
               `cargo xtask check`."
            .into(),
        items,
        listing: Listing::CoreAndCommon,
    })
}

/// Methods of the Java client that the interop tests call.
fn client_api(tree: &Tree) -> anyhow::Result<Surface> {
    let java = test_text(tree, "tests/interop/java", "java")?;
    let called = |row: Row<'_>| {
        let (class, name) = (row.get("class"), row.get("method"));
        let simple = class.rsplit('.').next().unwrap_or(class);
        let named = [format!(".{name}("), format!("::{name})"), format!("::{name},")];
        if name == simple {
            java.contains(&format!("new {name}("))
        } else {
            named.iter().any(|text| java.contains(text))
        }
    };
    let inventory = tree.table("client_api")?;
    let items = inventory.rows().map(|row| {
        let standing = if called(row) { Standing::There } else { Standing::Missing };
        Item::new(row, row.get("class"), row.get("method"), standing)
    });
    Ok(Surface {
        title: "Java client methods",
        rule: "The Java client is HBase's, unchanged. A method counts when a test under `tests/interop/java` calls or refers to one of that name \
               against Basalt (names are compared, not types, so overloads and namesakes count together). Others may work: see \
               the methods above."
            .into(),
        items: items.collect(),
        listing: Listing::Core,
    })
}
