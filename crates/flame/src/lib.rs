//! `perf script`'s stacks folded to one line each, and drawn as a flame graph: one SVG file, no script in it.
//!
//! Must not know: how stacks are recorded. Follows: Brendan Gregg's FlameGraph (stackcollapse-perf.pl, flamegraph.pl).

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Samples per stack, frames from the root to the leaf and joined by `;`, as every tool for flame graphs reads them.
pub type Folded = BTreeMap<String, u64>;

/// Folds what `perf script` prints, line by line: a header line per sample, its frames from the leaf up, an empty line.
#[derive(Debug, Default)]
pub struct Folder {
    folded: Folded,
    command: String,
    frames: Vec<String>,
}

impl Folder {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            self.end_of_sample();
        } else if line.starts_with(char::is_whitespace) {
            self.frames.push(frame_name(line).to_owned());
        } else {
            // "command pid/tid time: period event:"; a command may hold blanks
            let words: Vec<&str> = line.split_whitespace().collect();
            let end = words.iter().position(|w| w.chars().all(|c| c.is_ascii_digit() || c == '/')).unwrap_or(1);
            self.command = words[..end.clamp(1, words.len())].join(" ").replace(';', ":");
        }
    }

    fn end_of_sample(&mut self) {
        if !self.command.is_empty() {
            let root = std::mem::take(&mut self.command);
            let path = self.frames.iter().rev().fold(root, |path, frame| path + ";" + frame);
            *self.folded.entry(path).or_default() += 1;
        }
        self.frames.clear();
    }

    /// All stacks.
    pub fn finish(mut self) -> Folded {
        self.end_of_sample();
        self.folded
    }
}

/// Folds the whole of what `perf script` prints.
pub fn fold(script: &str) -> Folded {
    let mut folder = Folder::default();
    script.lines().for_each(|line| folder.line(line));
    folder.finish()
}

/// `   55d0 region::scan::next+0x1f (/path/basalt)` -> `region::scan::next`.
fn frame_name(line: &str) -> &str {
    let line = line.trim();
    let after_address = line.split_once(' ').map_or(line, |(_, rest)| rest);
    let name = after_address.rsplit_once(" (").map_or(after_address, |(name, _)| name);
    name.rsplit_once("+0x").map_or(name, |(name, _)| name)
}

#[derive(Default)]
struct Node<'a> {
    samples: u64,
    children: BTreeMap<&'a str, Node<'a>>,
}

const WIDTH: f64 = 1600.0;
const ROW: f64 = 17.0;
const TOP: f64 = 30.0;

/// Draws it: width is the share of samples, the root is below. Boxes narrower than a fifth of a pixel are left out.
pub fn draw(title: &str, folded: &Folded) -> String {
    let mut root = Node::default();
    for (path, &samples) in folded {
        root.samples += samples;
        let mut node = &mut root;
        for frame in path.split(';') {
            node = node.children.entry(frame).or_default();
            node.samples += samples;
        }
    }
    let deepest = folded.keys().map(|path| path.matches(';').count() + 2).max().unwrap_or(1);
    let height = TOP + ROW * deepest as f64 + 10.0;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#fffdf8\"/><text x=\"8\" y=\"19\">{} ({} samples)</text>",
        escape(title),
        root.samples
    );
    boxes(&mut svg, "all", &root, root.samples.max(1), 0.0, height - ROW - 5.0);
    svg.push_str("</svg>\n");
    svg
}

fn boxes(svg: &mut String, name: &str, node: &Node<'_>, all: u64, x: f64, y: f64) {
    let width = WIDTH * node.samples as f64 / all as f64;
    if width < 0.2 {
        return;
    }
    let hue = name.bytes().fold(7_u32, |hash, b| hash.wrapping_mul(31).wrapping_add(u32::from(b))) % 50;
    let share = 100.0 * node.samples as f64 / all as f64;
    let _ = write!(
        svg,
        "<g><title>{} {share:.2} % ({})</title><rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{:.1}\" \
         fill=\"hsl({hue},75%,68%)\"/>",
        escape(name),
        node.samples,
        ROW - 1.0
    );
    let room = (width / 6.7) as usize;
    if room > 2 {
        let shown: String = name.chars().take(room).collect();
        let _ = write!(svg, "<text x=\"{:.2}\" y=\"{:.1}\">{}</text>", x + 2.0, y + 12.0, escape(&shown));
    }
    svg.push_str("</g>\n");
    let mut left = x;
    for (name, child) in &node.children {
        boxes(svg, name, child, all, left, y - ROW);
        left += WIDTH * child.samples as f64 / all as f64;
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_folded_root_first_and_drawn_by_share() {
        let script = "basalt worker 12/13 5.1: 1 cycles:\n\t 55d0 rpc::read<T>+0x1f (/bin/basalt)\n\t 55d1 main+0x2 (/bin/basalt)\n\n\
                      basalt worker 12/13 5.2: 1 cycles:\n\t 55d1 main+0x9 (/bin/basalt)\n\n";
        let folded = fold(script);
        let lines: Vec<String> = folded.iter().map(|(path, n)| format!("{path} {n}")).collect();
        assert_eq!(lines, ["basalt worker;main 1", "basalt worker;main;rpc::read<T> 1"]);
        let svg = draw("get", &folded);
        assert!(svg.contains("get (2 samples)") && svg.contains("rpc::read&lt;T&gt; 50.00 % (1)"), "{svg}");
    }
}
