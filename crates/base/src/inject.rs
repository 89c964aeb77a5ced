//! Bugs that are built in on purpose, to see whether the simulator notices them: `cargo xtask injected`.
//!
//! Only a build with `--cfg inject` has them, and there only the one that the environment names. Everywhere else
//! [`inject!`](crate::inject!) is `false`, known to the compiler.

/// The variable that names the bug that is wanted.
pub const WANTED: &str = "BASALT_INJECT";

/// Whether the bug of this name is wanted in this run.
#[cfg(inject)]
pub fn is_wanted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var(WANTED).ok()).as_deref() == Some(name)
}

/// No build but that of `cargo xtask injected` has such bugs.
#[cfg(not(inject))]
#[inline(always)]
pub const fn is_wanted(_name: &str) -> bool {
    false
}

/// Whether the bug of this name, a string literal, is wanted in this run: false unless the build is one for `cargo xtask injected`.
#[macro_export]
macro_rules! inject {
    ($name:literal) => {
        $crate::inject::is_wanted($name)
    };
}
