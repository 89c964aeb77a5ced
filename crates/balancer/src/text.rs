//! Numbers as Java prints them, for what clients are told of decisions.

/// A number as `Double#toString` prints it.
pub fn java_double(value: f64) -> String {
    scientific(value.abs(), format!("{value:?}"), format!("{value:E}"))
}

/// A number as `Float#toString` prints it.
pub fn java_float(value: f32) -> String {
    scientific(f64::from(value.abs()), format!("{value:?}"), format!("{value:E}"))
}

fn scientific(size: f64, plain: String, exponential: String) -> String {
    if size == 0.0 || !size.is_finite() || (1e-3..1e7).contains(&size) {
        return plain;
    }
    match exponential.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => exponential,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_java_prints_them() {
        let doubles = [0.0, 1.0, 0.25, 0.001, 0.0009, 9_999_999.0, 1e7, 1.25e-9];
        let texts = ["0.0", "1.0", "0.25", "0.001", "9.0E-4", "9999999.0", "1.0E7", "1.25E-9"];
        assert_eq!(doubles.map(java_double), texts);
        assert_eq!([java_float(0.025), java_float(500.0), java_float(1e-4)], ["0.025", "500.0", "1.0E-4"]);
    }
}
