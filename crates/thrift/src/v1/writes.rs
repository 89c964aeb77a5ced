//! Mutations.

use super::coalescer::Counter;
use super::types::*;
use super::{Attributes, Handler, attributes, parse_column, reads::cells};
use crate::fault::{Fault, Outcome};
use crate::v2::check_row;
use bytes::Bytes;
use client::{Append, CheckAndMutate, Delete, Increment, Put};
use model::{Durability, Mutation as RowMutation};

/// The server's time.
const LATEST: i64 = i64::MAX;

/// What a row's mutations come to: a delete and a put, each if it has cells. A put of a whole family is passed over, or with `strict` refused.
fn of_row(
    row: &Bytes,
    mutations: &[Mutation],
    timestamp: i64,
    with: Option<Attributes>,
    strict: bool,
) -> Outcome<(Option<RowMutation>, Option<RowMutation>)> {
    check_row(row)?;
    if timestamp < 0 {
        return Err(Fault::Argument(format!("Timestamp cannot be negative. ts={timestamp}")));
    }
    let (mut put, mut delete) = (Put::new(row), Delete::new(row));
    for mutation in mutations {
        let durability = if mutation.write_to_wal { Durability::SyncWal } else { Durability::SkipWal };
        match (mutation.is_delete, parse_column(&mutation.column)) {
            (true, (family, None)) => delete = delete.family_up_to(family, timestamp).durability(durability),
            (true, (family, Some(qualifier))) => {
                delete = delete.columns_up_to(family, qualifier, timestamp).durability(durability);
            }
            (false, (family, Some(qualifier))) => {
                let value = mutation.value.clone().unwrap_or_default();
                put = put.add_at(family, qualifier, timestamp, value).durability(durability);
            }
            (false, (_, None)) if strict => {
                return Err(Fault::Argument("Invalid famAndQf provided.".to_owned()));
            }
            (false, (_, None)) => {}
        }
    }
    let with = attributes(with);
    let finish = |mut mutation: RowMutation| {
        mutation.attributes.clone_from(&with);
        (!mutation.cells.is_empty()).then_some(mutation)
    };
    Ok((finish(delete.build()), finish(put.build())))
}

impl Handler {
    pub(super) async fn mutate_row(
        &self,
        table_name: Bytes,
        row: Bytes,
        mutations: Vec<Mutation>,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        self.mutate_row_ts(table_name, row, mutations, LATEST, attributes).await
    }

    pub(super) async fn mutate_row_ts(
        &self,
        table_name: Bytes,
        row: Bytes,
        mutations: Vec<Mutation>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        let table = self.table(&table_name).map_err(Fault::declared)?;
        let (delete, put) = of_row(&row, &mutations, timestamp, attributes, false).map_err(Fault::declared)?;
        for mutation in [delete, put].into_iter().flatten() {
            table.mutate(&mutation).await.map_err(|error| Fault::from(error).declared())?;
        }
        Ok(())
    }

    pub(super) async fn mutate_rows(
        &self,
        table_name: Bytes,
        row_batches: Vec<BatchMutation>,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        self.mutate_rows_ts(table_name, row_batches, LATEST, attributes).await
    }

    /// Puts first, then deletes, as HBase does.
    pub(super) async fn mutate_rows_ts(
        &self,
        table_name: Bytes,
        row_batches: Vec<BatchMutation>,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for BatchMutation { row, mutations } in row_batches {
            self.metrics.batch_mutate(mutations.len());
            let made = of_row(&row, &mutations, timestamp, attributes.clone(), true);
            let (delete, put) = made.map_err(Fault::declared)?;
            puts.extend(put);
            deletes.extend(delete);
        }
        let table = self.table(&table_name).map_err(Fault::declared)?;
        for mutations in [puts, deletes] {
            table.mutate_all(&mutations).await.map_err(|error| Fault::from(error).declared())?;
        }
        Ok(())
    }

    pub(super) async fn delete_all(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        self.delete_all_ts(table_name, row, column, LATEST, attributes).await
    }

    pub(super) async fn delete_all_ts(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        let mutation = Mutation { is_delete: true, column, value: None, write_to_wal: true };
        let (delete, _) = of_row(&row, &[mutation], timestamp, attributes, false)?;
        let table = self.table(&table_name)?;
        if let Some(mut delete) = delete {
            delete.durability = Durability::UseDefault;
            table.delete(&delete).await?;
        }
        Ok(())
    }

