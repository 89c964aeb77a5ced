//! How unevenly a quantity lies on servers. Follows: `DoubleArrayCost`, `CostFunction#scale`.

/// A quantity by server, and how far it is from even. Its total never changes: what one server loses another gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skew {
    values: Vec<f64>,
    mean: f64,
    /// The least and the most that `root` can be with this total.
    bounds: (f64, f64),
    /// Sum of the squared distances from the mean.
    squares: f64,
}

/// What a [`Skew`] was before it changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    from: (usize, f64),
    to: (usize, f64),
    squares: f64,
}

impl Skew {
    pub fn new(values: Vec<f64>) -> Skew {
        let total: f64 = values.iter().sum();
        let count = values.len() as f64;
        let mean = if values.is_empty() { 0.0 } else { total / count };
        let squares = values.iter().map(|value| (mean - value) * (mean - value)).sum();
        Skew { bounds: (least(total, count), most(total, count)), values, mean, squares }
    }

    /// From 0, as even as it can be, to 1, all on one server.
    pub fn cost(&self) -> f64 {
        scale(self.bounds.0, self.bounds.1, self.squares.max(0.0).sqrt())
    }

    /// `amount` goes from one server to another.
    pub fn shift(&mut self, from: usize, to: usize, amount: f64) -> Before {
        let before = Before { from: (from, self.values[from]), to: (to, self.values[to]), squares: self.squares };
        self.set(from, before.from.1 - amount);
        self.set(to, before.to.1 + amount);
        before
    }

    /// Everything is as it was: no rounding is left of what was tried.
    pub fn restore(&mut self, before: Before) {
        self.values[before.from.0] = before.from.1;
        self.values[before.to.0] = before.to.1;
        self.squares = before.squares;
    }

    fn set(&mut self, server: usize, value: f64) {
        let square = |value: f64| (self.mean - value) * (self.mean - value);
        self.squares += square(value) - square(self.values[server]);
        self.values[server] = value;
    }
}

/// Whole things cannot be spread more evenly than this.
fn least(total: f64, servers: f64) -> f64 {
    if servers == 0.0 {
        return 0.0;
    }
    let mean = total / servers;
    let squares = if servers > total {
        (servers - total) * mean * mean + (1.0 - mean) * (1.0 - mean) * total
    } else {
        // Some have one more than the others.
        let high = (total - mean.floor() * servers).trunc();
        let low = (servers - high).trunc();
        high * (mean.ceil() - mean) * (mean.ceil() - mean) + low * (mean - mean.floor()) * (mean - mean.floor())
    };
    squares.sqrt()
}

fn most(total: f64, servers: f64) -> f64 {
    if servers == 0.0 {
        return 0.0;
    }
    let mean = total / servers;
    ((total - mean) * (total - mean) + (servers - 1.0) * mean * mean).sqrt()
}

/// The distance to the next larger number. Follows: `Math#ulp`.
fn ulp(value: f64) -> f64 {
    value.abs().next_up() - value.abs()
}

/// Where `value` lies between `min` and `max`, from 0 to 1.
pub(crate) fn scale(min: f64, max: f64, value: f64) -> f64 {
    let epsilon = ulp(max);
    if max <= min || value <= min || (max - min).abs() <= epsilon || (value - min).abs() <= epsilon {
        return 0.0;
    }
    ((value - min) / (max - min)).clamp(0.0, 1.0)
}
