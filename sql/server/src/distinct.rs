//! `approx_distinct`: DataFusion's function with the sketches that region servers make, so that what they computed and what was computed here
//! of rows is merged. A value is sketched as its bytes: a text's own, the 16 of an exact number, the 8 of a floating-point number.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::hash_utils::{HLL_RANDOM_STATE, create_hashes};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use proto::grouped::{exact_bytes, float_bytes};
use sketch::Sketch;

use crate::error::{SqlError, SqlState};

/// Its name.
pub const NAME: &str = "approx_distinct";

/// The function.
pub fn approx_distinct() -> AggregateUDF {
    AggregateUDF::new_from_impl(ApproxDistinct { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ApproxDistinct {
    signature: Signature,
}

impl AggregateUDFImpl for ApproxDistinct {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sketch"), DataType::Binary, false))])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One::default()))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::default()))
    }
}

/// The hashes of an array's values, at their places; those of NULLs mean nothing.
fn hashes(array: &dyn Array, hashes: &mut Vec<u64>) -> Result<()> {
    use datafusion::arrow::datatypes::{DataType as Of, TimeUnit};
    hashes.clear();
    let exact = |number: i128| sketch::hash(&exact_bytes(number));
    macro_rules! exact {
        ($of:ident) => {{
            let array = array.as_primitive::<datafusion::arrow::datatypes::$of>();
            hashes.extend(array.values().iter().map(|value| exact(i128::from(*value))))
        }};
    }
    macro_rules! float {
        ($of:ident) => {{
            let array = array.as_primitive::<datafusion::arrow::datatypes::$of>();
            hashes.extend(array.values().iter().map(|value| sketch::hash(&float_bytes(f64::from(*value)))))
        }};
    }
    macro_rules! bytes {
        ($array:expr) => {{
            let array = $array;
            hashes.extend((0..array.len()).map(|at| sketch::hash(array.value(at).as_ref())))
        }};
    }
    match array.data_type() {
        Of::Int16 => exact!(Int16Type),
        Of::Int32 => exact!(Int32Type),
        Of::Int64 => exact!(Int64Type),
        Of::Date32 => exact!(Date32Type),
        Of::Timestamp(TimeUnit::Microsecond, _) => exact!(TimestampMicrosecondType),
        Of::Decimal128(..) => exact!(Decimal128Type),
        Of::Float32 => float!(Float32Type),
        Of::Float64 => float!(Float64Type),
        Of::Utf8 => bytes!(array.as_string::<i32>()),
        Of::LargeUtf8 => bytes!(array.as_string::<i64>()),
        Of::Utf8View => bytes!(array.as_string_view()),
        Of::Binary => bytes!(array.as_binary::<i32>()),
        Of::LargeBinary => bytes!(array.as_binary::<i64>()),
        Of::BinaryView => bytes!(array.as_binary_view()),
        Of::Boolean => {
            let array = array.as_boolean();
            hashes.extend((0..array.len()).map(|at| sketch::hash(&[u8::from(array.value(at))])));
        }
        // No region server makes sketches of these.
        _ => {
            hashes.resize(array.len(), 0);
            create_hashes([array], &HLL_RANDOM_STATE, hashes)?;
        }
    }
    Ok(())
}

fn sketch_of(bytes: &[u8]) -> Result<Sketch> {
    let malformed = |e: sketch::Malformed| {
        DataFusionError::from(SqlError::new(SqlState::INTERNAL_ERROR, format!("a partial {NAME}: {e}")))
    };
    Sketch::from_bytes(bytes).map_err(malformed)
}

fn states_of(array: &ArrayRef) -> Result<&BinaryArray> {
    let message = || format!("a partial {NAME} of type {}", array.data_type());
    array.as_binary_opt::<i32>().ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, message()).into())
}

/// Of all rows.
#[derive(Debug, Default)]
struct One {
    sketch: Sketch,
    hashes: Vec<u64>,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        hashes(&values[0], &mut self.hashes)?;
        let nulls = values[0].logical_nulls();
        for (at, hash) in self.hashes.iter().enumerate() {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at)) {
                self.sketch.add_hash(*hash);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(self.sketch.estimate() as i64)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sketch.heap_bytes() + self.hashes.capacity() * size_of::<u64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.sketch.to_bytes()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states_of(&states[0])?.iter().flatten() {
            self.sketch.merge(&sketch_of(state)?);
        }
        Ok(())
    }
}

/// Of many groups.
#[derive(Debug, Default)]
struct Groups {
    sketches: Vec<Sketch>,
    heap_bytes: usize,
    hashes: Vec<u64>,
}

impl Groups {
    fn make_room(&mut self, groups: usize) {
        self.sketches.resize_with(groups.max(self.sketches.len()), Sketch::default);
    }

    fn emitted(&mut self, emit_to: EmitTo) -> Vec<Sketch> {
        let emitted = emit_to.take_needed(&mut self.sketches);
        self.heap_bytes = self.sketches.iter().map(Sketch::heap_bytes).sum();
        emitted
    }
}

