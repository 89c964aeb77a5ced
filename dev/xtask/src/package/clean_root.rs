//! A bare Debian in a directory, in which the package is installed, started, upgraded and removed as its users would.
//!
//! Needs root: `chroot` and namespaces. What runs in it has a network and processes of its own, so that Basalt's usual ports are free there.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::machine::Machine;
use crate::{run, toolchain};

/// The oldest Debian that Debian still serves. Its C library is 2.31.
const SUITE: &str = "bullseye";
const MIRROR: &str = "http://deb.debian.org/debian";

/// Makes the directory with Debian's smallest set of packages for `machine`, whose binaries run here. About two minutes, and ten in an emulator.
pub fn debian(machine: Machine, place: &Path) -> anyhow::Result<()> {
    if run::stdout("id", Command::new("id").arg("-u"))?.trim() != "0" {
        bail!("installing a package in a clean Debian takes root (chroot, namespaces)");
    }
    debootstrap(machine, place, &[])?;
    // An installer would have written it.
    Ok(std::fs::write(place.join("etc/hosts"), "127.0.0.1 localhost\n")?)
}

fn debootstrap(machine: Machine, place: &Path, more: &[&str]) -> anyhow::Result<()> {
    toolchain::programs(&["debootstrap"])?;
    if place.exists() {
        // One that was stopped may have left it mounted.
        let _ = Command::new("umount").arg(place.join("proc")).stderr(Stdio::null()).status();
        std::fs::remove_dir_all(place)?;
    }
    let log = place.with_extension("log");
    let said = std::fs::File::create(&log)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .arg("--variant=minbase")
        .arg(format!("--arch={}", machine.debian()))
        .args(more)
        .arg(SUITE)
        .arg(place)
        .arg(MIRROR);
    run::must("debootstrap (network needed)", debootstrap.stdout(said.try_clone()?).stderr(said))
        .with_context(|| format!("see {}", log.display()))?;
    Ok(std::fs::remove_file(log)?)
}

/// Runs a shell script in the directory, with an empty network but the loopback and with processes of its own.
pub fn run_script(place: &Path, script: &str) -> anyhow::Result<String> {
    std::fs::create_dir_all(place.join("proc"))?;
    let enter = r#"ip link set lo up && mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh -euc "$2""#;
    let mut namespaces = Command::new("unshare");
    namespaces.args(["--net", "--pid", "--mount", "--fork", "--kill-child", "--", "sh", "-euc", enter, "sh"]);
    namespaces.arg(place).arg(script).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let ended = namespaces.stderr(Stdio::inherit()).output().context("cannot run unshare")?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    if !ended.status.success() {
        bail!("the script ended with {} after it had said\n{said}", ended.status);
    }
    Ok(said)
}

/// Installs the package, serves and keeps a row, upgrades to `newer` and finds the row, removes and purges it.
pub fn try_package(place: &Path, package: &Path, newer: &Path) -> anyhow::Result<()> {
    for (from, to) in [(package, "first.deb"), (newer, "second.deb")] {
        std::fs::copy(from, place.join(to))?;
    }
    let said = run_script(place, INSTALL_TO_PURGE)?;
    if !said.ends_with("all of it\n") {
        bail!("the script ended early: {said}");
    }
    Ok(())
}

/// Lays the image down and runs what its configuration says, as a container's runtime would.
pub fn try_image(layout: &Path, place: &Path) -> anyhow::Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    let image = super::image::unpack(layout, place)?;
    let config = &image["config"];
    let words =
        |key: &str| config[key].as_array().into_iter().flatten().filter_map(|word| word.as_str().map(String::from));
    let user = config["User"].as_str().unwrap_or_default().to_owned();
    let environment: Vec<String> = words("Env").collect();
    let command: Vec<String> = words("Entrypoint").chain(words("Cmd")).collect();
    std::fs::create_dir_all(place.join("proc"))?;
    // There is no shell in it: the script is the host's, and only the server and its shell are the image's.
    let mut namespaces = Command::new("unshare");
    namespaces.args([
        "--net",
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--",
        "bash",
        "-euc",
        SERVE_FROM_IMAGE,
        "bash",
    ]);
    namespaces.arg(place).arg(user).arg(environment.join(" ")).args(command);
    let said = run::stdout("the image's server", &mut namespaces)?;
    if !said.contains("column=f:q") || !said.contains("value=v") {
        bail!("the image's server answered {said:?}");
    }
    Ok(())
}

