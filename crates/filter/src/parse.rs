//! Filters from text: the language of HBase's `ParseFilter`, spoken by the shell, Thrift and REST.
//!
//! ```text
//! PrefixFilter('row') AND (SKIP ValueFilter(!=, 'binary:x') OR WHILE RowFilter(<, 'regexstring:^a'))
//! ```
//!
//! SKIP and WHILE bind tightest, then AND, then OR; neighbours under one operator become one list. A quote within
//! quotes is written twice. What HBase refuses is refused with its exception (`IllegalArgumentException` throughout);
//! an operator that HBase's handling of parentheses loses, as in `(a OR b AND c)`, is honoured here.

use crate::{Comparator, CompareOp, Error, Filter, ListOperator, MAX_DEPTH, PageStart, RegexSpec, SingleColumnValue};
use crate::{MAX_COMPILED_BYTES, RegexEngine, flags};
use bytes::Bytes;

/// The filters that the language knows, by their names in it.
pub const SUPPORTED: [&str; 19] = [
    "ColumnCountGetFilter",
    "ColumnPaginationFilter",
    "ColumnPrefixFilter",
    "ColumnRangeFilter",
    "ColumnValueFilter",
    "DependentColumnFilter",
    "FamilyFilter",
    "FirstKeyOnlyFilter",
    "InclusiveStopFilter",
    "KeyOnlyFilter",
    "MultipleColumnPrefixFilter",
    "PageFilter",
    "PrefixFilter",
    "QualifierFilter",
    "RowFilter",
    "SingleColumnValueExcludeFilter",
    "SingleColumnValueFilter",
    "TimestampsFilter",
    "ValueFilter",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Parenthesis,
    Skip,
    While,
    And,
    Or,
}

impl Operator {
    fn binding(self) -> u8 {
        match self {
            Operator::Parenthesis => 0,
            Operator::Skip | Operator::While => 1,
            Operator::And => 2,
            Operator::Or => 3,
        }
    }
}

/// The filter that `text` describes.
///
/// # Errors
/// [`crate::ErrorKind::IllegalArgument`] saying which part is wrong.
pub fn parse_filter(text: &[u8]) -> Result<Filter, Error> {
    let mut stacks = Stacks::default();
    let (mut at, mut compiled_bytes) = (0, 0);
    while at < text.len() {
        match text[at] {
            b'(' => stacks.operators.push(Operator::Parenthesis),
            b' ' | b'\t' => {}
            b')' => stacks.close()?,
            _ => {
                if let Some((operator, length)) = operator_at(text, at) {
                    stacks.operator(operator)?;
                    at += length;
                } else {
                    let expression = simple_expression(&text[at..])?;
                    let filter = simple_filter(expression)?;
                    compiled_bytes += filter.compiled_bytes();
                    if compiled_bytes > MAX_COMPILED_BYTES {
                        return Err(Error::illegal(format!(
                            "the regular expressions of the filter need more than {MAX_COMPILED_BYTES} bytes compiled"
                        )));
                    }
                    stacks.filters.push((filter, 1));
                    at += expression.len();
                }
                continue;
            }
        }
        at += 1;
    }
    stacks.finish()
}

/// The operator word at `at`, if what surrounds it makes it one.
fn operator_at(text: &[u8], at: usize) -> Option<(Operator, usize)> {
    let before = at.checked_sub(1).map(|i| text[i]);
    let words: [(&[u8], Operator); 4] =
        [(b"OR", Operator::Or), (b"AND", Operator::And), (b"SKIP", Operator::Skip), (b"WHILE", Operator::While)];
    let (word, operator) = words.into_iter().find(|(word, _)| text[at..].starts_with(word))?;
    let begins = match operator {
        Operator::Or | Operator::And => matches!(before, Some(b' ' | b')')),
        _ => matches!(before, None | Some(b' ' | b')' | b'(')),
    };
    let ends = matches!(text.get(at + word.len()), Some(b' ' | b'('));
    (begins && ends).then_some((operator, word.len()))
}

/// Operators waiting for their operands, and finished filters with their depth.
#[derive(Default)]
struct Stacks {
    operators: Vec<Operator>,
    filters: Vec<(Filter, usize)>,
}

impl Stacks {
    fn operator(&mut self, operator: Operator) -> Result<(), Error> {
        while let Some(top) = self.operators.last()
            && *top != Operator::Parenthesis
            && top.binding() < operator.binding()
        {
            self.apply()?;
        }
        self.operators.push(operator);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        loop {
            match self.operators.last() {
                None => return Err(Error::illegal("Mismatched parenthesis")),
                Some(Operator::Parenthesis) => break,
                Some(_) => self.apply()?,
            }
        }
        self.operators.pop();
        Ok(())
    }

