//! Numbers that are computed of a row's bytes, for aggregates by group: a small machine with a stack, whose programs are checked before they
//! run. Arithmetic is exact in 128 bits, or of floating-point numbers; a result without room is an error, never a wrong number.

use proto::grouped::{Expression, Number, Operation, Source, Step, TimePart, exact_number};
use std::cmp::Ordering;

/// Steps of all expressions of a request: each row pays for each of them.
const MAX_STEPS: usize = 500;
/// Numbers on the stack at a time.
const MAX_STACK: usize = 32;
/// Digits behind the point.
const MAX_SCALE: i32 = 38;

const SECOND_US: i128 = 1_000_000;
const MINUTE_US: i128 = 60 * SECOND_US;
const HOUR_US: i128 = 60 * MINUTE_US;
const DAY_US: i128 = 24 * HOUR_US;
/// Microseconds that the calendar is computed of: some hundred thousand years.
const MOST_US: i128 = i64::MAX as i128;

/// What an expression comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Computed {
    /// Nothing.
    None,
    /// An exact number.
    Exact(i128),
    /// A floating-point number.
    Float(f64),
}

/// A step that was checked.
enum Do {
    /// Which of the places in [`Program::loads`].
    Load {
        at: usize,
        number: Number,
        is_inverted: bool,
        scale: i32,
    },
    Literal(i128),
    Add,
    Subtract,
    Multiply,
    FloorDivide(i128),
    Limit(i128),
    ToFloat,
    Truncate(TimePart),
    Extract(TimePart),
}

/// An expression that was checked: it pops no more than it pushed, mixes no kinds, and leaves one number.
pub(super) struct Program {
    steps: Vec<Do>,
    /// Where its numbers are.
    pub(super) loads: Vec<Source>,
    /// Whether what it leaves is exact.
    pub(super) is_exact: bool,
}

/// Checks all expressions of a request.
///
/// # Errors
/// What is wrong with them.
pub(super) fn programs(expressions: &[Expression]) -> Result<Vec<Program>, &'static str> {
    if expressions.iter().map(|expression| expression.steps.len()).sum::<usize>() > MAX_STEPS {
        return Err("expressions of too many steps");
    }
    expressions.iter().map(|expression| Program::of(expression)).collect()
}

