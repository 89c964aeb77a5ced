//! Several runs of one figure.

use serde::{Deserialize, Serialize};

/// Mean and deviation of the runs that were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean of the runs kept.
    pub mean: f64,
    /// Their standard deviation (of a sample); 0 for one run.
    pub deviation: f64,
    /// Least of all runs.
    pub least: f64,
    /// Greatest of all runs.
    pub greatest: f64,
    /// Runs kept: all, or from four on all but the best and the worst.
    pub kept: usize,
    /// Runs made.
    pub runs: usize,
}

impl Spread {
    /// Of `values`; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let kept = if sorted.len() >= 4 { &sorted[1..sorted.len() - 1] } else { &sorted[..] };
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let variance = match kept.len() {
            1 => 0.0,
            n => kept.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64,
        };
        Some(Spread { mean, deviation: variance.sqrt(), least, greatest, kept: kept.len(), runs: sorted.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_worst_are_dropped_from_four_runs_on() {
        let three = Spread::of(&[1.0, 2.0, 9.0]).expect("three");
        assert_eq!((three.mean, three.kept), (4.0, 3));
        let four = Spread::of(&[1.0, 2.0, 4.0, 900.0]).expect("four");
        assert_eq!((four.mean, four.kept, four.runs), (3.0, 2, 4));
        assert!((four.deviation - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[]), None);
    }
}