    /// Applies the operator on top, and for a list its equals below it.
    fn apply(&mut self) -> Result<(), Error> {
        let Some(operator) = self.operators.pop() else { return Ok(()) };
        let (filter, depth) = match operator {
            // A parenthesis left open closes at the end, if there is something in it.
            Operator::Parenthesis => self.filters.pop().ok_or_else(|| Error::illegal("Incorrect Filter String"))?,
            Operator::Skip => {
                let (inner, depth) = self.filters.pop().ok_or_else(missing("a SKIP wraps a filter"))?;
                (Filter::Skip { filter: Box::new(inner) }, depth + 1)
            }
            Operator::While => {
                let (inner, depth) = self.filters.pop().ok_or_else(missing("a WHILE wraps a filter"))?;
                (Filter::WhileMatch { filter: Box::new(inner) }, depth + 1)
            }
            Operator::And | Operator::Or => {
                let (list, what) = match operator {
                    Operator::And => (ListOperator::MustPassAll, "an AND needs two filters"),
                    _ => (ListOperator::MustPassOne, "an OR needs two filters"),
                };
                let mut count = 2;
                while self.operators.last() == Some(&operator) {
                    self.operators.pop();
                    count += 1;
                }
                let from = self.filters.len().checked_sub(count).ok_or_else(missing(what))?;
                let depth = self.filters[from..].iter().map(|(_, depth)| *depth).max().unwrap_or(0);
                let filters = self.filters.drain(from..).map(|(filter, _)| filter).collect();
                (Filter::List { operator: list, filters }, depth + 1)
            }
        };
        if depth > MAX_DEPTH {
            return Err(Error::illegal(format!("filters are nested deeper than {MAX_DEPTH}")));
        }
        self.filters.push((filter, depth));
        Ok(())
    }

    fn finish(mut self) -> Result<Filter, Error> {
        while !self.operators.is_empty() {
            self.apply()?;
        }
        match (self.filters.pop(), self.filters.is_empty()) {
            (Some((filter, _)), true) => Ok(filter),
            _ => Err(Error::illegal("Incorrect Filter String")),
        }
    }
}

/// `Name(arguments)` at the start of `text`: up to the first closing parenthesis that is not quoted.
fn simple_expression(text: &[u8]) -> Result<&[u8], Error> {
    let (mut at, mut quoted) = (0, false);
    while at < text.len() {
        match text[at] {
            b'\'' if text.get(at + 1) == Some(&b'\'') => at += 1,
            b'\'' => quoted = !quoted,
            b')' if !quoted => return Ok(&text[..=at]),
            _ => {}
        }
        at += 1;
    }
    Err(Error::illegal("Incorrect Filter String"))
}

/// Arguments as they are written: quoted ones keep their outer quotes, but lose the doubling within.
fn arguments(text: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let incomplete = || Error::illegal("Incorrect argument list");
    let mut at = text.iter().position(|c| *c == b'(').ok_or_else(incomplete)? + 1;
    let mut arguments = Vec::new();
    while at < text.len() {
        match text[at] {
            b' ' | b',' | b')' => at += 1,
            b'\'' => {
                let mut argument = vec![b'\''];
                loop {
                    at += 1;
                    match text.get(at).ok_or_else(incomplete)? {
                        b'\'' if text.get(at + 1) == Some(&b'\'') => {
                            argument.push(b'\'');
                            at += 1;
                        }
                        b'\'' => break,
                        c => argument.push(*c),
                    }
                }
                argument.push(b'\'');
                arguments.push(argument);
                // Whatever follows the quote separates.
                at += 2;
            }
            _ => {
                let length = text[at..].iter().position(|c| matches!(c, b' ' | b',' | b')')).ok_or_else(incomplete)?;
                arguments.push(text[at..at + length].to_vec());
                at += length;
            }
        }
    }
    Ok(arguments)
}

fn simple_filter(text: &[u8]) -> Result<Filter, Error> {
    let name_length = text.iter().position(|c| matches!(c, b'(' | b' ')).unwrap_or(0);
    if name_length == 0 {
        return Err(Error::illegal("Incorrect Filter Name"));
    }
    let name = String::from_utf8_lossy(&text[..name_length]);
    let arguments = arguments(text)?;
    if !SUPPORTED.contains(&&*name) {
        return Err(Error::illegal(format!("Filter Name {name} not supported")));
    }
    let made = make(&name, &Arguments(&arguments)).and_then(|filter| filter.check().map(|()| filter));
    made.map_err(|e| {
        Error::illegal(format!("Incorrect filter string {}: {}", String::from_utf8_lossy(text), e.message))
    })
}