impl Program {
    fn of(expression: &Expression) -> Result<Program, &'static str> {
        let mut program =
            Program { steps: Vec::with_capacity(expression.steps.len()), loads: Vec::new(), is_exact: true };
        // Whether each number on the stack is exact.
        let mut stack: Vec<bool> = Vec::new();
        for step in &expression.steps {
            let step = program.step(step)?;
            match &step {
                Do::Load { number, .. } => stack.push(!matches!(number, Number::Float | Number::SortableFloat)),
                Do::Literal(_) => stack.push(true),
                Do::Add | Do::Subtract | Do::Multiply => {
                    let two = (stack.pop(), stack.pop());
                    let (Some(a), Some(b)) = two else { return Err("an expression that lacks an operand") };
                    if a != b {
                        return Err("an expression of exact and floating-point numbers");
                    }
                    stack.push(a);
                }
                Do::ToFloat | Do::FloorDivide(_) | Do::Limit(_) | Do::Truncate(_) | Do::Extract(_) => {
                    if stack.pop() != Some(true) {
                        return Err("an expression that lacks an exact operand");
                    }
                    stack.push(!matches!(step, Do::ToFloat));
                }
            }
            if stack.len() > MAX_STACK {
                return Err("an expression that is too deep");
            }
            program.steps.push(step);
        }
        let [is_exact] = stack[..] else { return Err("an expression that does not come to one number") };
        program.is_exact = is_exact;
        Ok(program)
    }

    fn step(&mut self, step: &Step) -> Result<Do, &'static str> {
        let operation = Operation::try_from(step.operation).map_err(|_| "an unknown operation")?;
        let literal = || exact_number(&step.literal).ok_or("an operation without its number");
        let part = || TimePart::try_from(step.part).map_err(|_| "an unknown part of time");
        Ok(match operation {
            Operation::Load => {
                let number = Number::try_from(step.number).map_err(|_| "an unknown form of number")?;
                let source = step.source.clone().filter(|source| source.expression.is_none());
                self.loads.push(source.ok_or("an operand that is nowhere")?);
                if !(0..=MAX_SCALE).contains(&step.scale) {
                    return Err("a number with too many digits behind its point");
                }
                let at = self.loads.len() - 1;
                Do::Load { at, number, is_inverted: step.is_inverted, scale: step.scale }
            }
            Operation::Literal => Do::Literal(literal()?),
            Operation::Add => Do::Add,
            Operation::Subtract => Do::Subtract,
            Operation::Multiply => Do::Multiply,
            Operation::FloorDivide => {
                Do::FloorDivide(Some(literal()?).filter(|by| *by > 0).ok_or("a division by nothing above 0")?)
            }
            Operation::Limit => Do::Limit(literal()?),
            Operation::ToFloat => Do::ToFloat,
            Operation::Truncate if part()? > TimePart::Year => return Err("a part of time that nothing begins at"),
            Operation::Truncate => Do::Truncate(part()?),
            Operation::Extract if matches!(part()?, TimePart::Microsecond | TimePart::Millisecond | TimePart::Week) => {
                return Err("a part of time that is not extracted");
            }
            Operation::Extract => Do::Extract(part()?),
        })
    }

    /// What it comes to in a row; `value` gives the bytes of each place it loads from. The stack is only lent.
    ///
    /// # Errors
    /// Bytes that are no number of their form, a result without room.
    pub(super) fn run<'a>(
        &self,
        stack: &mut Vec<Computed>,
        scratch: &mut Vec<u8>,
        value: impl Fn(usize) -> &'a [u8],
    ) -> Result<Computed, &'static str> {
        stack.clear();
        for step in &self.steps {
            let result = match step {
                Do::Load { at, number, is_inverted, scale } => {
                    let mut bytes = value(*at);
                    if *is_inverted {
                        scratch.clear();
                        scratch.extend(bytes.iter().map(|byte| !byte));
                        bytes = scratch;
                    }
                    if bytes.is_empty() { Computed::None } else { read(*number, *scale, bytes)? }
                }
                Do::Literal(number) => Computed::Exact(*number),
                Do::Add | Do::Subtract | Do::Multiply => {
                    let (b, a) = (pop(stack), pop(stack));
                    combine(step, a, b)?
                }
                _ => match pop(stack) {
                    Computed::Exact(number) => change(step, number)?,
                    other => other,
                },
            };
            stack.push(result);
        }
        Ok(pop(stack))
    }
}

fn pop(stack: &mut Vec<Computed>) -> Computed {
    stack.pop().unwrap_or(Computed::None)
}

const NO_ROOM: &str = "a result that has no room in 128 bits";

fn combine(step: &Do, a: Computed, b: Computed) -> Result<Computed, &'static str> {
    Ok(match (a, b) {
        (Computed::Exact(a), Computed::Exact(b)) => {
            let result = match step {
                Do::Add => a.checked_add(b),
                Do::Subtract => a.checked_sub(b),
                _ => a.checked_mul(b),
            };
            Computed::Exact(result.ok_or(NO_ROOM)?)
        }
        (Computed::Float(a), Computed::Float(b)) => Computed::Float(match step {
            Do::Add => a + b,
            Do::Subtract => a - b,
            _ => a * b,
        }),
        _ => Computed::None,
    })
}

