//! Every target with its seeds, with nothing, and with every input that was kept because it once went wrong or reaches far.
#![allow(clippy::disallowed_methods, reason = "reads the tree's own files")]

use basalt_fuzz::{ALL, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a file").path());
    paths.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file"))).collect()
}

#[test]
fn seeds_and_kept_inputs_go_through() {
    let mut wrong = Vec::new();
    for target in ALL {
        let mut inputs = kept(target);
        inputs.push(("nothing".into(), Vec::new()));
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (number, seed) in seeds.into_iter().enumerate() {
            assert!(seed.len() <= target.max_len, "seed {number} of {} has {} bytes", target.name, seed.len());
            inputs.push((format!("seed {number}"), seed));
        }
        for (name, input) in inputs {
            if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
                wrong.push(format!("{} with {name}", target.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_are_words_that_paths_can_have() {
    for target in ALL {
        assert!(target.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", target.name);
        assert_eq!(ALL.iter().filter(|other| other.name == target.name).count(), 1);
    }
}
