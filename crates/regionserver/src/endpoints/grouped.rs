//! Aggregates by group, computed while a region's rows are walked: Basalt's own endpoint, for SQL. It knows bytes and where they lie.
//!
//! What it keeps is bounded: a region with too many groups is an error, and the client reads the rows instead.

use super::expression::{self, Computed, Program, programs};
use super::row_values::{self, At, RowValues};
use super::walk::{self, Fold};
use crate::blocking::Caller;
use crate::server::RegionServer;
use bytes::Bytes;
use cell::CellRef;
use convert::from_proto;
use proto::grouped::{
    Aggregate, Function, Group, METHOD, METHOD_OF_EXPRESSIONS, Number, Request, Response, SERVICE, Source, State,
    float_bytes,
};
use proto::{Message, pb};
use region::Region;
use rpc::exception::Exception;
use sketch::Sketch;
use std::collections::HashMap;
use std::sync::Arc;

/// What the groups of one call may take together.
const MAX_GROUP_BYTES: usize = 16 << 20;
/// What each takes besides its bytes, about.
const GROUP_OVERHEAD_BYTES: usize = 128;
/// Groups and aggregates of a request: more are no query's.
const MAX_SOURCES: usize = 1000;

/// Whether a call is for this endpoint.
pub(super) fn is_meant(call: &pb::CoprocessorServiceCall) -> bool {
    call.service_name == SERVICE && [METHOD, METHOD_OF_EXPRESSIONS].contains(&&*call.method_name)
}

/// A request that can be answered.
pub(super) struct Asked {
    request: Request,
    programs: Vec<Program>,
}

/// Reads a request.
///
/// # Errors
/// It is not readable, or names what is not there.
pub(super) fn decode(bytes: Bytes) -> Result<Asked, Exception> {
    let refused = |why: String| Exception::do_not_retry(format!("cannot read the request of {SERVICE}: {why}"));
    let request = Request::decode(bytes).map_err(|error| refused(error.to_string()))?;
    if request.groups.len() + request.aggregates.len() > MAX_SOURCES {
        return Err(refused(format!("more than {MAX_SOURCES} groups and aggregates")));
    }
    let programs = programs(&request.expressions).map_err(|why| refused(why.to_owned()))?;
    let of_aggregates = request.aggregates.iter().filter_map(|aggregate| aggregate.source.as_ref());
    let sources = request.groups.iter().chain(of_aggregates);
    row_values::check_sources(sources, &request.key_columns, &programs).map_err(|why| refused(why.to_owned()))?;
    let is_exact = |source: &Source| source.expression.is_none_or(|at| programs[at as usize].is_exact);
    if !request.groups.iter().all(is_exact) {
        return Err(refused("groups of floating-point numbers".to_owned()));
    }
    for aggregate in &request.aggregates {
        let function = Function::try_from(aggregate.function).map_err(|_| refused("an unknown function".to_owned()))?;
        let number = Number::try_from(aggregate.number);
        if number.map_or(true, |number| number > Number::SortableFloat) {
            return Err(refused("an unknown form of number".to_owned()));
        }
        let Some(source) = &aggregate.source else {
            if function != Function::CountRows {
                return Err(refused("an aggregate of nothing".to_owned()));
            }
            continue;
        };
        if matches!(function, Function::Min | Function::Max) && !is_exact(source) {
            return Err(refused("the least or greatest of floating-point numbers".to_owned()));
        }
    }
    Ok(Asked { request, programs })
}

/// The region's share.
///
/// # Errors
/// Those of the scan; values that are no numbers; too many groups.
pub(super) async fn aggregate(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    mut asked: Asked,
    caller: &Caller,
) -> Result<pb::NameBytesPair, Exception> {
    let mut scan = from_proto::scan(asked.request.scan.take().unwrap_or_default())?;
    let groups = Groups::new(asked);
    if groups.values.needs_no_cells() {
        row_values::leave_values(&mut scan);
    }
    let region_end_key = region.info().end_key.clone();
    let answer = |groups: Groups| Response { region_end_key, groups: groups.into_groups() }.encode_to_vec();
    let value = walk::fold(server, region, scan, groups, answer, caller).await?;
    Ok(pb::NameBytesPair { name: SERVICE.to_owned(), value: Some(value.into()) })
}

