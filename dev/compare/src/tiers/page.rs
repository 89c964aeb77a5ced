//! The matrix, as one HTML file that fetches nothing, and as text.

use std::fmt::Write;

use super::{BASE, MEDIA, OF_HBASE, PLACED, WORKLOADS, hbase_as, of_cell};
use crate::compare::chart::escape;
use crate::compare::figures::{Comparison, Figure};

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#fff;--fg:#222;--soft:#5c6370;--line:#dfe2e6;--better:#2a78d6;--worse:#d06b1f}\
@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e6e8eb;--soft:#9aa3ae;--line:#2c323a;--better:#5aa0f2;--worse:#e08b45}}\
body{font:14px/1.45 system-ui,sans-serif;background:var(--bg);color:var(--fg);max-width:960px;margin:2em auto;padding:0 1em}\
h1{font-size:1.6em}h2{margin-top:2em;border-bottom:1px solid var(--line)}\
.wide{overflow-x:auto}table{border-collapse:collapse}caption{text-align:left;color:var(--soft);padding:.4em 0}\
td,th{padding:.35em .9em;border-bottom:1px solid var(--line);text-align:right;font-variant-numeric:tabular-nums}\
td:first-child,th:first-child{text-align:left}th{font-weight:600}small{color:var(--soft);display:block}\
td.better{box-shadow:inset 4px 0 var(--better)}td.worse{box-shadow:inset 4px 0 var(--worse)}\
p{max-width:70ch}p.note{color:var(--soft)}";

/// What is shown, whether more of it is better, and its unit.
const FIGURES: [(Figure, &str, bool, &str); 4] = [
    (Figure::Operations, "Operations per second", true, ""),
    (Figure::P50, "Latency, median", false, " ms"),
    (Figure::P99, "Latency, 99th percentile", false, " ms"),
    (Figure::Longest, "Longest wait", false, " ms"),
];
/// From so much of a difference on a cell is marked.
const MARKED: f64 = 1.1;

fn heading(medium: &str, comparison: &Comparison) -> String {
    match medium {
        "ram" => "memory".to_owned(),
        "ssd" => "flash".to_owned(),
        _ => format!("slow: {} a call", comparison.settings.get("delay").map_or("?", String::as_str)),
    }
}

fn row_name(kind: usize) -> &'static str {
    ["WAL", "flush", "compaction"][kind]
}

/// In the unit that is shown.
fn value(comparison: &Comparison, arrangement: &str, workload: &str, figure: Figure) -> Option<f64> {
    let of = |m: &&crate::compare::figures::Measured| m.server == arrangement && m.workload == workload;
    let value = comparison.measured.iter().find(of)?.value(figure)?;
    // Latencies are in microseconds.
    Some(if matches!(figure, Figure::Operations) { value } else { value / 1000.0 })
}

