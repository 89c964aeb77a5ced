//! The parent that a client names: the header `traceparent` of W3C Trace Context, which HBase's client puts into `RPCTInfo.headers`.

/// A span in another process, and whether it is recorded there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace's number; not zero.
    pub trace_id: u128,
    /// The span's number; not zero.
    pub span_id: u64,
    /// Whoever began the trace wants it recorded.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Name of the header.
    pub const HEADER: &'static str = "traceparent";

    /// Reads `VERSION-TRACE-SPAN-FLAGS`, all in lower-case hexadecimal digits. `None` for whatever is something else: a trace then begins anew, as
    /// the recommendation asks. Versions after 00 may have more behind the flags.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.trim().split('-');
        let version = u8::try_from(digits(parts.next()?, 2)?).ok()?;
        let trace_id = digits(parts.next()?, 32)?;
        let span_id = u64::try_from(digits(parts.next()?, 16)?).ok()?;
        let flags = digits(parts.next()?, 2)?;
        if version == 0xFF || (version == 0 && parts.next().is_some()) || trace_id == 0 || span_id == 0 {
            return None;
        }
        Some(TraceParent { trace_id, span_id, is_sampled: flags & 1 == 1 })
    }
}

impl std::fmt::Display for TraceParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.is_sampled))
    }
}

/// A number of exactly `len` lower-case hexadecimal digits.
fn digits(text: &str, len: usize) -> Option<u128> {
    let is_hex = text.len() == len && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_recommendation() {
        let parent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("is one");
        assert_eq!(parent.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((parent.span_id, parent.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(parent.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let flags = |flags: &str| {
            let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
            TraceParent::parse(&text).map(|parent| parent.is_sampled)
        };
        assert_eq!([flags("00"), flags("02"), flags("ff")], [Some(false), Some(false), Some(true)]);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes";
        assert!(TraceParent::parse(later).is_some());
    }

    #[test]
    fn what_is_no_parent_is_none() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{zeros}-{span}-01"),
            format!("00-{trace}-{}-01", &zeros[..16]),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-{span}-1"),
            format!("00-+{}-{span}-01", &trace[1..]),
            format!("00-{trace}-{span}-é"),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }
}
