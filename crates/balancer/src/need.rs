//! Whether servers have so different numbers of regions that something is to be done in any case. Follows:
//! `BaseLoadBalancer#idleRegionServerExist`, `#sloppyRegionServerExist`.

/// A server has nothing while another has several.
pub(crate) fn is_one_idle(counts: &[usize]) -> bool {
    counts.contains(&0) && counts.iter().any(|count| *count > 1)
}

/// A server has more or fewer than the average by more than the part `slop` of it. A negative one is never exceeded.
pub(crate) fn is_sloppy(counts: &[usize], slop: f32) -> bool {
    if slop < 0.0 || counts.is_empty() {
        return false;
    }
    let average = counts.iter().sum::<usize>() as f32 / counts.len() as f32;
    is_beyond(counts, average, slop)
}

/// The same of another average.
pub(crate) fn is_beyond(counts: &[usize], average: f32, slop: f32) -> bool {
    let floor = (average * (1.0 - slop)).floor() as i64;
    let ceiling = (average * (1.0 + slop)).ceil() as i64;
    counts.iter().any(|count| *count as i64 > ceiling || (*count as i64) < floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_more_or_less_is_let_pass() {
        assert!(is_one_idle(&[0, 2]) && !is_one_idle(&[0, 1]) && !is_one_idle(&[1, 9]));
        assert!(!is_sloppy(&[8, 10, 12], 0.2), "10 on average: 8 to 12");
        assert!(is_sloppy(&[7, 10, 13], 0.2));
        assert!(!is_sloppy(&[0, 100], -1.0));
    }
}