fn shown(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The arrangements of a row: the three cells of the matrix.
fn rows() -> Vec<(&'static str, [String; 3])> {
    let mut rows: Vec<(&'static str, [String; 3])> =
        (0..PLACED.len()).map(|kind| (row_name(kind), MEDIA.map(|medium| of_cell(kind, medium)))).collect();
    rows.push(("all three", MEDIA.map(|medium| format!("all-{medium}"))));
    rows
}

/// The whole page.
pub(super) fn html(comparison: &Comparison) -> String {
    let mut out = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Tiers</title><style>",
    );
    out.push_str(STYLE);
    out.push_str("</style></head><body><h1>Logs, flushes and compactions on memory, flash and a slow disk</h1>");
    let m = &comparison.machine;
    let _ = write!(
        out,
        "<p>{}. {}, {} processors, {} GiB, Linux {}.</p>\
         <p>In each cell what the row names lies on the medium of the column, everything else on flash. A slow disk is a directory on flash whose \
         calls take longer. The load generator runs on the same machine. Below each figure: how many times that of all on flash it is; a bar marks \
         a difference of a tenth or more.</p><p class=\"note\">",
        escape(&comparison.begun),
        escape(&m.processor),
        m.cores,
        m.memory_bytes >> 30,
        escape(&m.kernel)
    );
    let settings: Vec<String> = comparison.settings.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    out.push_str(&escape(&settings.join(" · ")));
    out.push_str("</p>");
    for (workload, title) in WORKLOADS {
        let _ = write!(out, "<h2>{title}</h2>");
        for (figure, caption, is_more_better, unit) in FIGURES {
            matrix(&mut out, comparison, workload, (figure, caption, is_more_better, unit));
        }
    }
    hbase(&mut out, comparison);
    let others: Vec<f64> = comparison.measured.iter().map(|m| m.others_cores).collect();
    if !others.is_empty() {
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        let _ = write!(
            out,
            "<p class=\"note\">Others kept {mean:.2} of {} processors busy meanwhile: the more, the less these figures say.</p>",
            m.cores
        );
    }
    if !comparison.failures.is_empty() {
        out.push_str("<h2>What failed</h2><ul>");
        for failure in &comparison.failures {
            let _ = write!(out, "<li>{}</li>", escape(failure));
        }
        out.push_str("</ul>");
    }
    out.push_str("<h2>Arrangements</h2><ul>");
    for server in &comparison.servers {
        let _ = write!(out, "<li><b>{}</b>: {}</li>", escape(&server.name), escape(&server.about));
    }
    out + "</ul></body></html>\n"
}

/// HBase where it was arranged alike, beside Basalt.
fn hbase(out: &mut String, comparison: &Comparison) {
    out.push_str(
        "<h2>Apache HBase</h2><p>On a local disk HBase places logs alone (<code>hbase.wal.dir</code>); flushed and compacted files follow HDFS's storage \
         policies, and this benchmark starts HBase without HDFS. Of the arrangements above it can be given three. It acknowledges what the operating \
         system has, as it does by default.</p>",
    );
    let of = |name: &str, workload: &str, figure| value(comparison, name, workload, figure);
    for (workload, title) in WORKLOADS {
        let measured = |name: &&&str| of(&hbase_as(name), workload, Figure::Operations).is_some();
        let arrangements: Vec<&&str> = OF_HBASE.iter().filter(measured).collect();
        if arrangements.is_empty() {
            continue;
        }
        let _ = write!(out, "<div class=\"wide\"><table><caption>{title}: HBase / Basalt</caption><tr><th></th>");
        FIGURES.iter().for_each(|(_, caption, ..)| _ = write!(out, "<th>{caption}</th>"));
        out.push_str("</tr>");
        for name in arrangements {
            let _ = write!(out, "<tr><th>{name}</th>");
            for (figure, _, _, unit) in FIGURES {
                let both = [hbase_as(name), (*name).to_owned()].map(|name| of(&name, workload, figure));
                let both = both.map(|value| value.map_or_else(|| "&ndash;".to_owned(), shown));
                let _ = write!(out, "<td>{} / {}{unit}</td>", both[0], both[1]);
            }
            out.push_str("</tr>");
        }
        out.push_str("</table></div>");
    }
}

fn matrix(
    out: &mut String,
    comparison: &Comparison,
    workload: &str,
    (figure, caption, is_more_better, unit): (Figure, &str, bool, &str),
) {
    let base = value(comparison, BASE, workload, figure);
    let _ = write!(out, "<div class=\"wide\"><table><caption>{caption}</caption><tr><th></th>");
    for medium in MEDIA {
        let _ = write!(out, "<th>{}</th>", escape(&heading(medium, comparison)));
    }
    out.push_str("</tr>");
    for (name, arrangements) in rows() {
        let _ = write!(out, "<tr><th>{name}</th>");
        for arrangement in &arrangements {
            let Some(value) = value(comparison, arrangement, workload, figure) else {
                out.push_str("<td>&ndash;</td>");
                continue;
            };
            let ratio = base.filter(|base| *base > 0.0).map(|base| value / base);
            let class = match ratio {
                Some(ratio) if ratio >= MARKED => {
                    if is_more_better {
                        "better"
                    } else {
                        "worse"
                    }
                }
                Some(ratio) if ratio <= 1.0 / MARKED => {
                    if is_more_better {
                        "worse"
                    } else {
                        "better"
                    }
                }
                _ => "",
            };
            let _ = write!(out, "<td class=\"{class}\">{}{unit}", shown(value));
            if let Some(ratio) = ratio.filter(|_| arrangement != BASE) {
                let _ = write!(out, "<small>{ratio:.2}&times;</small>");
            }
            out.push_str("</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
}

/// The matrix of operations per second, for a terminal.
pub(super) fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for (workload, title) in WORKLOADS {
        let _ = writeln!(
            out,
            "{:<28}{:>12}{:>12}{:>22}",
            format!("{title}, ops/s"),
            "memory",
            "flash",
            heading("slow", comparison)
        );
        for (name, arrangements) in rows() {
            let cell = |arrangement: &String| {
                value(comparison, arrangement, workload, Figure::Operations).map_or_else(|| "-".to_owned(), shown)
            };
            let [ram, ssd, slow] = &arrangements;
            let _ = writeln!(out, "{name:<28}{:>12}{:>12}{:>22}", cell(ram), cell(ssd), cell(slow));
        }
        for name in OF_HBASE {
            if let Some(operations) = value(comparison, &hbase_as(name), workload, Figure::Operations) {
                let _ = writeln!(out, "{:<28}{:>12}", hbase_as(name), shown(operations));
            }
        }
    }
    for failure in &comparison.failures {
        let _ = writeln!(out, "failed: {failure}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figures::{Measured, ServerInfo};

    #[test]
    fn the_matrix_has_each_arrangement_in_its_place_and_asks_nobody() {
        let measured = |server: &str, workload: &str, operations| {
            let mut m = Measured { workload: workload.into(), server: server.into(), run: 1, ..Measured::default() };
            (m.operations, m.seconds) = (operations, 1.0);
            (m.latency.count, m.latency.p99_ns) = (operations, 5_000_000);
            m
        };
        let comparison = Comparison {
            servers: vec![ServerInfo { name: BASE.into(), about: "<about>".into() }],
            measured: vec![
                measured(BASE, "ycsb-load", 1000),
                measured("wal-ram", "ycsb-load", 1500),
                measured("flush-slow", "ycsb-load", 400),
                measured("all-ram", "ycsb-a", 7777),
                measured("hbase all-ram", "ycsb-a", 3333),
            ],
            settings: [("delay".to_owned(), "10 ms".to_owned())].into(),
            failures: vec!["a < b".to_owned()],
            ..Comparison::default()
        };
        let page = html(&comparison);
        for want in [
            "<tr><th>WAL</th><td class=\"better\">1500<small>1.50&times;</small></td><td class=\"\">1000</td><td>&ndash;</td></tr>",
            "<td class=\"worse\">400<small>0.40&times;</small></td>",
            "5.00 ms",
            "7777",
            "slow: 10 ms a call",
            "&lt;about&gt;",
            "a &lt; b",
            "prefers-color-scheme:dark",
            "hbase.wal.dir",
            "<tr><th>all-ram</th><td>3333 / 7777</td>",
        ] {
            assert!(page.contains(want), "{want}");
        }
        assert!(!["http:", "https:", "<script", "<link", "url("].iter().any(|word| page.contains(word)), "one file");
        let said = text(&comparison);
        assert!(said.contains("7777") && said.contains("3333") && said.contains("failed: a < b"), "{said}");
    }
}
