//! A table of SQL as DataFusion reads it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use client::{Row, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{Constraint, Constraints};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use filter::Filter;
use model::{Get, Scan, TimeRange};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::decode::Decoder;
use crate::error::SqlError;
use crate::mapping::{Kind, Mapping};
use crate::predicate::{KeyRange, Pushed, push_down};
use crate::scan::{HBaseScanExec, ScanSpec};

/// How long a table's region boundaries are believed: a stale one costs parallelism, not rows.
const BOUNDARIES_LAST: Duration = Duration::from_secs(5);
/// Single keys up to so many are read in one partition, whatever regions they are in.
const FEW_KEYS: usize = 16;

/// Columns asked for, as a scan has them.
pub type Columns = BTreeMap<Bytes, Vec<Bytes>>;

/// Start keys of a table's regions, and when they were asked for.
type Boundaries = (Instant, Arc<Vec<Bytes>>);

/// A table, view or undescribed HBase table.
pub struct HBaseTable {
    /// Its columns.
    pub mapping: Arc<Mapping>,
    /// Where its rows are.
    pub table: Table,
    /// Cells that were written up to this time are read, in milliseconds; all of them where there is none.
    pub as_of: Option<i64>,
    schema: SchemaRef,
    constraints: Option<Constraints>,
    boundaries: Mutex<Option<Boundaries>>,
}

impl fmt::Debug for HBaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HBaseTable").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

impl HBaseTable {
    /// A table over a connection.
    ///
    /// # Errors
    /// A name that HBase does not allow.
    pub fn new(mapping: Mapping, connection: &client::Connection) -> std::result::Result<HBaseTable, SqlError> {
        let table = connection.table(&mapping.table_name()?);
        let key = mapping.key_columns();
        let constraints = (!key.is_empty()).then(|| Constraints::new_unverified(vec![Constraint::PrimaryKey(key)]));
        Ok(HBaseTable {
            schema: mapping.arrow_schema(),
            mapping: Arc::new(mapping),
            table,
            as_of: None,
            constraints,
            boundaries: Mutex::new(None),
        })
    }

    /// The same table as it was at a time.
    pub fn at(&self, as_of: i64) -> HBaseTable {
        HBaseTable {
            mapping: Arc::clone(&self.mapping),
            table: self.table.clone(),
            as_of: Some(as_of),
            schema: Arc::clone(&self.schema),
            constraints: self.constraints.clone(),
            boundaries: Mutex::new(self.boundaries.lock().clone()),
        }
    }