fn change(step: &Do, number: i128) -> Result<Computed, &'static str> {
    Ok(match step {
        Do::FloorDivide(by) => Computed::Exact(number.div_euclid(*by)),
        Do::Limit(most) if number.unsigned_abs() > most.unsigned_abs() => {
            return Err("a result that has no room in its type");
        }
        Do::ToFloat => Computed::Float(number as f64),
        Do::Truncate(part) => Computed::Exact(truncated(*part, number)?),
        Do::Extract(part) => Computed::Exact(extracted(*part, number)?),
        _ => Computed::Exact(number),
    })
}

/// The number of some bytes, of which there is at least one.
pub(super) fn read(number: Number, scale: i32, bytes: &[u8]) -> Result<Computed, &'static str> {
    Ok(match number {
        Number::Integer | Number::SortableInteger => {
            Computed::Exact(integer(bytes, number == Number::SortableInteger)?.into())
        }
        Number::Float | Number::SortableFloat => Computed::Float(float(bytes, number == Number::SortableFloat)?),
        Number::Decimal => Computed::Exact(decimal(bytes, scale)?),
        Number::Timestamp | Number::SortableTimestamp => {
            let Some((ms, nanos)) = bytes.split_at_checked(8).filter(|(_, nanos)| nanos.len() == 4) else {
                return Err("a time of other than 12 bytes");
            };
            let ms = integer(ms, number == Number::SortableTimestamp)?;
            let nanos = nanos.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)) % 1_000_000;
            Computed::Exact(i128::from(ms) * 1000 + i128::from(nanos / 1000))
        }
    })
}

/// An integer of 1 to 8 bytes.
fn integer(bytes: &[u8], is_sortable: bool) -> Result<i64, &'static str> {
    if bytes.len() > 8 {
        return Err("an integer of more than 8 bytes");
    }
    let mut wide = [0; 8];
    let start = 8 - bytes.len();
    wide[start..].copy_from_slice(bytes);
    if is_sortable {
        wide[start] ^= 0x80;
    }
    let unused_bits = 8 * start as u32;
    Ok((i64::from_be_bytes(wide) << unused_bits) >> unused_bits)
}

/// A floating-point number of 4 or 8 bytes.
fn float(bytes: &[u8], is_sortable: bool) -> Result<f64, &'static str> {
    if let Ok(four) = bytes.try_into() {
        let bits = i32::from_be_bytes(four);
        let turned = bits.wrapping_sub(1);
        let plain = if is_sortable { turned ^ ((!turned >> 31) | i32::MIN) } else { bits };
        Ok(f64::from(f32::from_bits(plain as u32)))
    } else if let Ok(eight) = bytes.try_into() {
        let bits = i64::from_be_bytes(eight);
        let turned = bits.wrapping_sub(1);
        Ok(f64::from_bits(if is_sortable { turned ^ ((!turned >> 63) | i64::MIN) } else { bits } as u64))
    } else {
        Err("a floating-point number of neither 4 nor 8 bytes")
    }
}