/// The C library of another machine's Debian, for the emulator: packages are unpacked, nothing in them runs.
pub fn libraries(machine: Machine, place: &Path) -> anyhow::Result<()> {
    debootstrap(machine, place, &["--foreign"])
}

/// What the unit does, in the words of a shell: the user, the environment and the command come from it. The first line that the server prints says
/// that it serves.
const INSTALL_TO_PURGE: &str = r#"
export DEBIAN_FRONTEND=noninteractive
unit() { sed -n "s/^$1=//p" /lib/systemd/system/basalt.service; }
start() {
    mkfifo /started
    setpriv --reuid "$(unit User)" --regid "$(unit Group)" --init-groups \
        env "$(unit Environment)" $(unit ExecStart) > /started 2> /server.log & server=$!
    # For reading alone: it ends when the server does.
    exec 3< /started
    ready=
    while [ -z "$ready" ] && read -r line <&3; do case $line in *"is ready"*) ready=yes;; esac; done
    rm /started
    [ -n "$ready" ] || { cat /server.log >&2; exit 1; }
}
stop() { exec 3<&-; kill $server; wait $server || { cat /server.log >&2; exit 1; }; }
ask() { HBASE_CONF_DIR=/etc/basalt basalt shell -n -e "$1"; }

dpkg --install /first.deb
[ "$(stat -c %U /var/lib/basalt)" = basalt ]
start
ask "create 't', 'f'"
ask "put 't', 'r', 'f:q', 'kept'"
stop

echo '<!-- mine -->' >> /etc/basalt/hbase-site.xml
dpkg --install --force-confold /second.deb
basalt --version | grep -q . && dpkg-query --show --showformat '${Version}
' basalt | grep -q '+1$'
grep -q mine /etc/basalt/hbase-site.xml
start
ask "get 't', 'r'" | grep -q kept
stop

dpkg --install --force-downgrade --force-confold /first.deb
start
ask "get 't', 'r'" | grep -q kept
stop

dpkg --remove basalt
[ ! -e /usr/bin/basalt ] && [ -e /etc/basalt/hbase-site.xml ] && [ -e /var/lib/basalt/hbase.id ]
dpkg --purge basalt
[ ! -e /etc/basalt ] && [ -e /var/lib/basalt/hbase.id ]
echo all of it
"#;

/// `ROOT USER:GROUP ENVIRONMENT COMMAND...`
const SERVE_FROM_IMAGE: &str = r#"
root=$1 user=$2 environment=$3; shift 3
ip link set lo up
mount -t proc proc "$root/proc"
# As a runtime would: the server's clients look for it under the name of its machine.
printf '127.0.0.1 localhost %s\n' "$(hostname)" > "$root/etc/hosts"
# The environment is the image's, whose path knows no chroot.
chroot=$(command -v chroot)
inside() { env -i $environment "$chroot" --userspec="$user" "$root" "$@"; }
scratch=$(mktemp -d); trap 'rm -r "$scratch"' EXIT
mkfifo "$scratch/started"
env -i $environment "$chroot" --userspec="$user" "$root" "$@" > "$scratch/started" 2> "$scratch/log" & server=$!
# For reading alone: it ends when the server does.
exec 3< "$scratch/started"
read -r line <&3 || { cat "$scratch/log" >&2; exit 1; }
inside /usr/bin/basalt shell -n -e "create 't', 'f'"
inside /usr/bin/basalt shell -n -e "put 't', 'r', 'f:q', 'v'"
inside /usr/bin/basalt shell -n -e "scan 't'"
kill $server; wait $server
"#;
