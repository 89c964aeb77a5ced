//! Tables that Apache Phoenix made, through `basalt-sql`: the cells of `sql/tests/phoenix/cells.txt` are put into a server of ours, Phoenix's
//! schemas imported, and what is asked then must be what Phoenix answered (`answers.txt`). `Make.java` there made both files.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::report::Outcome;
use crate::sql::{Record, Target, Want, answers, root};
use crate::{run, server};

const IMPORTS: [&str; 2] = [
    "IMPORT FOREIGN SCHEMA public FROM SERVER phoenix INTO public",
    "IMPORT FOREIGN SCHEMA shop EXCEPT (nothing) FROM SERVER phoenix INTO shop",
];

/// What is asked besides, one after the other: rows with `|` between values, `ERROR` and an SQLSTATE, or nothing where it need only work.
const ASKED: &[(&str, Option<&[&str]>)] = &[
    // Written twice is the same as written once.
    ("IMPORT FOREIGN SCHEMA shop LIMIT TO (orders, events) FROM SERVER phoenix INTO shop", None),
    ("IMPORT FOREIGN SCHEMA shop LIMIT TO (missing) FROM SERVER phoenix INTO shop", Some(&["ERROR 42P01"])),
    ("IMPORT FOREIGN SCHEMA nowhere FROM SERVER phoenix INTO shop", Some(&["ERROR 3F000"])),
    ("IMPORT FOREIGN SCHEMA shop FROM SERVER oracle INTO shop", Some(&["ERROR 42704"])),
    ("SELECT at FROM shop.orders WHERE n = -4", Some(&["2023-12-31 00:00:00"])),
    ("SELECT seen FROM plain WHERE id = 1", Some(&["2024-01-31 12:00:00.123"])),
    ("SELECT n FROM shop.orders WHERE at >= '2024-02-02' ORDER BY n", Some(&["5", "6"])),
    (
        "SELECT date_trunc('month', at), count(*) FROM shop.orders GROUP BY 1 ORDER BY 2, 1 LIMIT 1",
        Some(&["2023-12-01 00:00:00|1"]),
    ),
    ("SELECT k FROM shop.events WHERE a IS NULL AND c = 5", Some(&["b"])),
    ("SELECT a, e FROM shop.events WHERE k = 'a' AND day = '2024-01-31'", Some(&["text|xyz"])),
    // The same bytes as Phoenix's, seen as bytes.
    (
        "CREATE VIEW raw_events (k bytea PRIMARY KEY, \"0\".\"1\" bytea AS one, \"F\".\"1\" bytea AS two) WITH (hbase_table = 'SHOP.EVENTS')",
        None,
    ),
    (
        "INSERT INTO shop.events (k, day, a, b, c, d, e, g) VALUES ('y', '2024-01-31', 'text', 1, 2, 3.5, 'xyz', 7), \
         ('z', '2024-01-31', NULL, NULL, 5, NULL, 'q', NULL)",
        None,
    ),
    (
        "SELECT count(*), count(DISTINCT one), count(DISTINCT two) FROM raw_events WHERE k < '\\x62'::bytea OR k >= '\\x79'::bytea AND k < '\\x7a'::bytea",
        Some(&["2|1|1"]),
    ),
    (
        "SELECT count(*), count(DISTINCT one), count(DISTINCT two) FROM raw_events WHERE k >= '\\x62'::bytea AND k < '\\x63'::bytea OR k >= '\\x7a'::bytea",
        Some(&["2|1|1"]),
    ),
    (
        "SELECT k, a, b, c, d, e, g FROM shop.events WHERE k >= 'y' ORDER BY k",
        Some(&["y|text|1|2|3.5|xyz|7", "z|NULL|NULL|5|NULL|q|NULL"]),
    ),
    ("UPDATE shop.events SET a = 'b'", Some(&["ERROR 0A000"])),
    ("DELETE FROM shop.events WHERE k >= 'y'", None),
    ("SELECT count(*) FROM shop.events", Some(&["4"])),
    ("INSERT INTO indexed VALUES (3, 'v', 'w')", Some(&["ERROR 0A000"])),
    ("DELETE FROM indexed WHERE id = 1", Some(&["ERROR 0A000"])),
    ("INSERT INTO shop.eu_orders (host, domain, at, n) VALUES ('NA', 'x', '2024-01-01', 1)", Some(&["ERROR 0A000"])),
    ("ALTER TABLE shop.orders ADD COLUMN more text", Some(&["ERROR 0A000"])),
    (
        "INSERT INTO shop.orders (host, domain, at, n, core, \"Note\") VALUES ('EU', 'new', '2024-05-05 01:02:03', 7, 70, 'x')",
        None,
    ),
    ("UPDATE shop.orders SET core = core + 1 WHERE domain = 'new'", None),
    ("SELECT n, core, \"Note\", at FROM shop.eu_orders WHERE domain = 'new'", Some(&["7|71|x|2024-05-05 01:02:03"])),
    ("SELECT n, core FROM shop.large ORDER BY core DESC", Some(&["7|71", "6|60", "-4|40"])),
    ("SELECT count(*), max(core) FROM shop.large", Some(&["3|71"])),
    ("DELETE FROM shop.eu_orders WHERE n = 7", None),
    ("SELECT count(*) FROM shop.orders", Some(&["6"])),
    ("SELECT id FROM lists ORDER BY id", Some(&["1", "2"])),
    // The keys are Phoenix's own: these rows are there already.
    ("INSERT INTO tagged VALUES ('a', array['x'], 20), ('b', array['x', NULL, 'zz'], 30)", None),
    ("INSERT INTO counted VALUES ('a', array[1, -2, 3], 10)", None),
    ("SELECT host, n FROM tagged ORDER BY n", Some(&["a|1", "a|20", "b|30"])),
    ("SELECT host, n, numbers[2] FROM counted ORDER BY n", Some(&["b|2|NULL", "a|10|-2"])),
    ("DROP VIEW shop.large", None),
    ("SELECT count(*) FROM shop.large", Some(&["ERROR 42P01"])),
];

