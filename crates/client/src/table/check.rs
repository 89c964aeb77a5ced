//! Writes that are done if a condition holds. Follows: `CheckAndMutate`, `AsyncTable#checkAndMutate`.

use std::sync::Arc;

use bytes::Bytes;
use filter::{Comparator, CompareOp, Filter};
use model::mutation::ConditionTest;
use model::{Condition, Mutation, TimeRange};

use super::Table;
use crate::{Action, Error, Result, Row};

/// What came of a conditional write.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Whether the condition held and the write was done.
    pub processed: bool,
    /// What increments and appends of the write brought back.
    pub row: Row,
}

/// Makes a condition on a row, in HBase's words, and what is to be done if it holds.
///
/// ```no_run
/// # use basalt_client as client;
/// # async fn example(table: client::Table) -> Result<(), client::Error> {
/// use client::{CheckAndMutate, Put};
/// let first = CheckAndMutate::if_not_exists("row", "f", "q").then([Put::new("row").add("f", "q", "1").build()]);
/// assert!(table.check(&first).await?.processed);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct CheckAndMutate {
    condition: Condition,
    mutations: Vec<Mutation>,
}

impl CheckAndMutate {
    fn new(row: &[u8], test: ConditionTest) -> CheckAndMutate {
        let condition = Condition { row: Bytes::copy_from_slice(row), test, time_range: TimeRange::ALL };
        CheckAndMutate { condition, mutations: Vec::new() }
    }

    /// If the column of the row has no value.
    pub fn if_not_exists(
        row: impl AsRef<[u8]>,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
    ) -> CheckAndMutate {
        // As Java's client sends it: nothing to compare with.
        CheckAndMutate::if_matches(row, family, qualifier, CompareOp::Equal, b"")
    }

    /// If the column's newest value is `value`.
    pub fn if_equals(
        row: impl AsRef<[u8]>,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> CheckAndMutate {
        CheckAndMutate::if_matches(row, family, qualifier, CompareOp::Equal, value)
    }

    /// If `value OP newest value of the column`: HBase reads it in this order.
    pub fn if_matches(
        row: impl AsRef<[u8]>,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
        op: CompareOp,
        value: impl AsRef<[u8]>,
    ) -> CheckAndMutate {
        let test = ConditionTest::Value {
            family: Bytes::copy_from_slice(family.as_ref()),
            qualifier: Bytes::copy_from_slice(qualifier.as_ref()),
            op,
            comparator: Arc::new(Comparator::Binary { value: Bytes::copy_from_slice(value.as_ref()) }),
        };
        CheckAndMutate::new(row.as_ref(), test)
    }

    /// If a Get of the row with this filter finds something.
    pub fn if_filter(row: impl AsRef<[u8]>, filter: Arc<Filter>) -> CheckAndMutate {
        CheckAndMutate::new(row.as_ref(), ConditionTest::Filter(filter))
    }

    /// Only cells of these times are looked at.
    pub fn time_range(mut self, time_range: TimeRange) -> CheckAndMutate {
        self.condition.time_range = time_range;
        self
    }

    /// What is done if the condition holds, all of it or nothing.
    pub fn then(mut self, mutations: impl IntoIterator<Item = Mutation>) -> CheckAndMutate {
        self.mutations.extend(mutations);
        self
    }

    /// For a batch.
    pub fn into_action(self) -> Action {
        Action::Check { condition: self.condition, mutations: self.mutations }
    }
}

impl Table {
    /// Writes to one row, all of it or nothing, if a condition on that row holds.
    ///
    /// # Errors
    /// As [`Table::mutate`]; no mutation given, or one of another row.
    pub async fn check_and_mutate(&self, condition: &Condition, mutations: &[Mutation]) -> Result<Checked> {
        if mutations.iter().any(|mutation| mutation.row != condition.row) {
            return Err(Error::Request("a conditional write to another row than the condition's".to_owned()));
        }
        match mutations {
            [] => Err(Error::Request("a conditional write without a mutation".to_owned())),
            [mutation] => {
                let (processed, row) = self.mutate_if(mutation, Some(condition)).await?;
                Ok(Checked { processed, row })
            }
            several => self.mutate_rows_if(several, Some(condition)).await,
        }
    }

    /// As [`Table::check_and_mutate`].
    ///
    /// # Errors
    /// As [`Table::check_and_mutate`].
    pub async fn check(&self, check: &CheckAndMutate) -> Result<Checked> {
        self.check_and_mutate(&check.condition, &check.mutations).await
    }

    /// Many conditional writes at once, each on its own row; outcomes are in their order.
    ///
    /// # Errors
    /// None as a whole: each has its own outcome.
    pub async fn check_all(&self, checks: Vec<CheckAndMutate>) -> Vec<Result<Checked>> {
        let actions: Vec<Action> = checks.into_iter().map(CheckAndMutate::into_action).collect();
        let outcomes = self.outcomes(&actions).await;
        outcomes.into_iter().map(|outcome| outcome.map(|row| Checked { processed: row.exists(), row })).collect()
    }
}