/// Phoenix's decimal number in units of its digit `scale` behind the point, rounded half up. Follows: `PDataType#toBigDecimal`.
fn decimal(bytes: &[u8], scale: i32) -> Result<i128, &'static str> {
    const NOT_ONE: &str = "bytes that are no decimal number";
    let Some((&first, mut digits)) = bytes.split_first() else { return Err(NOT_ONE) };
    if first == 0x80 && digits.is_empty() {
        return Ok(0);
    }
    let is_negative = first & 0x80 == 0;
    let exponent = i32::from(if is_negative { !first & 0x7F } else { first & 0x7F });
    if is_negative && let Some((102, rest)) = digits.split_last() {
        digits = rest;
    }
    if digits.is_empty() {
        return Err(NOT_ONE);
    }
    let mut number: i128 = 0;
    // How many decimal digits the number has after the one in whose units it shall be; below 0, so many are lacking.
    let mut surplus = 2 * (digits.len() as i32 - 1 - (exponent - 65)) - scale;
    for (at, digit) in digits.iter().enumerate() {
        let two = if is_negative { 101u8.checked_sub(*digit) } else { digit.checked_sub(1) };
        let two = i128::from(two.filter(|two| *two < 100).ok_or(NOT_ONE)?);
        // A zero at the end is the encoding's, not the number's: it may have no room.
        let is_last_zero = at + 1 == digits.len() && two % 10 == 0;
        let (by, more) = if is_last_zero { (10, two / 10) } else { (100, two) };
        surplus -= i32::from(is_last_zero);
        number = number.checked_mul(by).and_then(|number| number.checked_add(more)).ok_or(NO_ROOM)?;
    }
    number = match surplus.cmp(&0) {
        Ordering::Equal => number,
        Ordering::Less if number == 0 => 0,
        Ordering::Less => {
            let by = 10i128.checked_pow(surplus.unsigned_abs()).ok_or(NO_ROOM)?;
            number.checked_mul(by).ok_or(NO_ROOM)?
        }
        // Half of 10 to this power is more than any number here.
        Ordering::Greater => 10i128.checked_pow(surplus.unsigned_abs()).map_or(0, |by| {
            let (whole, rest) = (number / by, number % by);
            whole + i128::from(rest >= by / 2)
        }),
    };
    Ok(if is_negative { -number } else { number })
}

fn truncated(part: TimePart, us: i128) -> Result<i128, &'static str> {
    if us.unsigned_abs() > MOST_US.unsigned_abs() {
        return Err("a time that has no room");
    }
    let to = |unit: i128| us - us.rem_euclid(unit);
    let day = us.div_euclid(DAY_US);
    Ok(match part {
        TimePart::Microsecond => us,
        TimePart::Millisecond => to(1000),
        TimePart::Second => to(SECOND_US),
        TimePart::Minute => to(MINUTE_US),
        TimePart::Hour => to(HOUR_US),
        TimePart::Day => to(DAY_US),
        // 1970-01-01 was a Thursday.
        TimePart::Week => (day - (day + 3).rem_euclid(7)) * DAY_US,
        _ => {
            let Date { year, month, .. } = Date::of(day);
            let month = match part {
                TimePart::Month => month,
                TimePart::Quarter => (month - 1) / 3 * 3 + 1,
                _ => 1,
            };
            Date { year, month, day: 1 }.days() * DAY_US
        }
    })
}

fn extracted(part: TimePart, us: i128) -> Result<i128, &'static str> {
    if us.unsigned_abs() > MOST_US.unsigned_abs() {
        return Err("a time that has no room");
    }
    let (days, of_day) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
    let date = Date::of(days);
    Ok(match part {
        TimePart::Hour => of_day / HOUR_US,
        TimePart::Minute => of_day / MINUTE_US % 60,
        TimePart::Day => date.day,
        TimePart::Month => date.month,
        TimePart::Quarter => (date.month - 1) / 3 + 1,
        TimePart::Year => date.year,
        TimePart::DayOfWeek => (days + 4).rem_euclid(7),
        TimePart::IsoDayOfWeek => (days + 3).rem_euclid(7) + 1,
        TimePart::DayOfYear => days - Date { year: date.year, month: 1, day: 1 }.days() + 1,
        _ => of_day / SECOND_US % 60,
    })
}

/// A day of the Gregorian calendar.
struct Date {
    year: i128,
    month: i128,
    day: i128,
}

/// Days of 400 years, after which the calendar repeats itself.
const ERA_DAYS: i128 = 146_097;
/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their odd day at the end.
const MARCH_TO_EPOCH_DAYS: i128 = 719_468;

impl Date {
    /// That of so many days after 1970-01-01.
    fn of(days: i128) -> Date {
        let days = days + MARCH_TO_EPOCH_DAYS;
        let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        Date { year: year_of_era + era * 400 + i128::from(month <= 2), month, day }
    }

