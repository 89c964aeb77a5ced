//! `basalt sql`: becomes `basalt-sql`, which is a program of its own and built apart, with the arguments and for the cluster that it was told.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use base::Config;

const PROGRAM: &str = "basalt-sql";
/// Where `basalt-sql` finds its cluster unless it is told.
const CLUSTER: &str = "BASALT_CLUSTER";

/// Does not return where all goes well: this process is the other program then.
pub fn run(config: &Config, arguments: &[String]) -> anyhow::Error {
    let Some(program) = find(std::env::current_exe().ok().as_deref(), std::env::var_os("PATH").as_deref()) else {
        return anyhow::anyhow!(
            "{PROGRAM} is neither beside this program nor in PATH; it is built apart, by cargo build --release in Basalt's directory sql"
        );
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    if std::env::var_os(CLUSTER).is_none() {
        command.env(CLUSTER, client::Options::from_config(config).registry.to_string());
    }
    let error = command.exec();
    Err::<(), _>(error).with_context(|| format!("cannot start {}", program.display())).unwrap_err()
}

/// Beside this program, in PATH, or where its own workspace puts it when both are built in one source tree.
fn find(this: Option<&Path>, path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let beside = this.and_then(Path::parent);
    let in_path = path.into_iter().flat_map(std::env::split_paths);
    // SOURCES/target/PROFILE/basalt and SOURCES/sql/target/PROFILE/basalt-sql.
    let of_sources = beside.and_then(|directory| {
        let (profile, target) = (directory.file_name()?, directory.parent()?);
        Some(target.parent()?.join("sql").join(target.file_name()?).join(profile))
    });
    let mut places = beside.map(Path::to_owned).into_iter().chain(in_path).chain(of_sources);
    places.find_map(|place| Some(place.join(PROGRAM)).filter(|program| program.is_file()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests work on real directories")]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_beside_this_program_then_in_path_then_in_the_source_tree() {
        let scratch = std::env::temp_dir().join(format!("basalt-sql-test-{}", std::process::id()));
        let [release, of_sql, elsewhere] = ["target/release", "sql/target/release", "bin"].map(|place| {
            let place = scratch.join(place);
            std::fs::create_dir_all(&place).expect("a directory");
            place
        });
        let found = || find(Some(&release.join("basalt")), Some(elsewhere.as_os_str()));
        assert_eq!(found(), None);
        for place in [&of_sql, &elsewhere, &release] {
            let program = place.join(PROGRAM);
            std::fs::write(&program, "").expect("a file");
            assert_eq!(found(), Some(program));
        }
        assert_eq!(find(None, None), None);
        std::fs::remove_dir_all(scratch).expect("removed");
    }
}
