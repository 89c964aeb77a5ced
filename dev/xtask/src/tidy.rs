//! Small rules no compiler knows: every module says what it is, and no file names somebody's machine.

use anyhow::bail;

use crate::run;

/// Files whose bytes were made elsewhere and are data here.
const DATA: &[&str] = &["tests/golden/", "tests/inventory/", "dev/fuzz/corpus/", "Cargo.lock"];

/// Looks at every file that git knows or would take up.
pub fn check() -> anyhow::Result<()> {
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(run::root());
    let listing = run::stdout("git ls-files", &mut git)?;
    // put together here, so that this file passes its own rule
    let machine_paths: Vec<String> = ["work", "root", "tmp"].iter().map(|d| format!("/{d}/")).collect();
    let mut wrong = Vec::new();
    for path in listing.split('\0').filter(|p| !p.is_empty()) {
        if DATA.iter().any(|d| path.starts_with(d)) {
            continue;
        }
        // a file may be gone from the tree and not yet from the index; what is not text is nobody's prose
        let Ok(bytes) = std::fs::read(run::root().join(path)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        // a `tests.rs` beside its module is introduced by that module
        let introduces_itself = path.ends_with(".rs") && !path.contains("/gen/") && !path.ends_with("/tests.rs");
        if introduces_itself && !text.starts_with("//!") && !text.starts_with("#![") {
            wrong.push(format!("{path}: begins without a `//!` that says what it is"));
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(found) = machine_paths.iter().find(|p| names(line, p)) {
                wrong.push(format!("{path}:{}: a path of one machine ({found})", number + 1));
            }
        }
        if text.contains("\r\n") {
            wrong.push(format!("{path}: Windows line ends"));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n           "));
    }
    Ok(())
}

/// Does the line hold `dir` as the beginning of an absolute path (and not inside a longer one)?
fn names(line: &str, dir: &str) -> bool {
    line.match_indices(dir).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || "._-/}$*{".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn absolute_paths_only() {
        let dir = ["/", "tmp", "/"].concat();
        assert!(names(&format!("see {dir}x"), &dir));
        assert!(names(&format!("{dir}x"), &dir));
        assert!(!names(&format!("$DATA{dir}x"), &dir));
        assert!(!names(&format!("data{dir}x"), &dir));
    }
}