fn binary(sketches: impl Iterator<Item = Sketch>) -> Vec<ArrayRef> {
    let mut builder = BinaryBuilder::new();
    sketches.for_each(|sketch| builder.append_value(sketch.to_bytes()));
    vec![Arc::new(builder.finish())]
}

/// Whether a row counts: its value is there, and so it is for the filter.
fn counts(values: &ArrayRef, filter: Option<&BooleanArray>) -> impl Fn(usize) -> bool {
    let (nulls, filter) = (values.logical_nulls(), filter.cloned());
    move |at| {
        nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at))
            && filter.as_ref().is_none_or(|filter| filter.is_valid(at) && filter.value(at))
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.make_room(groups);
        hashes(&values[0], &mut self.hashes)?;
        let counts = counts(&values[0], filter);
        for (at, (hash, group)) in self.hashes.iter().zip(group_indices).enumerate() {
            if counts(at) {
                self.heap_bytes += self.sketches[*group].add_hash(*hash);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let emitted = self.emitted(emit_to);
        Ok(Arc::new(emitted.iter().map(|sketch| Some(sketch.estimate() as i64)).collect::<Int64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(binary(self.emitted(emit_to).into_iter()))
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], groups: usize) -> Result<()> {
        self.make_room(groups);
        for (state, group) in states_of(&values[0])?.iter().zip(group_indices) {
            let Some(state) = state else { continue };
            let sketch = &mut self.sketches[*group];
            let before = sketch.heap_bytes();
            sketch.merge(&sketch_of(state)?);
            self.heap_bytes += sketch.heap_bytes().saturating_sub(before);
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut hashed = Vec::new();
        hashes(&values[0], &mut hashed)?;
        let counts = counts(&values[0], filter);
        Ok(binary(hashed.into_iter().enumerate().map(|(at, hash)| {
            let mut sketch = Sketch::default();
            if counts(at) {
                sketch.add_hash(hash);
            }
            sketch
        })))
    }

    fn size(&self) -> usize {
        self.sketches.capacity() * size_of::<Sketch>() + self.heap_bytes + self.hashes.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, Int32Array, StringArray};

    use super::*;

    fn estimate(array: ArrayRef) -> ScalarValue {
        let mut one = One::default();
        one.update_batch(&[array]).expect("a type with hashes");
        one.evaluate().expect("an estimate")
    }

    #[test]
    fn null_is_no_value_and_zeros_are_one() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), Some("a")]));
        assert_eq!(estimate(texts), ScalarValue::Int64(Some(2)));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
        assert_eq!(estimate(floats), ScalarValue::Int64(Some(3)));
        assert_eq!(estimate(Arc::new(Int32Array::from(Vec::<i32>::new()))), ScalarValue::Int64(Some(0)));
    }

    #[test]
    fn values_are_sketched_as_region_servers_do() {
        let mut one = One::default();
        one.update_batch(&[Arc::new(Int32Array::from(vec![7]))]).expect("numbers");
        let mut theirs = Sketch::default();
        theirs.add(&exact_bytes(7));
        assert_eq!(one.sketch, theirs);
        // So it makes no difference which part is whose.
        one.merge_batch(&[Arc::new(BinaryArray::from_vec(vec![&theirs.to_bytes()]))]).expect("a sketch");
        assert_eq!(one.evaluate().expect("an estimate"), ScalarValue::Int64(Some(1)));
        assert!(one.merge_batch(&[Arc::new(BinaryArray::from_vec(vec![&b"abc"[..]]))]).is_err());
    }

    #[test]
    fn groups_are_merged_with_parts_of_others() {
        let (values, of): (ArrayRef, _) =
            (Arc::new(Int32Array::from_iter_values(0..3000)), |at: i32| (at % 3) as usize);
        let group_indices: Vec<usize> = (0..3000).map(of).collect();
        let mut direct = Groups::default();
        direct.update_batch(&[Arc::clone(&values)], &group_indices, None, 3).expect("numbers");
        let converted = Groups::default().convert_to_state(&[Arc::clone(&values)], None).expect("numbers");
        let mut merged = Groups::default();
        merged.merge_batch(&converted, &group_indices, 3).expect("sketches");
        let parts = direct.state(EmitTo::First(1)).expect("a state");
        merged.merge_batch(&parts, &[0], 3).expect("sketches");
        assert!(merged.size() > 3 * 1000);
        let (direct, merged) = (direct.evaluate(EmitTo::All), merged.evaluate(EmitTo::All));
        let (direct, merged) = (direct.expect("estimates"), merged.expect("estimates"));
        let (direct, merged) = (direct.as_primitive::<I64>(), merged.as_primitive::<I64>());
        assert_eq!(direct.values()[..], merged.values()[1..]);
        assert!(merged.values().iter().all(|estimate| (950..1050).contains(estimate)), "{merged:?}");
    }

    type I64 = datafusion::arrow::datatypes::Int64Type;
}