    /// Its columns at these positions, in Arrow.
    pub fn schema_of(&self, projection: &[usize]) -> SchemaRef {
        let fields = projection.iter().map(|at| Arc::clone(&self.schema.fields()[*at]));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Times that are read.
    fn time_range(&self) -> TimeRange {
        self.as_of.map_or(TimeRange::ALL, |last| TimeRange { min: 0, max: last.saturating_add(1) })
    }

    async fn region_starts(&self) -> std::result::Result<Arc<Vec<Bytes>>, SqlError> {
        if let Some((asked, starts)) = &*self.boundaries.lock()
            && asked.elapsed() < BOUNDARIES_LAST
        {
            return Ok(Arc::clone(starts));
        }
        let keys = self.table.start_end_keys().await?;
        let starts = Arc::new(keys.into_iter().map(|(start, _)| start).collect::<Vec<_>>());
        *self.boundaries.lock() = Some((Instant::now(), Arc::clone(&starts)));
        Ok(starts)
    }

    /// Row keys to be read, in at most `most` parts that end where regions do.
    async fn partitions(
        &self,
        ranges: Option<Vec<KeyRange>>,
        most: usize,
    ) -> std::result::Result<Vec<Vec<KeyRange>>, SqlError> {
        if let Some(keys) = &ranges
            && keys.len() <= FEW_KEYS
            && keys.iter().all(KeyRange::is_one_key)
        {
            return Ok(vec![keys.clone()]);
        }
        let ranges = ranges.unwrap_or_else(|| vec![KeyRange { start: Vec::new(), stop: Vec::new() }]);
        let starts = self.region_starts().await?;
        let touched: Vec<Vec<KeyRange>> = (0..starts.len())
            .map(|at| {
                let stop = starts.get(at + 1).map_or(&[][..], |next| &next[..]);
                ranges.iter().filter_map(|range| range.within(&starts[at], stop)).collect::<Vec<_>>()
            })
            .filter(|ranges: &Vec<KeyRange>| !ranges.is_empty())
            .collect();
        let each = touched.len().div_ceil(most.max(1)).max(1);
        let mut partitions: Vec<Vec<KeyRange>> = touched.chunks(each).map(|some| joined(some.concat())).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        Ok(partitions)
    }

    /// The rows of some keys: each as it is in HBase, and those that are there in all columns.
    ///
    /// # Errors
    /// The cluster does not answer, or has bytes that are no values of their types.
    pub async fn rows_of(&self, keys: impl Iterator<Item = Bytes>) -> Result<(Vec<Row>, RecordBatch)> {
        let projection: Vec<usize> = (0..self.mapping.columns.len()).collect();
        let (columns, filters) = self.cells_to_read(&projection, &Pushed::default());
        let filter = (!filters.is_empty()).then(|| Arc::new(Filter::all_of(filters)));
        let get = |key| Get { columns: columns.clone(), filter: filter.clone(), ..Get::new(key) };
        let gets: Vec<Get> = keys.map(get).collect();
        let rows = self.table.get_all(&gets).await.map_err(SqlError::from)?;
        let mut decoder = Decoder::for_rows(&self.mapping, &projection, Arc::clone(&self.schema), rows.len());
        for row in rows.iter().filter(|row| row.exists()) {
            decoder.push(row)?;
        }
        let batch = decoder.finish()?;
        Ok((rows, batch))
    }

    /// The columns that a scan reads, and the filters that it needs besides.
    pub fn cells_to_read(&self, projection: &[usize], pushed: &Pushed) -> (Columns, Vec<Filter>) {
        let mapping = &self.mapping;
        let of_output = projection.iter().filter_map(|at| mapping.columns[*at].cell());
        let mut cells: Vec<(Bytes, Bytes)> = of_output
            .map(|(family, qualifier)| (Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier)))
            .chain(pushed.cells.iter().cloned())
            .collect();
        match mapping.empty_cell() {
            Some(empty) if !pushed.needs_a_cell => cells.push(empty),
            Some(_) => {}
            // A row is there if it has any cell at all.
            None if pushed.needs_a_cell => {}
            None if cells.is_empty() => {
                return (Columns::new(), vec![Filter::FirstKeyOnly, Filter::KeyOnly { len_as_val: false }]);
            }
            None => cells.clear(),
        }
        let mut columns: Columns = BTreeMap::new();
        for (family, qualifier) in cells {
            columns.entry(family).or_default().push(qualifier);
        }
        columns.values_mut().for_each(|qualifiers| {
            qualifiers.sort_unstable();
            qualifiers.dedup();
        });
        (columns, Vec::new())
    }

    /// Rows come in the order of the key's columns, as far as these are in the output.
    fn equivalence(&self, projection: &[usize], schema: &SchemaRef) -> EquivalenceProperties {
        let mut order = Vec::new();
        if self.mapping.salt_buckets == 0 {
            for at in self.mapping.key_columns() {
                let Some(output) = projection.iter().position(|projected| *projected == at) else { break };
                let column = &self.mapping.columns[at];
                let options = SortOptions { descending: column.descending, nulls_first: true };
                order.push(PhysicalSortExpr { expr: Arc::new(ColumnExpr::new(&column.name, output)), options });
            }
        }
        if order.is_empty() {
            return EquivalenceProperties::new(Arc::clone(schema));
        }
        EquivalenceProperties::new_with_orderings(Arc::clone(schema), [order])
    }
}

/// Neighbours that touch become one range.
fn joined(ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    let mut joined: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.stop == range.start && !last.stop.is_empty() => last.stop = range.stop,
            _ => joined.push(range),
        }
    }
    joined
}

#[async_trait]
impl TableProvider for HBaseTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    fn table_type(&self) -> TableType {
        if self.mapping.kind == Kind::View { TableType::View } else { TableType::Base }
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let of = |exact| {
            if exact { TableProviderFilterPushDown::Exact } else { TableProviderFilterPushDown::Unsupported }
        };
        Ok(push_down(&self.mapping, filters).exact.into_iter().map(of).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let pushed = push_down(&self.mapping, &filters.iter().collect::<Vec<_>>());
        let projection = projection.cloned().unwrap_or_else(|| (0..self.mapping.columns.len()).collect());
        let schema = Arc::new(self.schema.project(&projection)?);
        let (columns, more) = self.cells_to_read(&projection, &pushed);
        let filters = pushed.filters.into_iter().chain(more).collect();
        let most = state.config().target_partitions();
        let partitions = self.partitions(pushed.ranges, most).await?;
        let equivalence = self.equivalence(&projection, &schema);
        let spec = ScanSpec {
            table: self.table.clone(),
            mapping: Arc::clone(&self.mapping),
            projection,
            schema,
            scan: Scan { columns, time_range: self.time_range(), ..Scan::default() },
            filters,
            partitions,
            limit,
            dynamic: Vec::new(),
        };
        Ok(Arc::new(HBaseScanExec::new(spec, equivalence)))
    }
}
