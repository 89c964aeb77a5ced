//! What a run came to, for people and for programs.

use crate::{Figures, Machine, Range, Scale};
use serde_json::{Value, json};

/// Others used more than this share of one core: the figure is marked.
const LOADED_CORES: f64 = 0.15;

/// The heading of the table on the terminal.
pub fn table_header() -> String {
    format!(
        "{:<32} {:>11} {:>11}  {:>11} {:>23}  {:>9} {:>9} {:>7}",
        "name", "ops/s", "wall ns/op", "CPU ns/op", "min..max", "MB/s", "MB/CPU-s", "others"
    )
}

/// One name's line in the table. A `!` says that others used the machine.
pub fn table_row(figures: &Figures) -> String {
    let cpu = figures.cpu_ns_per_op();
    let rate = |range: Option<Range>| range.map_or_else(|| "-".to_owned(), |r| format!("{:.1}", r.median));
    let others = figures.others_cores();
    let more = figures
        .more_cpu_percent()
        .map_or_else(String::new, |more| format!(" CPU {:+.1} % ({:+.1}..{:+.1})", more.median, more.min, more.max));
    format!(
        "{:<32} {:>11} {:>11}  {:>11} {:>23}  {:>9} {:>9} {:>5.2} {}{more}",
        figures.name,
        number(figures.ops_per_s().median),
        number(figures.wall_ns_per_op().median),
        format!("{}{}", number(cpu.median), if figures.server_cpu { "s" } else { "" }),
        format!("{}..{}", number(cpu.min), number(cpu.max)),
        rate(figures.mb_per_s()),
        rate(figures.mb_per_cpu_s()),
        others,
        if others > LOADED_CORES { "!" } else { "" },
    )
}

fn number(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Everything that was measured.
pub fn json(machine: &Machine, scale: &Scale, figures: &[Figures]) -> Value {
    let range = |r: Range| json!({ "median": r.median, "min": r.min, "max": r.max });
    let list: Vec<Value> = figures
        .iter()
        .map(|f| {
            json!({
                "name": f.name,
                "rounds": f.round_count(),
                "ops_per_s": range(f.ops_per_s()),
                "wall_ns_per_op": range(f.wall_ns_per_op()),
                "cpu_ns_per_op": range(f.cpu_ns_per_op()),
                "cpu_of": if f.server_cpu { "server" } else { "process" },
                "mb_per_s": f.mb_per_s().map(range),
                "mb_per_cpu_s": f.mb_per_cpu_s().map(range),
                "others_cores": f.others_cores(),
                "more_cpu_percent": f.more_cpu_percent().map(range),
            })
        })
        .collect();
    json!({
        "machine": {
            "processor": machine.processor,
            "cores": machine.cores,
            "memory_bytes": machine.memory_bytes,
            "kernel": machine.kernel,
        },
        "scale": { "rounds": scale.rounds, "round_ms": scale.round_ms, "rows": scale.rows },
        "figures": list,
    })
}