/// What one aggregate has come to.
#[derive(Default)]
struct Running {
    count: u64,
    sum: i128,
    float_sum: f64,
    extreme: Option<Vec<u8>>,
    /// Made with the first value that it is to take in.
    sketch: Option<Box<Sketch>>,
}

struct Groups {
    values: RowValues,
    aggregates: Vec<Aggregate>,
    of_groups: Vec<At>,
    of_aggregates: Vec<Option<At>>,
    group_key: Vec<u8>,
    /// Numbers of the groups that there are.
    groups: HashMap<Vec<u8>, usize>,
    /// The aggregates of each, one group after the other.
    states: Vec<Running>,
    /// The group of the row before: neighbours are often of one.
    last_group: Option<usize>,
    last_group_key: Vec<u8>,
    bytes: usize,
    failed: Option<Exception>,
}

impl Groups {
    fn new(Asked { request, programs }: Asked) -> Groups {
        let mut values = RowValues::new(request.key_prefix_bytes, request.key_columns, programs);
        Groups {
            of_groups: request.groups.iter().map(|source| values.at(source)).collect(),
            of_aggregates: request.aggregates.iter().map(|a| a.source.as_ref().map(|of| values.at(of))).collect(),
            aggregates: request.aggregates,
            values,
            group_key: Vec::new(),
            groups: HashMap::new(),
            states: Vec::new(),
            last_group: None,
            last_group_key: Vec::new(),
            bytes: 0,
            failed: None,
        }
    }

    /// Number of the group that the row which has been walked is in.
    fn group(&mut self) -> usize {
        if let Some(last) = self.last_group
            && self.is_in_last_group()
        {
            return last;
        }
        let mut key = std::mem::take(&mut self.group_key);
        key.clear();
        for at in &self.of_groups {
            let value = self.values.value(*at);
            key.extend_from_slice(&(value.len() as u32).to_be_bytes());
            key.extend_from_slice(value);
        }
        let group = self.groups.get(&key[..]).copied().unwrap_or_else(|| {
            let number = self.groups.len();
            self.bytes += key.len() + GROUP_OVERHEAD_BYTES * (1 + self.of_aggregates.len());
            self.groups.insert(key.clone(), number);
            self.states.extend(self.of_aggregates.iter().map(|_| Running::default()));
            number
        });
        self.last_group = Some(group);
        // The other is written over by the next row.
        self.group_key = std::mem::replace(&mut self.last_group_key, key);
        group
    }

    /// Whether the row that has been walked is in the group of the one before.
    fn is_in_last_group(&self) -> bool {
        let mut rest = &self.last_group_key[..];
        self.of_groups.iter().all(|at| {
            let value = self.values.value(*at);
            let part = rest.split_at_checked(4 + value.len());
            part.is_some_and(|(part, after)| {
                rest = after;
                part[..4] == (value.len() as u32).to_be_bytes() && part[4..] == *value
            })
        })
    }

    /// Takes in the row that has been walked.
    fn take_row(&mut self) -> Result<(), Exception> {
        let group = self.group();
        let mut states = std::mem::take(&mut self.states);
        let number = self.of_aggregates.len();
        for (index, running) in states[group * number..][..number].iter_mut().enumerate() {
            let aggregate = &self.aggregates[index];
            let grown = match self.of_aggregates[index] {
                Some(At::Computed(at)) => running.add_computed(aggregate.function(), self.values.computed(at)),
                at => running.add(aggregate, at.map(|at| self.values.value(at))),
            };
            self.bytes += grown.map_err(|why| self.values.bad_value(why))?;
        }
        self.states = states;
        if self.bytes > MAX_GROUP_BYTES {
            let groups = self.groups.len();
            return Err(Exception::do_not_retry(format!("{groups} groups take more than {MAX_GROUP_BYTES} bytes")));
        }
        Ok(())
    }

