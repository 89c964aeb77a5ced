//! Charts as inline SVG: bars, and lines on linear or logarithmic axes.

use std::fmt::Write;

use super::table::number;

/// Colours of the servers, in their order; told apart by most eyes, and in grey.
pub const COLOURS: &[&str] = &["#b0413e", "#2a6f97", "#7aa95c", "#8d6cab", "#c98a2b", "#555555"];

/// Colour of the server at `index`.
pub fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One bar.
pub struct Bar {
    /// Which colour.
    pub server: usize,
    /// How long.
    pub value: f64,
    /// Half of the line that shows the deviation.
    pub deviation: f64,
}

/// Groups of horizontal bars; each group has a scale of its own, since workloads differ by orders of magnitude.
pub fn bars(groups: &[(String, Vec<Bar>)]) -> String {
    const LABEL: f64 = 130.0;
    const WIDTH: f64 = 420.0;
    const HEIGHT: f64 = 14.0;
    const GAP: f64 = 10.0;
    let total: f64 = groups.iter().map(|(_, bars)| bars.len() as f64 * HEIGHT + GAP).sum();
    let mut svg = format!("<svg viewBox=\"0 0 {} {total}\" role=\"img\">", LABEL + WIDTH + 110.0);
    let mut y = 0.0;
    for (name, bars) in groups {
        let greatest = bars.iter().map(|b| b.value + b.deviation).fold(f64::MIN_POSITIVE, f64::max);
        let middle = y + bars.len() as f64 * HEIGHT / 2.0 + 4.0;
        let _ = write!(svg, "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>", LABEL - 8.0, escape(name));
        for bar in bars {
            let length = bar.value / greatest * WIDTH;
            let _ = write!(
                svg,
                "<rect x=\"{LABEL}\" y=\"{}\" width=\"{length:.1}\" height=\"{}\" fill=\"{}\"/>",
                y + 1.0,
                HEIGHT - 2.0,
                colour(bar.server)
            );
            if bar.deviation > 0.0 {
                let spread = bar.deviation / greatest * WIDTH;
                let _ = write!(
                    svg,
                    "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{m}\" y2=\"{m}\" stroke=\"#222\"/>",
                    LABEL + length - spread,
                    LABEL + length + spread,
                    m = y + HEIGHT / 2.0
                );
            }
            let end = LABEL + (bar.value + bar.deviation) / greatest * WIDTH + 5.0;
            let _ = write!(svg, "<text x=\"{end:.1}\" y=\"{}\">{}</text>", y + 11.0, number(bar.value));
            y += HEIGHT;
        }
        y += GAP;
    }
    svg + "</svg>"
}

/// One line.
pub struct Line {
    /// Which colour.
    pub server: usize,
    /// Points, x ascending.
    pub points: Vec<(f64, f64)>,
}

/// How an axis runs.
pub struct Axis {
    /// What it shows.
    pub name: &'static str,
    /// Whether equal ratios are equally long.
    pub logarithmic: bool,
    /// Where it is marked: position and words; for none, by powers of ten or in quarters.
    pub marks: Vec<(f64, &'static str)>,
}

/// Lines over one pair of axes.
pub fn lines(lines: &[Line], x: &Axis, y: &Axis) -> String {
    const LEFT: f64 = 70.0;
    const BOTTOM: f64 = 40.0;
    const WIDTH: f64 = 540.0;
    const HEIGHT: f64 = 220.0;
    let of = |pick: fn(&(f64, f64)) -> f64, axis: &Axis| {
        let values = lines.iter().flat_map(|l| l.points.iter().map(pick)).filter(|v| !axis.logarithmic || *v > 0.0);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (1.0, 10.0)
        } else if axis.logarithmic {
            (10_f64.powf(low.log10().floor()), 10_f64.powf(high.log10().ceil()).max(low * 10.0))
        } else {
            (low.min(0.0), if high > low.min(0.0) { high } else { low + 1.0 })
        }
    };
    let (xs, ys) = (of(|p| p.0, x), of(|p| p.1, y));
    let place = |value: f64, (low, high): (f64, f64), axis: &Axis| {
        if axis.logarithmic {
            (value.max(low).log10() - low.log10()) / (high.log10() - low.log10())
        } else {
            (value - low) / (high - low)
        }
    };
    let px = |value: f64| LEFT + place(value, xs, x) * WIDTH;
    let py = |value: f64| HEIGHT + 8.0 - place(value, ys, y) * HEIGHT;
    let mut svg = format!("<svg viewBox=\"0 0 {} {}\" role=\"img\">", LEFT + WIDTH + 20.0, HEIGHT + BOTTOM + 8.0);
    let grid = "stroke=\"#ddd\"";
    for (at, words) in marks(y, ys) {
        let at = py(at);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" {grid}/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{words}</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            at + 4.0
        );
    }
    for (at, words) in marks(x, xs) {
        let at = px(at);
        let _ = write!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"8\" y2=\"{}\" {grid}/><text x=\"{at:.1}\" y=\"{}\" \
             text-anchor=\"middle\">{words}</text>",
            HEIGHT + 8.0,
            HEIGHT + 22.0
        );
    }
    for line in lines {
        let points: Vec<String> = line.points.iter().map(|p| format!("{:.1},{:.1}", px(p.0), py(p.1))).collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>",
            points.join(" "),
            colour(line.server)
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"{LEFT}\" y=\"6\" dy=\"-1\" \
         text-anchor=\"end\">{}</text>",
        LEFT + WIDTH / 2.0,
        HEIGHT + BOTTOM,
        x.name,
        y.name
    );
    svg + "</svg>"
}

fn marks(axis: &Axis, (low, high): (f64, f64)) -> Vec<(f64, String)> {
    if !axis.marks.is_empty() {
        let inside = axis.marks.iter().filter(|(at, _)| (low..=high).contains(at));
        return inside.map(|(at, words)| (*at, (*words).to_owned())).collect();
    }
    if axis.logarithmic {
        let powers = low.log10().round() as i32..=high.log10().round() as i32;
        return powers.map(|p| 10_f64.powi(p)).map(|v| (v, number(v))).collect();
    }
    (0..=4).map(|n| low + (high - low) * f64::from(n) / 4.0).map(|v| (v, number(v))).collect()
}
