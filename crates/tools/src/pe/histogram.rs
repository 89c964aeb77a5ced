//! A histogram as PerformanceEvaluation keeps it: a uniform sample of half a million measures. Follows:
//! `UniformReservoir`, `UniformSnapshot`, `YammerHistogramUtils`.

use base::Rng;

const SAMPLE: usize = 1024 * 500;

/// Measures.
#[derive(Debug)]
pub struct Histogram {
    count: u64,
    sample: Vec<u64>,
    rng: Rng,
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Histogram {
        Histogram { count: 0, sample: Vec::new(), rng: Rng::from_system() }
    }

    /// Takes a measure.
    pub fn update(&mut self, value: u64) {
        self.count += 1;
        if self.sample.len() < SAMPLE {
            self.sample.push(value);
        } else {
            let at = self.rng.below(self.count) as usize;
            if let Some(place) = self.sample.get_mut(at) {
                *place = value;
            }
        }
    }

    /// Measures taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What the sample says now. Sorts a copy of it.
    pub fn snapshot(&self) -> Snapshot {
        let mut sorted = self.sample.clone();
        sorted.sort_unstable();
        let n = sorted.len() as f64;
        let mean = if sorted.is_empty() { 0.0 } else { sorted.iter().map(|v| *v as f64).sum::<f64>() / n };
        let squares: f64 = sorted.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
        let std_dev = if sorted.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        Snapshot { sorted, mean, std_dev }
    }
}

/// A histogram at one moment.
#[derive(Debug)]
pub struct Snapshot {
    sorted: Vec<u64>,
    /// Mean.
    pub mean: f64,
    std_dev: f64,
}

impl Snapshot {
    fn quantile(&self, q: f64) -> f64 {
        let Some(last) = self.sorted.last() else { return 0.0 };
        let position = q * (self.sorted.len() as f64 + 1.0);
        let index = position as usize;
        if index < 1 {
            return self.sorted[0] as f64;
        }
        if index >= self.sorted.len() {
            return *last as f64;
        }
        let (lower, upper) = (self.sorted[index - 1] as f64, self.sorted[index] as f64);
        lower + (position - position.floor()) * (upper - lower)
    }

    fn min(&self) -> f64 {
        self.sorted.first().map_or(0.0, |v| *v as f64)
    }

    fn max(&self) -> f64 {
        self.sorted.last().map_or(0.0, |v| *v as f64)
    }

    /// One line, short.
    pub fn short_report(&self) -> String {
        format!(
            "mean={:.2}, min={:.2}, max={:.2}, stdDev={:.2}, 95th={:.2}, 99th={:.2}",
            self.mean,
            self.min(),
            self.max(),
            self.std_dev,
            self.quantile(0.95),
            self.quantile(0.99)
        )
    }

    const QUANTILES: [(&'static str, f64); 7] = [
        ("50th", 0.5),
        ("75th", 0.75),
        ("95th", 0.95),
        ("99th", 0.99),
        ("99.9th", 0.999),
        ("99.99th", 0.9999),
        ("99.999th", 0.99999),
    ];

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let quantiles = Self::QUANTILES.iter().map(|(name, q)| (*name, self.quantile(*q)));
        quantiles.collect()
    }

    /// One line with everything.
    pub fn report(&self) -> String {
        let mut line =
            format!("mean={:.2}, min={:.2}, max={:.2}, stdDev={:.2}", self.mean, self.min(), self.max(), self.std_dev);
        for (name, value) in self.figures() {
            line.push_str(&format!(", {name}={value:.2}"));
        }
        line
    }

    /// A line for each figure.
    pub fn pretty_report(&self) -> String {
        let mut figures = vec![("Mean", self.mean), ("Min", self.min()), ("Max", self.max()), ("StdDev", self.std_dev)];
        figures.extend(self.figures());
        let lines: Vec<String> = figures.iter().map(|(name, value)| format!("{name:<10}= {value:.2}")).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_sample() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|v| histogram.update(v));
        let line = histogram.snapshot().short_report();
        assert_eq!(line, "mean=500.50, min=1.00, max=1000.00, stdDev=288.82, 95th=950.95, 99th=990.99");
        assert!(histogram.snapshot().pretty_report().contains("\n99.99th   = 1000.00"));
        assert!(Histogram::new().snapshot().report().starts_with("mean=0.00, min=0.00"));
    }
}