    fn into_groups(mut self) -> Vec<Group> {
        let (number_of_keys, number_of_states) = (self.of_groups.len(), self.of_aggregates.len());
        let group = |(key, number): (Vec<u8>, usize)| {
            let key = Bytes::from(key);
            let mut keys = Vec::with_capacity(number_of_keys);
            let mut at = 0;
            while let Some(length) = key.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes) {
                let end = at + 4 + length as usize;
                keys.push(key.slice(at + 4..end));
                at = end;
            }
            let states = self.states[number * number_of_states..][..number_of_states].iter_mut();
            Group { keys, states: states.map(|running| std::mem::take(running).into_state()).collect() }
        };
        self.groups.into_iter().map(group).collect()
    }
}

impl Fold for Groups {
    fn cell(&mut self, cell: CellRef<'_>) -> Result<(), Exception> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        self.values.take_cell(cell);
        Ok(())
    }

    fn end_of_result(&mut self) {
        let taken = match self.values.end_of_row() {
            Ok(true) if self.failed.is_none() => self.take_row(),
            Ok(_) => Ok(()),
            Err(e) => Err(e),
        };
        if let Err(e) = taken {
            self.failed.get_or_insert(e);
        }
    }

    fn finish(&mut self) -> Result<(), Exception> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Running {
    /// Takes in a row's value; none where the aggregate is of rows. Gives back how many bytes more it holds.
    fn add(&mut self, aggregate: &Aggregate, value: Option<&[u8]>) -> Result<usize, &'static str> {
        let function = aggregate.function();
        let Some(value) = value.filter(|_| function != Function::CountRows) else {
            self.count += u64::from(function == Function::CountRows);
            return Ok(0);
        };
        if value.is_empty() {
            return Ok(0);
        }
        self.count += 1;
        match function {
            Function::CountRows | Function::Count => {}
            Function::Sum => self.add_number(expression::read(aggregate.number(), 0, value)?)?,
            Function::Min | Function::Max => return Ok(self.compare(function, value)),
            Function::Distinct => return Ok(self.sketch_of(aggregate, value)),
        }
        Ok(0)
    }

