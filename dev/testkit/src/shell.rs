//! What HBase's shell prints, made comparable: command by command, without what differs from run to run.

/// `(what was typed, what was answered)`.
pub fn commands(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("hbase> ") {
            Some(command) => out.push((command.to_owned(), String::new())),
            None => {
                if let Some((_, answer)) = out.last_mut() {
                    answer.push_str(line);
                    answer.push('\n');
                }
            }
        }
    }
    out.retain(|(command, _)| !command.is_empty() && !command.starts_with('#'));
    out
}

/// The shell's output without what differs from run to run: times, ids, ports, versions, column widths.
pub fn plain(output: &str) -> String {
    let mut out = String::new();
    for line in output.lines() {
        let mut line = line.trim_end().to_owned();
        if line.starts_with("hbase:") {
            let command = line.split_once("> ").map(|(_, c)| c.to_owned());
            line = format!("hbase> {}", command.unwrap_or_default());
        } else {
            if let Some((before, rest)) = line.split_once("Took ")
                && let Some((_, after)) = rest.split_once(" seconds")
            {
                line = format!("{before}{after}");
            }
            // region metrics reach the master with a delay; the listing says so, then does without
            if line.trim().is_empty() || line.starts_with("Can not find all details for region") {
                continue;
            }
            if line.contains(", r") && line.starts_with("2.") {
                line = "VERSION".to_owned();
            }
            if let Some(identity) = line.find(":0x") {
                line.truncate(identity);
            }
            line = words(&line);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Replaces ids, clock times and loads inside a line.
fn words(line: &str) -> String {
    if line.contains("average load") {
        return line.split(", ").filter(|p| !p.contains("average load")).collect::<Vec<_>>().join(", ");
    }
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c)).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        let word = &rest[..end];
        rest = &rest[end..];
        let is_clock = word.starts_with("20") && word.len() >= 19 && word.contains('T') && word.contains(':');
        let is_host = word.starts_with("localhost:") || word.starts_with("127.0.0.1:");
        if is_clock {
            out.push_str("TIME");
        } else if is_host {
            out.push_str("HOST");
        } else {
            let parts: Vec<&str> = word.split('.').map(id).collect();
            out.push_str(&parts.join("."));
        }
    }
    out
}

/// Region ids and encoded names.
fn id(part: &str) -> &str {
    if part.len() == 13 && part.bytes().all(|b| b.is_ascii_digit()) {
        "ID"
    } else if part.len() == 32 && part.bytes().all(|b| b.is_ascii_hexdigit()) {
        "ENCODED"
    } else {
        part
    }
}
