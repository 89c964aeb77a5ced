//! Small rules no compiler knows: every module says what it is, no file names somebody's machine, and no file of tests is forgotten.

use anyhow::bail;

use crate::run;

/// Files that were made elsewhere: data, and sources of others.
const DATA: &[&str] = &["tests/golden/", "third_party/", "tests/inventory/", "dev/fuzz/corpus/", "Cargo.lock"];

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
    wrong.extend(forgotten_tests(&listing));
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n           "));
    }
    Ok(())
}

/// Files of tests that no binary has: with `autotests = false` cargo does not take them up by itself.
fn forgotten_tests(listing: &str) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(run::root().join(path)).unwrap_or_default();
    let mut forgotten = Vec::new();
    for main in listing.split('\0').filter(|path| path.ends_with("/tests/main.rs")) {
        let folder = main.trim_end_matches("main.rs");
        let (modules, manifest) = (read(main), read(&format!("{}Cargo.toml", folder.trim_end_matches("tests/"))));
        for path in listing.split('\0').filter(|path| *path != main && run::root().join(path).exists()) {
            let Some(name) = path.strip_prefix(folder).and_then(|rest| rest.strip_suffix(".rs")) else { continue };
            let has_module = modules.lines().any(|line| line == format!("mod {name};"));
            if !name.contains('/') && !has_module && !manifest.contains(&format!("name = \"{name}\"")) {
                forgotten.push(format!("{path}: add `mod {name};` to {main}, or its tests never run"));
            }
        }
    }
    forgotten
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
