//! Every target with its seeds, with nothing, with every input that was kept because it once went wrong or reaches far, and with what a few
//! random edits make of them. `cargo xtask fuzz` is the search that is led by coverage; these edits are what a change breaks first.
//!
//! Other edits: `BASALT_SEED=<n> cargo test -p basalt-fuzz --test kept`; more of them with `BASALT_LONG_TESTS=1`.
#![allow(clippy::disallowed_methods, reason = "reads the tree's own files")]

use basalt_fuzz::{ALL, Target};
use base::rng::Rng;
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

/// Inputs made of those that are there, for each target.
const EDITED: usize = 200;

#[test]
fn edited_inputs_go_through() {
    let seed = std::env::var("BASALT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let number = if std::env::var_os("BASALT_LONG_TESTS").is_some() { 100 * EDITED } else { EDITED };
    println!("BASALT_SEED={seed} cargo test -p basalt-fuzz --test kept edited");
    let mut wrong = Vec::new();
    for target in ALL {
        let rng = Rng::seeded(seed);
        let mut from = (target.seeds)();
        from.extend(kept(target).into_iter().map(|(_, input)| input));
        for nth in 0..number {
            let input = edited(&from, target, &rng);
            if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
                let file = std::env::temp_dir().join(format!("basalt-fuzz-{}-{seed}-{nth}", target.name));
                std::fs::write(&file, &input).expect("the finding is written");
                wrong.push(format!("cargo xtask fuzz --replay {} {}", target.name, file.display()));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// One to four edits of one of the inputs.
fn edited(from: &[Vec<u8>], target: &Target, rng: &Rng) -> Vec<u8> {
    let below = |bound: usize| rng.below(bound as u64) as usize;
    let mut input = from[below(from.len())].clone();
    for _ in 0..=below(4) {
        let at = below(input.len() + 1);
        let end = (at + 1 + below(16)).min(input.len());
        match below(7) {
            0 if at < input.len() => input[at] ^= 1 << below(8),
            1 if at < input.len() => input[at] = [0, 1, 0x7F, 0x80, 0xFF][below(5)],
            2 => input.truncate(at),
            3 if at < end => drop(input.drain(at..end)),
            4 if at < end => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            5 if !target.words.is_empty() => {
                let word = target.words[below(target.words.len())];
                input.splice(at..at, word.bytes());
            }
            // the beginning of this one, the end of another
            _ => {
                let other = &from[below(from.len())];
                input.truncate(at);
                input.extend_from_slice(&other[below(other.len() + 1)..]);
            }
        }
    }
    input.truncate(target.max_len);
    input
}

#[test]
fn names_are_words_that_paths_can_have() {
    for target in ALL {
        assert!(target.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", target.name);
        assert_eq!(ALL.iter().filter(|other| other.name == target.name).count(), 1);
    }
}
