//! How binaries of a machine are run on this one: by themselves, or by an emulator of its processor (QEMU's user mode) that the kernel calls for
//! them, so that whole Debian systems of that machine run by `chroot`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::clean_root;
use super::machine::Machine;
use crate::{run, toolchain};

/// Where the kernel is told which program runs which binaries. Follows: `Documentation/admin-guide/binfmt-misc.rst` of Linux.
const BINFMT: &str = "/proc/sys/fs/binfmt_misc";

/// Runs binaries of one machine.
pub enum Runner {
    /// Of this one.
    Native,
    /// Of another.
    Emulator(Emulator),
}

impl Runner {
    /// For `machine`; what an emulator needs is kept below `scratch` while the runner lives.
    ///
    /// # Errors
    /// Nothing here runs its binaries: no emulator, no right to tell the kernel of it, or no network for the machine's C library.
    pub fn of(machine: Machine, scratch: &Path) -> anyhow::Result<Runner> {
        if machine == Machine::here()? {
            Ok(Runner::Native)
        } else {
            Emulator::start(machine, scratch).map(Runner::Emulator)
        }
    }

    /// A command for a binary that lies in no system of its own.
    pub fn command(&self, binary: &Path) -> Command {
        match self {
            Runner::Native => Command::new(binary),
            Runner::Emulator(emulator) => {
                let mut command = Command::new(&emulator.program);
                command.arg("-L").arg(&emulator.libraries).arg(binary);
                command
            }
        }
    }
}

/// QEMU's emulator of a processor, and what binaries need beside it.
pub struct Emulator {
    program: PathBuf,
    libraries: PathBuf,
    /// Told to the kernel by us, to be taken back.
    registered: Option<PathBuf>,
}

impl Emulator {
    fn start(machine: Machine, scratch: &Path) -> anyhow::Result<Emulator> {
        let name = format!("qemu-{}-static", machine.name());
        toolchain::programs(&[&name])?;
        let found = run::stdout("which", Command::new("which").arg(&name))?;
        let program = PathBuf::from(found.trim_end());
        let libraries = scratch.join("libraries");
        let registered = register(machine, &program)?;
        // From here on what was registered is taken back.
        let emulator = Emulator { program, libraries, registered };
        clean_root::libraries(machine, &emulator.libraries)?;
        Ok(emulator)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(entry) = &self.registered
            && let Err(error) = std::fs::write(entry, "-1")
        {
            println!(
                "    cannot remove the binfmt_misc entry {}: {error}; remove it by: echo -1 > {0}",
                entry.display()
            );
        }
        // Whatever is left of it the next run overwrites.
        let _ = std::fs::remove_dir_all(&self.libraries);
    }
}

/// Has the kernel run the machine's binaries by `emulator`, inside other roots, too; the entry, unless the system has one already.
fn register(machine: Machine, emulator: &Path) -> anyhow::Result<Option<PathBuf>> {
    let place = Path::new(BINFMT);
    if place.join(format!("qemu-{}", machine.name())).exists() {
        return Ok(None);
    }
    if !place.join("register").exists() {
        let mut mount = Command::new("mount");
        run::must("mount binfmt_misc", mount.args(["-t", "binfmt_misc", "binfmt_misc"]).arg(place))?;
    }
    let name = format!("basalt-{}", machine.name());
    let entry = place.join(&name);
    if entry.exists() {
        // Of a run that was killed.
        std::fs::write(&entry, "-1").with_context(|| format!("cannot take {} back", entry.display()))?;
    }
    if !emulator.is_absolute() {
        bail!(
            "cannot register {} with binfmt_misc, which takes absolute paths alone: name its directory so in PATH",
            emulator.display()
        );
    }
    std::fs::write(place.join("register"), rule(&name, machine, emulator))
        .with_context(|| format!("cannot have the kernel run binaries of {} (root needed)", machine.name()))?;
    Ok(Some(entry))
}

/// The rule: little-endian 64-bit ELF executables and position-independent ones of the machine. `F`: the emulator is opened now, so that it is
/// found where another root has none.
fn rule(name: &str, machine: Machine, emulator: &Path) -> String {
    let magic = format!(r"\x7fELF\x02\x01\x01{}\x02\x00\x{:02x}\x00", r"\x00".repeat(9), machine.elf());
    // Whichever operating system's, and types 2 and 3.
    let mask = format!(r"{}\x00{}\xfe\xff\xff\xff", r"\xff".repeat(7), r"\xff".repeat(8));
    format!(":{name}:M::{magic}:{mask}:{}:F", emulator.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_the_header_up_to_the_machine() {
        let rule = rule("basalt-aarch64", Machine::Aarch64, Path::new("/usr/bin/qemu-aarch64-static"));
        let parts: Vec<&str> = rule.split(':').collect();
        let [_, name, kind, offset, magic, mask, program, flags] = parts[..] else { panic!("{parts:?}") };
        assert_eq!((name, kind, offset), ("basalt-aarch64", "M", ""));
        assert_eq!((program, flags), ("/usr/bin/qemu-aarch64-static", "F"));
        let bytes = |text: &str| text.replace(r"\x7fELF", r"\x7f\x45\x4c\x46").matches(r"\x").count();
        assert_eq!((bytes(magic), bytes(mask)), (20, 20));
        assert!(magic.ends_with(r"\x02\x00\xb7\x00"), "{magic}");
    }
}