    /// Days from 1970-01-01 to it.
    fn days(&self) -> i128 {
        let year = self.year - i128::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let from_march = (self.month + 9) % 12;
        let of_year = (153 * from_march + 2) / 5 + self.day - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        era * ERA_DAYS + of_era - MARCH_TO_EPOCH_DAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proto::grouped::exact_bytes;

    fn load(number: Number, scale: i32) -> Step {
        let source = Some(Source { qualifier: Bytes::from_static(b"q"), ..Source::default() });
        Step { operation: Operation::Load as i32, number: number as i32, source, scale, ..Step::default() }
    }

    fn step(operation: Operation) -> Step {
        Step { operation: operation as i32, ..Step::default() }
    }

    fn with(operation: Operation, number: i128) -> Step {
        Step { literal: Bytes::copy_from_slice(&exact_bytes(number)), ..step(operation) }
    }

    fn of_time(operation: Operation, part: TimePart) -> Step {
        Step { part: part as i32, ..step(operation) }
    }

    fn run(steps: &[Step], values: &[&[u8]]) -> Result<Computed, &'static str> {
        let program = Program::of(&Expression { steps: steps.to_vec() })?;
        program.run(&mut Vec::new(), &mut Vec::new(), |at| values[at])
    }

    #[test]
    fn a_price_less_its_discount_is_computed_exactly() {
        // 1234.56 and 0.05, as Phoenix writes them; 1234.56 * (1.00 - 0.05), in units of 0.0001.
        let (price, discount) = ([0xC2, 13, 35, 57], [0xC0, 6]);
        let steps = [
            load(Number::Decimal, 2),
            with(Operation::Literal, 100),
            load(Number::Decimal, 2),
            step(Operation::Subtract),
            step(Operation::Multiply),
        ];
        assert_eq!(run(&steps, &[&price, &discount]), Ok(Computed::Exact(123_456 * 95)));
        assert_eq!(run(&steps, &[&price, b""]), Ok(Computed::None));
        let limited = [&steps[..], &[with(Operation::Limit, 999)]].concat();
        assert!(run(&limited, &[&price, &discount]).is_err());
        let twice = [with(Operation::Literal, i128::MAX), with(Operation::Literal, 2), step(Operation::Multiply)];
        assert_eq!(run(&twice, &[]), Err(NO_ROOM));
    }

    #[test]
    fn decimals_have_the_digits_that_are_asked_for() {
        let negative = [0x3D, 89, 67, 45, 102];
        assert_eq!(decimal(&negative, 2), Ok(-123_456));
        assert_eq!(decimal(&negative, 1), Ok(-12_346));
        assert_eq!(decimal(&negative, 0), Ok(-1235));
        assert_eq!(decimal(&negative, 6), Ok(-1_234_560_000));
        assert_eq!(decimal(&[0x80], 2), Ok(0));
        assert_eq!(decimal(&[0xC0, 51], 0), Ok(1));
        assert_eq!(decimal(&[0xC0, 50], 0), Ok(0));
        for malformed in [&[0xC0][..], &[0xC0, 0], &[0xC0, 102], &[0x3F, 102], &[]] {
            assert!(decimal(malformed, 2).is_err(), "{malformed:?}");
        }
        assert_eq!(decimal(&[0xFF, 2], 38), Err(NO_ROOM));
        assert_eq!(decimal(&[0x81, 2], 2), Ok(0));
    }

