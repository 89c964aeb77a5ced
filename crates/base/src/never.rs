//! What must not happen and can be lived with when it does.

/// Whether a condition holds that never should. If it does, a debug build panics; a release build writes an error to the log, and the caller
/// does the safe thing: `if never!(a > b, "a passed b: {a}, {b}") { return Err(..) }`. For what cannot be lived with there is `assert!`.
#[macro_export]
macro_rules! never {
    ($condition:expr, $($message:tt)+) => {{
        let happened: bool = $condition;
        if happened {
            $crate::never_happened(::core::format_args!($($message)+), ::core::concat!(::core::file!(), ":", ::core::line!()));
        }
        happened
    }};
}

/// What [`never!`] does about it.
///
/// # Panics
/// In a debug build.
#[doc(hidden)]
#[cold]
pub fn never_happened(what: std::fmt::Arguments<'_>, place: &str) {
    tracing::error!("internal error at {place}: {what}; please report it");
    if cfg!(debug_assertions) {
        panic!("{what}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_does_not_happen_costs_nothing() {
        assert!(!never!(1 > 2, "one is not more than two"));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "2 is more than 1"]
    fn what_happens_is_told_aloud() {
        let _ = never!(2 > 1, "{} is more than {}", 2, 1);
    }
}