/// Puts the cells, imports, asks.
pub fn compare(target: &Target, zookeeper: &str, dir: &Path) -> anyhow::Result<Outcome> {
    let files = root().join("tests/phoenix");
    let read = |name: &str| std::fs::read_to_string(files.join(name)).with_context(|| name.to_owned());
    load(&read("cells.txt")?, zookeeper, dir)?;
    let mut asked: Vec<(String, Option<Vec<String>>)> = IMPORTS.map(|sql| (sql.to_owned(), None)).to_vec();
    for line in read("answers.txt")?.lines() {
        match line.strip_prefix("query ") {
            Some(sql) => asked.push((sql.to_owned(), Some(Vec::new()))),
            None => {
                asked.last_mut().and_then(|(_, rows)| rows.as_mut()).context("rows of no query")?.push(line.to_owned())
            }
        }
    }
    let owned = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect();
    asked.extend(ASKED.iter().map(|(sql, rows)| ((*sql).to_owned(), rows.map(owned))));
    let record = |(sql, _): &(String, _)| Record::of_ours(sql);
    let records: Vec<Record> = asked.iter().map(record).collect();
    let said = answers(target, &records, &dir.join("phoenix.out"))?;
    let mut outcome = Outcome::default();
    for ((sql, wanted), said) in asked.iter().zip(said) {
        let is_right = match wanted {
            Some(rows) => rows.len() == said.len() && rows.iter().zip(&said).all(|(a, b)| is_same_row(a, b)),
            None => !said.iter().any(|line| line.starts_with("ERROR")),
        };
        if is_right {
            outcome.passed += 1;
        } else {
            outcome.failures.push(format!("Phoenix's tables: {sql}: {said:?} instead of {wanted:?}"));
        }
    }
    Ok(outcome)
}

/// Numbers may have other zeros behind the point; truths are `true` to Java and `t` to psql.
fn is_same_row(a: &str, b: &str) -> bool {
    let is_same = |a: &str, b: &str| {
        let number = |text: &str| text.parse::<f64>().ok();
        a == b || matches!((a, b), ("true", "t") | ("false", "f")) || (number(a).is_some() && number(a) == number(b))
    };
    a.split('|').count() == b.split('|').count() && a.split('|').zip(b.split('|')).all(|(a, b)| is_same(a, b))
}

/// Creates the tables and puts the cells, by a script of the shell.
fn load(cells: &str, zookeeper: &str, dir: &Path) -> anyhow::Result<()> {
    let escaped = |hex: &str| -> anyhow::Result<String> {
        if hex == "-" {
            return Ok(String::new());
        }
        let bytes = hex.as_bytes().chunks(2).map(|pair| Ok(format!("\\x{}", std::str::from_utf8(pair)?)));
        bytes.collect()
    };
    let mut script = String::new();
    let mut table = "";
    for line in cells.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[..] {
            ["table", name, ref families @ ..] => {
                table = name;
                let families: Vec<String> = families.iter().map(|family| format!("'{family}'")).collect();
                script.push_str(&format!("create '{name}', {}\n", families.join(", ")));
            }
            [row, family, qualifier, timestamp, value] => {
                let (row, family, qualifier) = (escaped(row)?, escaped(family)?, escaped(qualifier)?);
                let value = escaped(value)?;
                script.push_str(&format!(
                    "put '{table}', \"{row}\", \"{family}:{qualifier}\", \"{value}\", {timestamp}\n"
                ));
            }
            _ => bail!("no cell of Phoenix's: {line}"),
        }
    }
    let file = dir.join("phoenix-cells.rb");
    std::fs::write(&file, script)?;
    let mut shell = Command::new(server::binary());
    shell.args(["shell", "-n", "-q", zookeeper]).arg(&file);
    run::must("basalt shell", shell.stdout(std::fs::File::create(dir.join("phoenix-cells.out"))?))
}

impl Record {
    /// A statement or query that only ours is asked.
    fn of_ours(sql: &str) -> Record {
        Record { line: 0, want: Want::Statement { basalt: true, postgres: false }, sql: sql.to_owned() }
    }
}