    #[test]
    fn times_are_set_back_and_taken_apart() {
        // 1969-12-31 23:59:59.5, a Wednesday; 2024-02-29 12:34:56.789, a Thursday.
        let (before, leap) = (-500_000, 1_709_210_096_789_000);
        let time = |us: i128| {
            let (ms, nanos) = (us.div_euclid(1000) as i64 ^ i64::MIN, us.rem_euclid(1000) as u32 * 1000);
            [&ms.to_be_bytes()[..], &nanos.to_be_bytes()].concat()
        };
        let of = |operation, part, us: i128| match run(
            &[load(Number::SortableTimestamp, 0), of_time(operation, part)],
            &[&time(us)],
        ) {
            Ok(Computed::Exact(number)) => number,
            other => panic!("{other:?}"),
        };
        let day = DAY_US;
        let truncated = [
            (TimePart::Second, -SECOND_US, 1_709_210_096 * SECOND_US),
            (TimePart::Hour, -HOUR_US, 1_709_208_000 * SECOND_US),
            (TimePart::Day, -day, 19_782 * day),
            (TimePart::Week, -3 * day, 19_779 * day),
            (TimePart::Month, -31 * day, 19_754 * day),
            (TimePart::Quarter, -92 * day, 19_723 * day),
            (TimePart::Year, -365 * day, 19_723 * day),
        ];
        for (part, of_before, of_leap) in truncated {
            assert_eq!(of(Operation::Truncate, part, before), of_before, "{part:?}");
            assert_eq!(of(Operation::Truncate, part, leap), of_leap, "{part:?}");
        }
        let extracted = [
            (TimePart::Second, 59, 56),
            (TimePart::Minute, 59, 34),
            (TimePart::Hour, 23, 12),
            (TimePart::Day, 31, 29),
            (TimePart::Month, 12, 2),
            (TimePart::Quarter, 4, 1),
            (TimePart::Year, 1969, 2024),
            (TimePart::DayOfWeek, 3, 4),
            (TimePart::IsoDayOfWeek, 3, 4),
            (TimePart::DayOfYear, 365, 60),
        ];
        for (part, of_before, of_leap) in extracted {
            assert_eq!(of(Operation::Extract, part, before), of_before, "{part:?}");
            assert_eq!(of(Operation::Extract, part, leap), of_leap, "{part:?}");
        }
        for days in [-1_000_000, -719_468, -1, 0, 59, 60, 11_016, 1_000_000] {
            assert_eq!(Date::of(days).days(), days);
        }
    }

    #[test]
    fn columns_of_keys_that_descend_are_turned_round() {
        let inverted = Step { is_inverted: true, ..load(Number::SortableInteger, 0) };
        let bytes = (-7i32 ^ i32::MIN).to_be_bytes().map(|byte| !byte);
        assert_eq!(run(&[inverted], &[&bytes]), Ok(Computed::Exact(-7)));
        let float = [load(Number::Integer, 0), step(Operation::ToFloat), load(Number::Float, 0), step(Operation::Add)];
        assert_eq!(run(&float, &[&[2], &1.5f64.to_be_bytes()]), Ok(Computed::Float(3.5)));
    }

    #[test]
    fn expressions_that_make_no_sense_are_refused() {
        let mixed = [load(Number::Float, 0), with(Operation::Literal, 1), step(Operation::Add)];
        let deep = vec![with(Operation::Literal, 1); MAX_STACK + 1];
        let in_itself =
            Step { source: Some(Source { expression: Some(0), ..Source::default() }), ..load(Number::Integer, 0) };
        let unknown = Step { operation: 99, ..Step::default() };
        let of_float = [load(Number::Float, 0), of_time(Operation::Extract, TimePart::Year)];
        let literal = with(Operation::Literal, 1);
        let refused: [&[Step]; 12] = [
            &[],
            &[step(Operation::Add)],
            &mixed,
            &deep,
            &[in_itself],
            &[unknown],
            &of_float,
            &[step(Operation::Literal)],
            &[literal.clone(), literal.clone()],
            &[literal.clone(), with(Operation::FloorDivide, 0)],
            &[literal.clone(), of_time(Operation::Truncate, TimePart::DayOfWeek)],
            &[load(Number::Decimal, 39)],
        ];
        for steps in refused {
            assert!(Program::of(&Expression { steps: steps.to_vec() }).is_err(), "{steps:?}");
        }
        let many = vec![Expression { steps: vec![literal] }; MAX_STEPS + 1];
        assert!(programs(&many).is_err());
    }
}
