//! The journal of a bulk load: which staged files go where. While it is there, the moves are to be made; making them
//! again changes nothing. A file in the region's directory, `.bulkload-<name>`: one line a move, `from TAB to`, both
//! relative to the root directory. HBase passes entries that begin with a dot over.

use crate::RegionEnv;
use crate::deleted_families;
use crate::error::{RegionError, Result};
use crate::tracker::name_before_moves;
use fs::{FilePath, Volume};
use model::{RegionInfo, TableDescriptor};
use std::collections::BTreeSet;

const PREFIX: &str = ".bulkload-";

/// Where a journal of this name is.
pub(super) fn path(info: &RegionInfo, name: &str) -> FilePath {
    rootdir::region_dir(info).join(format!("{PREFIX}{name}"))
}

/// Publishes the journal of `moves`.
pub(super) fn write(volume: &dyn Volume, path: &FilePath, moves: &[(FilePath, FilePath)]) -> fs::Result<()> {
    let text: String = moves.iter().map(|(from, to)| format!("{}\t{}\n", from.as_str(), to.as_str())).collect();
    volume.publish(path, text.as_bytes())
}

/// Removes a journal, durably, if there is one.
pub(super) fn withdraw(volume: &dyn Volume, path: &FilePath) -> fs::Result<()> {
    match volume.remove_file(path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => volume.sync_dir(&path.parent()),
    }
}

/// Makes the moves that are not made yet, durably. A file that is neither here nor there was moved before, and has
/// gone its way since.
pub(super) fn carry_out(volume: &dyn Volume, moves: &[(FilePath, FilePath)]) -> fs::Result<()> {
    let mut dirs = BTreeSet::new();
    for (from, to) in moves {
        let dir = to.parent();
        if dirs.insert(dir.clone()) {
            volume.create_dir_all_durable(&dir)?;
        }
        match volume.rename(from, to) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    dirs.iter().try_for_each(|dir| volume.sync_dir(dir))
}

/// At a region's opening: finishes what a crash interrupted. `names` are the entries of its directory. True when files
/// came. What was meant for a family that was deleted since stays where it is, be there another of its name or not.
pub(crate) fn finish<'a>(
    env: &RegionEnv,
    info: &RegionInfo,
    table: &TableDescriptor,
    names: impl Iterator<Item = &'a str>,
) -> Result<bool> {
    let volume = &*env.volume;
    let wrap = |error| RegionError::volume(info.encoded_name(), error);
    let mut found = false;
    for name in names.filter(|name| name.starts_with(PREFIX)) {
        let path = rootdir::region_dir(info).join(name);
        let text = volume.read(&path).map_err(wrap)?;
        let mut moves = parse(&String::from_utf8_lossy(&text));
        let deleted = deleted_families::load_live(volume, info).map_err(wrap)?;
        moves.retain(|(_, to)| {
            let family = to.parent();
            table.families.contains_key(family.name().as_bytes())
                && !deleted.iter().any(|note| note.dir == family.name())
        });
        name_before_moves(env, info, table, &moves)?;
        carry_out(volume, &moves).map_err(wrap)?;
        volume.remove_file(&path).map_err(wrap)?;
        found = true;
    }
    if found {
        volume.sync_dir(&rootdir::region_dir(info)).map_err(wrap)?;
    }
    Ok(found)
}

pub(crate) fn parse(text: &str) -> Vec<(FilePath, FilePath)> {
    let path = |text: &str| {
        let legal = text.split('/').all(|name| !matches!(name, "" | "." | ".."));
        legal.then(|| FilePath::new(text))
    };
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(from, to)| Some((path(from)?, path(to)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_moves_are_passed_over() {
        let text = "a/b\tc/d\n../x\tc/d\na\n\t\na/\tb\ne\tf\n";
        let moves: Vec<String> =
            parse(text).iter().map(|(from, to)| format!("{} {}", from.as_str(), to.as_str())).collect();
        assert_eq!(moves, ["a/b c/d", "e f"]);
    }
}