    /// The same of what an expression came to, with the bytes of that where it is exact.
    fn add_computed(
        &mut self,
        function: Function,
        (number, bytes): &(Computed, Vec<u8>),
    ) -> Result<usize, &'static str> {
        if *number == Computed::None && function != Function::CountRows {
            return Ok(0);
        }
        self.count += 1;
        match function {
            Function::CountRows | Function::Count => {}
            Function::Sum => self.add_number(*number)?,
            Function::Min | Function::Max => return Ok(self.compare(function, bytes)),
            Function::Distinct => {
                return Ok(match number {
                    Computed::Float(number) => self.sketched(sketch::hash(&float_bytes(*number))),
                    _ => self.sketched(sketch::hash(bytes)),
                });
            }
        }
        Ok(0)
    }

    /// Takes a value's bytes into the sketch. Gives back how many bytes more it holds.
    fn sketch_of(&mut self, aggregate: &Aggregate, value: &[u8]) -> usize {
        let space = if aggregate.is_inverted { !b' ' } else { b' ' };
        let padding = value.iter().rev().take_while(|byte| aggregate.is_padded && **byte == space).count();
        let value = &value[..value.len() - padding];
        if aggregate.is_inverted {
            let turned: Vec<u8> = value.iter().map(|byte| !byte).collect();
            return self.sketched(sketch::hash(&turned));
        }
        self.sketched(sketch::hash(value))
    }

    fn sketched(&mut self, hash: u64) -> usize {
        let before = if self.sketch.is_none() { size_of::<Sketch>() } else { 0 };
        before + self.sketch.get_or_insert_default().add_hash(hash)
    }

    /// Keeps a value that is less, or greater, than those before. Gives back how many bytes more that takes.
    fn compare(&mut self, function: Function, value: &[u8]) -> usize {
        let replaces = match function {
            Function::Min => self.extreme.as_deref().is_none_or(|least| value < least),
            _ => self.extreme.as_deref().is_none_or(|greatest| value > greatest),
        };
        if !replaces {
            return 0;
        }
        let before = self.extreme.as_ref().map_or(0, Vec::len);
        let extreme = self.extreme.get_or_insert_default();
        extreme.clear();
        extreme.extend_from_slice(value);
        value.len().saturating_sub(before)
    }

    fn add_number(&mut self, number: Computed) -> Result<(), &'static str> {
        match number {
            Computed::None => {}
            Computed::Exact(number) => {
                self.sum = self.sum.checked_add(number).ok_or("a sum that has no room in 128 bits")?;
            }
            Computed::Float(number) => self.float_sum += number,
        }
        Ok(())
    }

    fn into_state(self) -> State {
        State {
            count: self.count,
            sum: if self.sum == 0 { Bytes::new() } else { Bytes::copy_from_slice(&self.sum.to_be_bytes()) },
            float_sum: self.float_sum,
            extreme: self.extreme.map(Bytes::from).unwrap_or_default(),
            sketch: self.sketch.map(|sketch| sketch.to_bytes().into()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CellBlock, CellSpec, CellType};
    use proto::grouped::{Expression, KeyColumn, Operation, Step, exact_bytes, exact_number};

    fn source(key_column: Option<u32>, qualifier: &'static str) -> Source {
        let family = if key_column.is_some() { Bytes::new() } else { Bytes::from_static(b"f") };
        Source { key_column, family, qualifier: Bytes::from_static(qualifier.as_bytes()), expression: None }
    }

    fn aggregate(function: Function, number: Number) -> Aggregate {
        let source = (function != Function::CountRows).then(|| source(None, "n"));
        Aggregate { function: function as i32, source, number: number as i32, ..Aggregate::default() }
    }

    fn asked(request: Request) -> Asked {
        decode(request.encode_to_vec().into()).unwrap_or_else(|e| panic!("{e}"))
    }

    fn fold(request: Request, rows: &[(&str, Option<i64>)]) -> Vec<Group> {
        let mut groups = Groups::new(asked(request));
        for (row, value) in rows {
            let value = value.map(|v| (v ^ i64::MIN).to_be_bytes());
            let qualifier: &[u8] = if value.is_some() { b"n" } else { b"_0" };
            let block = CellBlock::from_specs([CellSpec {
                row: row.as_bytes(),
                family: b"f",
                qualifier,
                timestamp: 1,
                type_code: CellType::Put.code(),
                value: value.as_ref().map_or(b"x", |v| &v[..]),
                tags: b"",
            }]);
            block.iter().for_each(|cell| groups.cell(cell).expect("small"));
            groups.end_of_result();
        }
        groups.end_of_result();
        groups.finish().expect("small");
        let mut groups = groups.into_groups();
        groups.sort_by(|a, b| a.keys.cmp(&b.keys));
        groups
    }

    #[test]
    fn rows_are_grouped_by_a_column_of_their_key_and_folded() {
        let number = Number::SortableInteger;
        let request = Request {
            key_columns: vec![
                KeyColumn { width_bytes: 1, separator: None },
                KeyColumn { width_bytes: 0, separator: Some(0) },
            ],
            groups: vec![source(Some(1), "")],
            aggregates: vec![
                aggregate(Function::CountRows, number),
                aggregate(Function::Count, number),
                aggregate(Function::Sum, number),
                aggregate(Function::Min, number),
                aggregate(Function::Max, number),
            ],
            ..Request::default()
        };
        let groups = fold(request, &[("Aab\0x", Some(5)), ("Bab\0y", Some(-7)), ("Cab\0z", None), ("Dc\0", Some(1))]);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].keys, [Bytes::from_static(b"ab")]);
        let states = &groups[0].states;
        assert_eq!(states.iter().map(|s| s.count).collect::<Vec<_>>(), [3, 2, 2, 2, 2]);
        assert_eq!(states[2].sum, Bytes::copy_from_slice(&(-2i128).to_be_bytes()));
        assert_eq!(states[3].extreme[..], (-7i64 ^ i64::MIN).to_be_bytes());
        assert_eq!(states[4].extreme[..], (5i64 ^ i64::MIN).to_be_bytes());
        assert_eq!((groups[1].keys[0].as_ref(), groups[1].states[2].count), (&b"c"[..], 1));
    }

    #[test]
    fn what_is_computed_of_rows_is_grouped_and_folded() {
        let number = |operation, literal: i128| Step {
            operation: operation as i32,
            literal: Bytes::copy_from_slice(&exact_bytes(literal)),
            ..Step::default()
        };
        let load = || Step {
            source: Some(source(None, "n")),
            number: Number::SortableInteger as i32,
            ..number(Operation::Load, 0)
        };
        let of = |at| Some(Source { expression: Some(at), ..Source::default() });
        let aggregate = |function| Aggregate { function: function as i32, source: of(1), ..Aggregate::default() };
        let request = Request {
            groups: of(0).into_iter().collect(),
            aggregates: [Function::CountRows, Function::Count, Function::Sum, Function::Min, Function::Max]
                .map(aggregate)
                .to_vec(),
            expressions: vec![
                Expression { steps: vec![load(), number(Operation::FloorDivide, 10)] },
                Expression { steps: vec![load(), number(Operation::Literal, 3), number(Operation::Multiply, 0)] },
            ],
            ..Request::default()
        };
        let rows = [("a", Some(-1)), ("b", Some(-10)), ("c", Some(7)), ("d", None), ("e", None)];
        let groups = fold(request.clone(), &rows);
        let keys: Vec<_> = groups.iter().map(|group| exact_number(&group.keys[0])).collect();
        assert_eq!(keys, [None, Some(-1), Some(0)]);
        assert_eq!(groups[0].states.iter().map(|s| s.count).collect::<Vec<_>>(), [2, 0, 0, 0, 0]);
        let states = &groups[1].states;
        assert_eq!(states.iter().map(|s| s.count).collect::<Vec<_>>(), [2, 2, 2, 2, 2]);
        assert_eq!(states[2].sum[..], (-33i128).to_be_bytes());
        assert_eq!((exact_number(&states[3].extreme), exact_number(&states[4].extreme)), (Some(-30), Some(-3)));
        let mut failing = Groups::new(asked(Request {
            expressions: vec![Expression { steps: vec![load(), number(Operation::Limit, 5)] }],
            groups: of(0).into_iter().collect(),
            ..Request::default()
        }));
        failing.values.set_row(Vec::new());
        failing.values.set_cell(0, &6i64.to_be_bytes());
        failing.end_of_result();
        assert!(failing.finish().is_err());
    }

    #[test]
    fn different_values_are_sketched_as_bytes_or_as_what_is_computed_of_them() {
        let key = |at, is_inverted, is_padded| Aggregate {
            function: Function::Distinct as i32,
            source: Some(source(Some(at), "")),
            is_inverted,
            is_padded,
            ..Aggregate::default()
        };
        let load = Step {
            source: Some(source(None, "n")),
            number: Number::SortableInteger as i32,
            operation: Operation::Load as i32,
            ..Step::default()
        };
        let to_float = Step { operation: Operation::ToFloat as i32, ..Step::default() };
        let computed = |at| Aggregate {
            function: Function::Distinct as i32,
            source: Some(Source { expression: Some(at), ..Source::default() }),
            ..Aggregate::default()
        };
        let request = Request {
            key_columns: vec![
                KeyColumn { width_bytes: 1, separator: None },
                KeyColumn { width_bytes: 2, separator: None },
                KeyColumn { width_bytes: 0, separator: None },
            ],
            groups: vec![source(Some(0), "")],
            aggregates: vec![key(1, true, true), key(2, false, false), computed(0), computed(1)],
            expressions: vec![
                Expression { steps: vec![load.clone()] },
                Expression { steps: vec![load.clone(), to_float] },
            ],
            ..Request::default()
        };
        // The second column descends: its bytes are "a ", "a " and "bc", turned round.
        let row = |group: &str, second: &[u8; 2], third: &str| {
            let turned: Vec<u8> = second.iter().map(|byte| !byte).collect();
            [group.as_bytes(), &turned, third.as_bytes()].concat()
        };
        let mut groups = Groups::new(asked(request));
        let rows = [("A", b"a ", "x", 7), ("A", b"a ", "x", 7), ("A", b"bc", "y", 7), ("B", b"a ", "", 9)];
        for (group, second, third, number) in rows {
            groups.values.set_row(row(group, second, third));
            groups.values.set_cell(0, &(number ^ i64::MIN).to_be_bytes());
            groups.end_of_result();
        }
        groups.finish().expect("small");
        let held = groups.bytes;
        let mut groups = groups.into_groups();
        groups.sort_by(|a, b| a.keys.cmp(&b.keys));
        let of = |values: &[&[u8]]| {
            let mut sketch = Sketch::default();
            for value in values {
                sketch.add(value);
            }
            Bytes::from(sketch.to_bytes())
        };
        let sketches = |group: &Group| group.states.iter().map(|state| state.sketch.clone()).collect::<Vec<_>>();
        let (seven, nine) = (exact_bytes(7), exact_bytes(9));
        assert_eq!(
            sketches(&groups[0]),
            [of(&[b"a", b"bc"]), of(&[b"x", b"y"]), of(&[&seven]), of(&[&float_bytes(7.0)])]
        );
        assert_eq!(sketches(&groups[1]), [of(&[b"a"]), of(&[]), of(&[&nine]), of(&[&float_bytes(9.0)])]);
        assert!(held > 7 * size_of::<Sketch>(), "{held}");
    }

    #[test]
    fn sketches_of_many_groups_are_an_error_and_not_memory() {
        let request = Request {
            key_columns: vec![
                KeyColumn { width_bytes: 4, separator: None },
                KeyColumn { width_bytes: 4, separator: None },
            ],
            groups: vec![source(Some(0), "")],
            aggregates: vec![Aggregate {
                function: Function::Distinct as i32,
                source: Some(source(Some(1), "")),
                ..Aggregate::default()
            }],
            ..Request::default()
        };
        let mut groups = Groups::new(asked(request));
        for group in 0..2000u32 {
            for value in 0..1200u32 {
                groups.values.set_row([group.to_be_bytes(), value.to_be_bytes()].concat());
                groups.end_of_result();
            }
        }
        assert!(groups.bytes < MAX_GROUP_BYTES + 2 * sketch::REGISTERS);
        assert!(groups.finish().is_err());
    }

    #[test]
    fn too_many_groups_are_an_error_and_not_memory() {
        let request = Request {
            key_columns: vec![KeyColumn { width_bytes: 0, separator: None }],
            groups: vec![source(Some(0), "")],
            aggregates: vec![aggregate(Function::CountRows, Number::Integer)],
            ..Request::default()
        };
        let mut groups = Groups::new(asked(request));
        let key = vec![b'k'; 30_000];
        for number in 0..1000u32 {
            groups.values.set_row([&number.to_be_bytes()[..], &key].concat());
            groups.end_of_result();
        }
        assert!(groups.bytes < MAX_GROUP_BYTES + 2 * key.len());
        assert!(groups.finish().is_err());
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        let unknown_column = Request { groups: vec![source(Some(0), "")], ..Request::default() };
        let unknown_function =
            Request { aggregates: vec![Aggregate { function: 77, ..Aggregate::default() }], ..Request::default() };
        let of_nothing = Aggregate { function: Function::Sum as i32, ..Aggregate::default() };
        let of_nothing = Request { aggregates: vec![of_nothing], ..Request::default() };
        let of_no_expression = Source { expression: Some(0), ..Source::default() };
        let unknown_expression = Request { groups: vec![of_no_expression.clone()], ..Request::default() };
        let float = Step { source: Some(source(None, "n")), number: Number::Float as i32, ..Step::default() };
        let floats = Request {
            groups: vec![of_no_expression.clone()],
            expressions: vec![Expression { steps: vec![float.clone()] }],
            ..Request::default()
        };
        let least_float = Request {
            groups: Vec::new(),
            aggregates: vec![Aggregate {
                function: Function::Min as i32,
                source: Some(of_no_expression),
                ..Aggregate::default()
            }],
            ..floats.clone()
        };
        let load_nowhere = Step { source: Some(source(Some(3), "")), ..Step::default() };
        let load_nowhere =
            Request { expressions: vec![Expression { steps: vec![load_nowhere] }], ..Request::default() };
        let of_decimals = Aggregate { number: Number::Decimal as i32, ..aggregate(Function::Sum, Number::Integer) };
        let of_decimals = Request { aggregates: vec![of_decimals], ..Request::default() };
        for request in [
            unknown_column,
            unknown_function,
            of_nothing,
            unknown_expression,
            floats,
            least_float,
            load_nowhere,
            of_decimals,
        ] {
            assert!(decode(request.encode_to_vec().into()).is_err());
        }
        assert!(decode(Bytes::from_static(b"\xFF\xFF")).is_err());
    }
}