fn missing(what: &'static str) -> impl FnOnce() -> Error {
    move || Error::illegal(format!("Incorrect input string - {what}"))
}

struct Arguments<'a>(&'a [Vec<u8>]);

impl Arguments<'_> {
    fn expect(&self, counts: &[usize]) -> Result<(), Error> {
        if counts.contains(&self.0.len()) {
            return Ok(());
        }
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        Err(Error::illegal(format!("Expected {} but got: {}", counts.join(" or "), self.0.len())))
    }

    fn text(&self, i: usize) -> Result<Bytes, Error> {
        match &self.0[i][..] {
            [b'\'', inner @ .., b'\''] => Ok(Bytes::copy_from_slice(inner)),
            _ => Err(Error::illegal("removeQuotesFromByteArray needs a quoted byte array")),
        }
    }

    fn long(&self, i: usize) -> Result<i64, Error> {
        let text = &self.0[i];
        let (negative, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, &text[..]),
        };
        let mut number = 0i64;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(Error::illegal("Byte Array should only contain digits"));
            }
            let longer = number.checked_mul(10).and_then(|n| n.checked_add(i64::from(digit - b'0')));
            number = longer.ok_or_else(|| Error::illegal("Long Argument too large"))?;
        }
        Ok(if negative { -number } else { number })
    }

    fn int(&self, i: usize) -> Result<i32, Error> {
        let long = self.long(i)?;
        let message = if long > 0 { "Integer Argument too large" } else { "Integer Argument too small" };
        i32::try_from(long).map_err(|_| Error::illegal(message))
    }

    fn boolean(&self, i: usize) -> Result<bool, Error> {
        match &self.0[i] {
            text if text.eq_ignore_ascii_case(b"true") => Ok(true),
            text if text.eq_ignore_ascii_case(b"false") => Ok(false),
            _ => Err(Error::illegal("Incorrect Boolean Expression")),
        }
    }

    fn op(&self, i: usize) -> Result<CompareOp, Error> {
        Ok(match &self.0[i][..] {
            b"<" => CompareOp::Less,
            b"<=" => CompareOp::LessOrEqual,
            b"=" => CompareOp::Equal,
            b"!=" => CompareOp::NotEqual,
            b">=" => CompareOp::GreaterOrEqual,
            b">" => CompareOp::Greater,
            _ => return Err(Error::illegal("Invalid compare operator")),
        })
    }

    fn comparator(&self, i: usize) -> Result<Comparator, Error> {
        let text = self.text(i)?;
        let colon = text.iter().position(|c| *c == b':').ok_or_else(|| Error::illegal("Incorrect comparator"))?;
        let value = text.slice(colon + 1..);
        let regex = |flags| {
            let pattern = String::from_utf8_lossy(&value);
            RegexSpec::new(&pattern, flags, "UTF-8", RegexEngine::Java).map(Comparator::Regex)
        };
        match &text[..colon] {
            b"binary" => Ok(Comparator::Binary { value }),
            b"binaryprefix" => Ok(Comparator::BinaryPrefix { value }),
            b"regexstring" => regex(flags::DOTALL),
            b"regexstringnocase" => regex(flags::CASE_INSENSITIVE | flags::DOTALL),
            b"substring" => Ok(Comparator::substring(&String::from_utf8_lossy(&value))),
            _ => Err(Error::illegal("Incorrect comparatorType")),
        }
    }

    /// An operator and the comparator after it; text is searched for, not compared.
    fn comparison(&self, i: usize) -> Result<(CompareOp, Comparator), Error> {
        let (op, comparator) = (self.op(i)?, self.comparator(i + 1)?);
        let searches = matches!(comparator, Comparator::Regex(_) | Comparator::Substring { .. });
        if searches && !matches!(op, CompareOp::Equal | CompareOp::NotEqual) {
            let message = "A regexstring comparator and substring comparator can only be used with EQUAL and NOT_EQUAL";
            return Err(Error::illegal(message));
        }
        Ok((op, comparator))
    }

    fn only_comparison(&self) -> Result<(CompareOp, Option<Comparator>), Error> {
        self.expect(&[2])?;
        self.comparison(0).map(|(op, comparator)| (op, Some(comparator)))
    }

    fn only_text(&self) -> Result<Bytes, Error> {
        self.expect(&[1])?;
        self.text(0)
    }

    fn single_column(&self) -> Result<SingleColumnValue, Error> {
        self.expect(&[4, 6])?;
        let (family, qualifier) = (self.text(0)?, self.text(1)?);
        let (op, comparator) = self.comparison(2)?;
        let flags = if self.0.len() == 6 { (self.boolean(4)?, self.boolean(5)?) } else { (false, true) };
        let (filter_if_missing, latest_version_only) = flags;
        Ok(SingleColumnValue {
            family: Some(family),
            qualifier: Some(qualifier),
            op,
            comparator,
            filter_if_missing,
            latest_version_only,
        })
    }

    fn dependent_column(&self) -> Result<Filter, Error> {
        self.expect(&[2, 3, 5])?;
        let (family, qualifier) = (Some(self.text(0)?), Some(self.text(1)?));
        let drop_dependent_column = self.0.len() > 2 && self.boolean(2)?;
        let (op, comparator) =
            if self.0.len() == 5 { (self.op(3)?, Some(self.comparator(4)?)) } else { (CompareOp::NoOp, None) };
        Ok(Filter::DependentColumn { family, qualifier, drop_dependent_column, op, comparator })
    }

    fn column_range(&self) -> Result<Filter, Error> {
        self.expect(&[4])?;
        let bound = |i| self.text(i).map(|column| Some(column).filter(|c| !c.is_empty()));
        Ok(Filter::ColumnRange {
            min_column: bound(0)?,
            min_inclusive: self.boolean(1)?,
            max_column: bound(2)?,
            max_inclusive: self.boolean(3)?,
        })
    }
}

