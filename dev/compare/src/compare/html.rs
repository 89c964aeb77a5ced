//! The report as one HTML file that fetches nothing.

use std::fmt::Write;

use super::chart::{Axis, Bar, Line, bars, colour, escape, lines};
use super::figures::{Comparison, Figure, Measured};
use super::published::{ABOUT, PUBLISHED};
use super::table::{about, head, number, rows, target_cells, target_rows};

const STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;color:#222;max-width:1100px;margin:2em auto;padding:0 1em}\
    h1{font-size:1.6em}h2{margin-top:2em;border-bottom:1px solid #ddd}h3{margin:1.4em 0 .2em}\
    table{border-collapse:collapse;font-size:12.5px}td,th{padding:3px 8px;border-bottom:1px solid #e4e4e4;text-align:right}\
    td:first-child,th:first-child{text-align:left}.missed{background:#fbe9e7}.met{background:#edf6ea}\
    svg{width:100%;max-width:760px;font:11px system-ui,sans-serif}.key span{display:inline-block;margin-right:1.4em}\
    .key i{display:inline-block;width:.9em;height:.9em;margin-right:.4em;vertical-align:-.1em}\
    .wide{overflow-x:auto}p.note{color:#555;max-width:70em}";

/// The whole page.
pub fn page(comparison: &Comparison) -> String {
    let mut out = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Servers compared</title><style>",
    );
    out.push_str(STYLE);
    out.push_str("</style></head><body><h1>Servers compared</h1>");
    intro(&mut out, comparison);
    targets(&mut out, comparison);
    section(
        &mut out,
        comparison,
        "Server CPU per operation",
        "Microseconds of the server's own CPU time, from the kernel; less is better.",
        Figure::CpuPerOperation,
    );
    section(
        &mut out,
        comparison,
        "Operations per second",
        "All clients together, on the same processors as the server; more is better.",
        Figure::Operations,
    );
    latencies(&mut out, comparison);
    over_time(&mut out, comparison);
    out.push_str(
        "<h2>All figures</h2><p class=\"note\">Means over the runs; from four runs on without the best and the worst. \
        ± is the standard deviation.</p><div class=\"wide\">",
    );
    grid(&mut out, &head().into_iter().map(str::to_owned).collect::<Vec<_>>(), rows(comparison), |_| "");
    out.push_str("</div>");
    published(&mut out);
    if !comparison.failures.is_empty() {
        out.push_str("<h2>What failed</h2><ul>");
        for failure in &comparison.failures {
            let _ = write!(out, "<li>{}</li>", escape(failure));
        }
        out.push_str("</ul>");
    }
    out + "</body></html>\n"
}

fn intro(out: &mut String, comparison: &Comparison) {
    let m = &comparison.machine;
    let _ = write!(
        out,
        "<p>{}. {}, {} processors, {} GiB, Linux {}.</p><p class=\"key\">",
        escape(&comparison.begun),
        escape(&m.processor),
        m.cores,
        m.memory_bytes >> 30,
        escape(&m.kernel)
    );
    key(out, comparison);
    out.push_str("</p><ul>");
    for server in &comparison.servers {
        let _ = write!(out, "<li><b>{}</b>: {}</li>", escape(&server.name), escape(&server.about));
    }
    out.push_str("</ul><ul>");
    for (name, value) in &comparison.settings {
        let _ = write!(out, "<li>{}: {}</li>", escape(name), escape(value));
    }
    out.push_str("</ul>");
    let others: Vec<f64> = comparison.measured.iter().filter(|m| m.operations > 0).map(|m| m.others_cores).collect();
    if !others.is_empty() {
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        let worst = others.iter().copied().fold(0.0, f64::max);
        let _ = write!(
            out,
            "<p class=\"note\">While this was measured, others (and the kernel on nobody's account) kept {mean:.2} of {} \
             processors busy on average, {worst:.2} at worst. The more, the less throughput and latency mean; CPU per \
             operation suffers least.</p>",
            m.cores
        );
    }
}

fn key(out: &mut String, comparison: &Comparison) {
    for (n, server) in comparison.servers.iter().enumerate() {
        let _ = write!(out, "<span><i style=\"background:{}\"></i>{}</span>", colour(n), escape(&server.name));
    }
}

fn grid(out: &mut String, head: &[String], rows: Vec<Vec<String>>, class: impl Fn(&[String]) -> &'static str) {
    out.push_str("<table><tr>");
    for cell in head {
        let _ = write!(out, "<th>{}</th>", escape(cell));
    }
    out.push_str("</tr>");
    for row in rows {
        let _ = write!(out, "<tr class=\"{}\">", class(&row));
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
}

fn targets(out: &mut String, comparison: &Comparison) {
    let outcomes = target_rows(comparison);
    let Some(baseline) = comparison.servers.first().filter(|_| !outcomes.is_empty()) else { return };
    let met = outcomes.iter().filter(|o| o.met == Some(true)).count();
    let judged = outcomes.iter().filter(|o| o.met.is_some()).count();
    let _ = write!(out, "<h2>Targets</h2><p>{met} of {judged} met; what is missed is shown as missed.</p>");
    let head = ["figure", "goal", &baseline.name, "ours", "reached", ""].map(str::to_owned);
    let cells = outcomes.iter().map(target_cells).collect();
    grid(out, &head, cells, |row| match row.last().map(String::as_str) {
        Some("met") => "met",
        Some("missed") => "missed",
        _ => "",
    });
}

fn section(out: &mut String, comparison: &Comparison, title: &str, note: &str, figure: Figure) {
    let mut groups = Vec::new();
    for workload in comparison.workloads() {
        let of = |(n, name): (usize, &str)| {
            let spread = comparison.spread(name, workload, figure)?;
            Some(Bar { server: n, value: spread.mean, deviation: spread.deviation })
        };
        let bars: Vec<Bar> = comparison.servers.iter().map(|s| s.name.as_str()).enumerate().filter_map(of).collect();
        if !bars.is_empty() {
            groups.push((workload.to_owned(), bars));
        }
    }
    if groups.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<h2>{title}</h2><p class=\"note\">{note} Each workload has a scale of its own.</p><p class=\"key\">"
    );
    key(out, comparison);
    let _ = write!(out, "</p>{}", bars(&groups));
}

/// The first run of each server that played `workload`.
fn first_runs<'a>(comparison: &'a Comparison, workload: &str) -> Vec<(usize, &'a Measured)> {
    let find = |name: &str| comparison.measured.iter().find(|m| m.workload == workload && m.server == name);
    comparison.servers.iter().enumerate().filter_map(|(n, s)| Some((n, find(&s.name)?))).collect()
}

fn latencies(out: &mut String, comparison: &Comparison) {
    out.push_str("<h2>Latency</h2><p class=\"note\">First run of each. Further right, rarer operations: 99.9 is one in a thousand. \
        At a fixed rate latency counts from when an operation was due.</p><p class=\"key\">");
    key(out, comparison);
    out.push_str("</p>");
    let x = Axis {
        name: "percentile",
        logarithmic: true,
        marks: vec![
            (1.0, "0"),
            (2.0, "50"),
            (10.0, "90"),
            (100.0, "99"),
            (1e3, "99.9"),
            (1e4, "99.99"),
            (1e5, "99.999"),
        ],
    };
    let y = Axis { name: "ms", logarithmic: true, marks: Vec::new() };
    for workload in comparison.workloads() {
        let of = |(server, m): (usize, &Measured)| {
            let rarity = |percent: f64| (100.0 / (100.0 - percent).max(0.000_1)).min(1e6);
            let points: Vec<(f64, f64)> =
                m.curve.iter().filter(|(p, _)| *p < 100.0).map(|(p, ns)| (rarity(*p), *ns as f64 / 1e6)).collect();
            (points.len() > 1).then_some(Line { server, points })
        };
        let drawn: Vec<Line> = first_runs(comparison, workload).into_iter().filter_map(of).collect();
        if !drawn.is_empty() {
            let _ = write!(
                out,
                "<h3>{workload}</h3><p class=\"note\">{}</p>{}",
                escape(about(workload)),
                lines(&drawn, &x, &y)
            );
        }
    }
}

fn over_time(out: &mut String, comparison: &Comparison) {
    let names = ["mixed", "fixed-rate", "put-32"];
    if !names.iter().any(|w| comparison.workloads().contains(w)) {
        return;
    }
    out.push_str("<h2>Operations over time</h2><p class=\"note\">Per tenth of a second, first run of each; a stall is a gap.</p>");
    let x = Axis { name: "seconds", logarithmic: false, marks: Vec::new() };
    let y = Axis { name: "ops/s", logarithmic: false, marks: Vec::new() };
    for workload in names {
        let runs = first_runs(comparison, workload);
        let of = |(server, m): &(usize, &Measured)| {
            let points = m.tenths.iter().enumerate().map(|(n, ops)| (n as f64 / 10.0, *ops as f64 * 10.0)).collect();
            Line { server: *server, points }
        };
        if runs.is_empty() {
            continue;
        }
        let _ = write!(out, "<h3>{workload}</h3>{}<ul>", lines(&runs.iter().map(of).collect::<Vec<_>>(), &x, &y));
        for (n, m) in runs {
            let _ = write!(
                out,
                "<li>{}: longest time without an operation {} ms, slowest operation {} ms</li>",
                escape(&comparison.servers[n].name),
                number(m.longest_gap_ms),
                number(m.latency.max_ns as f64 / 1e6)
            );
        }
        out.push_str("</ul>");
    }
}

fn published(out: &mut String) {
    let _ = write!(out, "<h2>For scale: figures that the field quotes</h2><p class=\"note\">{ABOUT}</p>");
    let head =
        ["per second and server, 1000-byte values", "Bigtable (paper, 2006)", "HBase 0.20 (2009)"].map(str::to_owned);
    let row = |(name, bigtable, hbase): &(&str, u32, u32)| {
        vec![(*name).to_owned(), number(f64::from(*bigtable)), number(f64::from(*hbase))]
    };
    grid(out, &head, PUBLISHED.iter().map(row).collect(), |_| "");
}
