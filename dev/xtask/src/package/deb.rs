//! A Debian package: an archive of `ar` with a version, a tarball of control files and one of the files themselves. Follows: deb(5).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::machine::Machine;
use crate::run;

const MAGIC: &[u8] = b"!<arch>\n";
/// Bytes of a member's header.
const HEADER_LEN: usize = 60;

/// Packs what lies below `root`.
pub fn write(root: &Path, version: &str, machine: Machine, scratch: &Path, package: &Path) -> anyhow::Result<()> {
    let control_dir = scratch.join("control");
    std::fs::create_dir_all(&control_dir)?;
    std::fs::write(control_dir.join("control"), control(version, machine, kib_below(root)?))?;
    std::fs::write(control_dir.join("conffiles"), "/etc/basalt/hbase-site.xml\n")?;
    for script in ["postinst", "prerm", "postrm"] {
        let to = control_dir.join(script);
        std::fs::copy(run::root().join("packaging").join(script), &to)?;
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755))?;
    }
    let (control, data) = (scratch.join("control.tar.gz"), scratch.join("data.tar.gz"));
    super::tar(&control_dir, &control)?;
    super::tar(root, &data)?;
    let mut out = MAGIC.to_vec();
    member(&mut out, "debian-binary", b"2.0\n");
    member(&mut out, "control.tar.gz", &std::fs::read(&control)?);
    member(&mut out, "data.tar.gz", &std::fs::read(&data)?);
    std::fs::write(package, out)?;
    std::fs::remove_dir_all(control_dir)?;
    std::fs::remove_file(control)?;
    std::fs::remove_file(data)?;
    Ok(())
}

fn control(version: &str, machine: Machine, size_kib: u64) -> String {
    format!(
        "Package: basalt\nVersion: {version}\nArchitecture: {}\nMaintainer: Basalt <basalt@localhost>\nInstalled-Size: {size_kib}\n\
         Depends: libc6 (>= 2.28), passwd\nSection: database\nPriority: optional\nHomepage: https://hbase.apache.org/\n\
         Description: Apache HBase as one native process\n Serves HBase's protocol, files and shell from one binary.\n",
        machine.debian()
    )
}

fn kib_below(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            } else {
                bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(bytes.div_ceil(1024))
}

/// Adds a file to an archive of `ar`.
fn member(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    out.extend_from_slice(
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, bytes.len()).as_bytes(),
    );
    out.extend_from_slice(bytes);
    if !bytes.len().is_multiple_of(2) {
        out.push(b'\n');
    }
}

/// The members of an archive of `ar`.
fn members(archive: &[u8]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut rest = archive.strip_prefix(MAGIC).context("no archive of ar")?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(HEADER_LEN).context("a member's header is cut off")?;
        let text = |range: std::ops::Range<usize>| std::str::from_utf8(&header[range]).map(str::trim);
        let len: usize = text(48..58)?.parse().context("a member's length")?;
        let (bytes, after) = after.split_at_checked(len).context("a member is cut off")?;
        found.push((text(0..16)?.to_owned(), bytes.to_vec()));
        rest = after.get(len % 2..).unwrap_or_default();
    }
    Ok(found)
}

/// Lays the package's files down below `place`; the control files are in `DEBIAN`.
pub fn unpack(package: &Path, place: &Path) -> anyhow::Result<()> {
    let members = members(&std::fs::read(package)?)?;
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    if names != ["debian-binary", "control.tar.gz", "data.tar.gz"] || members[0].1 != b"2.0\n" {
        bail!("{} has {names:?}", package.display());
    }
    for ((_, bytes), below) in members.iter().skip(1).zip([place.join("DEBIAN"), PathBuf::from(place)]) {
        std::fs::create_dir_all(&below)?;
        let archive = below.join(".archive.tar.gz");
        std::fs::write(&archive, bytes)?;
        run::must("tar", Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&below))?;
        std::fs::remove_file(archive)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_back_and_a_cut_one_refused() {
        let mut archive = MAGIC.to_vec();
        member(&mut archive, "odd", b"abc");
        member(&mut archive, "even", b"abcd");
        let members = members(&archive).expect("an archive");
        assert_eq!(members, [("odd".to_owned(), b"abc".to_vec()), ("even".to_owned(), b"abcd".to_vec())]);
        assert!(super::members(&archive[..archive.len() - 1]).is_err() && super::members(b"x").is_err());
    }
}