fn make(name: &str, arguments: &Arguments<'_>) -> Result<Filter, Error> {
    let all = 0..arguments.0.len();
    Ok(match name {
        "ColumnCountGetFilter" => {
            arguments.expect(&[1])?;
            Filter::ColumnCountGet { limit: arguments.int(0)? }
        }
        "ColumnPaginationFilter" => {
            arguments.expect(&[2])?;
            Filter::ColumnPagination { limit: arguments.int(0)?, start: PageStart::Offset(arguments.int(1)?) }
        }
        "ColumnPrefixFilter" => Filter::ColumnPrefix { prefix: arguments.only_text()? },
        "ColumnRangeFilter" => arguments.column_range()?,
        "ColumnValueFilter" => {
            arguments.expect(&[4])?;
            let (family, qualifier) = (arguments.text(0)?, arguments.text(1)?);
            let (op, comparator) = arguments.comparison(2)?;
            Filter::ColumnValue { family, qualifier, op, comparator }
        }
        "DependentColumnFilter" => arguments.dependent_column()?,
        "FamilyFilter" => {
            let (op, comparator) = arguments.only_comparison()?;
            Filter::Family { op, comparator }
        }
        "FirstKeyOnlyFilter" => {
            arguments.expect(&[0])?;
            Filter::FirstKeyOnly
        }
        "InclusiveStopFilter" => Filter::InclusiveStop { stop_row: Some(arguments.only_text()?) },
        "KeyOnlyFilter" => {
            arguments.expect(&[0, 1])?;
            Filter::KeyOnly { len_as_val: !arguments.0.is_empty() && arguments.boolean(0)? }
        }
        "MultipleColumnPrefixFilter" => {
            let prefixes: Vec<Bytes> = all.map(|i| arguments.text(i)).collect::<Result<_, _>>()?;
            Filter::multiple_column_prefix(prefixes)
        }
        "PageFilter" => {
            arguments.expect(&[1])?;
            Filter::Page { page_size: arguments.long(0)? }
        }
        "PrefixFilter" => Filter::Prefix { prefix: Some(arguments.only_text()?) },
        "QualifierFilter" => {
            let (op, comparator) = arguments.only_comparison()?;
            Filter::Qualifier { op, comparator }
        }
        "RowFilter" => {
            let (op, comparator) = arguments.only_comparison()?;
            Filter::Row { op, comparator }
        }
        "SingleColumnValueExcludeFilter" => Filter::SingleColumnValueExclude(arguments.single_column()?),
        "SingleColumnValueFilter" => Filter::SingleColumnValue(arguments.single_column()?),
        "TimestampsFilter" => {
            let timestamps: Vec<i64> = all.map(|i| arguments.long(i)).collect::<Result<_, _>>()?;
            Filter::timestamps(timestamps, false)
        }
        "ValueFilter" => {
            let (op, comparator) = arguments.only_comparison()?;
            Filter::Value { op, comparator }
        }
        _ => return Err(Error::illegal(format!("Filter Name {name} not supported"))),
    })
}

#[cfg(test)]
mod tests;