    pub(super) async fn delete_all_row(
        &self,
        table_name: Bytes,
        row: Bytes,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        self.delete_all_row_ts(table_name, row, LATEST, attributes).await
    }

    pub(super) async fn delete_all_row_ts(
        &self,
        table_name: Bytes,
        row: Bytes,
        timestamp: i64,
        attributes: Option<Attributes>,
    ) -> Outcome<()> {
        check_row(&row)?;
        if timestamp < 0 {
            return Err(Fault::Argument(format!("Timestamp cannot be negative. ts={timestamp}")));
        }
        let mut delete = Delete::new(&row).up_to(timestamp).build();
        delete.attributes = super::attributes(attributes);
        Ok(self.table(&table_name)?.delete(&delete).await?)
    }

    pub(super) async fn check_and_put(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        value: Option<Bytes>,
        mput: Mutation,
        attributes: Option<Attributes>,
    ) -> Outcome<bool> {
        let mput = Mutation { is_delete: false, ..mput };
        let (_, put) = of_row(&row, &[mput], LATEST, attributes, true).map_err(Fault::declared)?;
        let (family, qualifier) = parse_column(&column);
        let qualifier = qualifier.ok_or_else(|| Fault::Illegal("Invalid famAndQf provided.".to_owned()))?;
        let check = match value {
            Some(value) => CheckAndMutate::if_equals(&row, family, qualifier, value),
            None => CheckAndMutate::if_not_exists(&row, family, qualifier),
        };
        let table = self.table(&table_name).map_err(Fault::declared)?;
        let checked = table.check(&check.then(put)).await.map_err(|error| Fault::from(error).declared())?;
        Ok(checked.processed)
    }

    pub(super) async fn atomic_increment(
        &self,
        table_name: Bytes,
        row: Bytes,
        column: Bytes,
        value: i64,
    ) -> Outcome<i64> {
        check_row(&row)?;
        let (family, qualifier) = parse_column(&column);
        let qualifier = qualifier.unwrap_or_default();
        Ok(self.table(&table_name)?.increment_column_value(&row, &family, &qualifier, value).await?)
    }

    pub(super) async fn increment(&self, increment: TIncrement) -> Outcome<()> {
        if increment.row.is_empty() || increment.table.is_empty() {
            return Err(Fault::Argument("Must supply a table and a row key; can't increment".to_owned()));
        }
        let (family, Some(qualifier)) = parse_column(&increment.column) else {
            return Err(Fault::Argument("an increment needs family:qualifier".to_owned()));
        };
        if let Some(coalescer) = &self.coalescer {
            let TIncrement { table, row, column, ammount } = &increment;
            let counter = Counter { table: table.clone(), row: row.clone(), column: column.clone() };
            if coalescer.add(counter, *ammount) {
                return Ok(());
            }
        }
        let counted = Increment::new(&increment.row).add(family, qualifier, increment.ammount);
        self.table(&increment.table)?.increment(&counted.return_results(false).build()).await?;
        Ok(())
    }

    pub(super) async fn increment_rows(&self, increments: Vec<TIncrement>) -> Outcome<()> {
        for increment in increments {
            self.increment(increment).await?;
        }
        Ok(())
    }

    pub(super) async fn append(&self, append: TAppend) -> Outcome<Vec<TCell>> {
        if append.row.is_empty() || append.table.is_empty() {
            return Err(Fault::Argument("Must supply a table and a row key; can't append".to_owned()));
        }
        if append.columns.len() != append.values.len() {
            let why = "Sizes of columns and values in tappend object are not matching";
            return Err(Fault::Argument(why.to_owned()));
        }
        let mut appended = Append::new(&append.row);
        for (column, value) in append.columns.iter().zip(&append.values) {
            let (family, Some(qualifier)) = parse_column(column) else {
                return Err(Fault::Argument("an append needs family:qualifier".to_owned()));
            };
            appended = appended.add(family, qualifier, value);
        }
        Ok(cells(&self.table(&append.table)?.append(&appended.build()).await?))
    }
}
