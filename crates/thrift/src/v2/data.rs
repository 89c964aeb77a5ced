//! The methods that read and write rows.

use super::types::*;
use super::{Handler, reads, scans, writes};
use crate::fault::{Fault, Outcome};
use crate::scanners::scan_options;
use bytes::Bytes;
use client::CheckAndMutate;
use filter::CompareOp;
use model::Mutation;

impl Handler {
    pub(super) async fn exists(&self, table: Bytes, tget: TGet) -> Outcome<bool> {
        Ok(self.table(&table)?.exists(&reads::get(tget)?).await?)
    }

    pub(super) async fn exists_all(&self, table: Bytes, tgets: Vec<TGet>) -> Outcome<Vec<bool>> {
        Ok(self.table(&table)?.exists_all(&reads::gets(tgets)?).await?)
    }

    pub(super) async fn get(&self, table: Bytes, tget: TGet) -> Outcome<TResult> {
        Ok(reads::result(&self.table(&table)?.get(&reads::get(tget)?).await?))
    }

    pub(super) async fn get_multiple(&self, table: Bytes, tgets: Vec<TGet>) -> Outcome<Vec<TResult>> {
        Ok(reads::results(&self.table(&table)?.get_all(&reads::gets(tgets)?).await?))
    }

    pub(super) async fn put(&self, table: Bytes, tput: TPut) -> Outcome<()> {
        Ok(self.table_to_write(&table)?.put(&writes::put(tput)?).await?)
    }

    pub(super) async fn put_multiple(&self, table: Bytes, tputs: Vec<TPut>) -> Outcome<()> {
        let table = self.table_to_write(&table)?;
        let puts: Vec<Mutation> = tputs.into_iter().map(writes::put).collect::<Outcome<_>>()?;
        Ok(table.mutate_all(&puts).await?)
    }

    pub(super) async fn delete_single(&self, table: Bytes, tdelete: TDelete) -> Outcome<()> {
        Ok(self.table_to_write(&table)?.delete(&writes::delete(tdelete)?).await?)
    }

    /// Answers nothing where all were done, and throws where one was not, as HBase does.
    pub(super) async fn delete_multiple(&self, table: Bytes, tdeletes: Vec<TDelete>) -> Outcome<Vec<TDelete>> {
        let table = self.table_to_write(&table)?;
        let deletes: Vec<Mutation> = tdeletes.into_iter().map(writes::delete).collect::<Outcome<_>>()?;
        table.mutate_all(&deletes).await?;
        Ok(Vec::new())
    }

    pub(super) async fn check_and_put(
        &self,
        table: Bytes,
        row: Bytes,
        family: Bytes,
        qualifier: Bytes,
        value: Option<Bytes>,
        tput: TPut,
    ) -> Outcome<bool> {
        let check = check(&row, &family, &qualifier, value.as_ref()).then([writes::put(tput)?]);
        Ok(self.table_to_write(&table)?.check(&check).await?.processed)
    }

    pub(super) async fn check_and_delete(
        &self,
        table: Bytes,
        row: Bytes,
        family: Bytes,
        qualifier: Bytes,
        value: Option<Bytes>,
        tdelete: TDelete,
    ) -> Outcome<bool> {
        let check = check(&row, &family, &qualifier, value.as_ref()).then([writes::delete(tdelete)?]);
        Ok(self.table_to_write(&table)?.check(&check).await?.processed)
    }

    #[allow(clippy::too_many_arguments, reason = "the IDL's")]
    pub(super) async fn check_and_mutate(
        &self,
        table: Bytes,
        row: Bytes,
        family: Bytes,
        qualifier: Bytes,
        compare_op: TCompareOp,
        value: Option<Bytes>,
        row_mutations: TRowMutations,
    ) -> Outcome<bool> {
        let op = match compare_op {
            TCompareOp::LESS => CompareOp::Less,
            TCompareOp::LESS_OR_EQUAL => CompareOp::LessOrEqual,
            TCompareOp::EQUAL => CompareOp::Equal,
            TCompareOp::NOT_EQUAL => CompareOp::NotEqual,
            TCompareOp::GREATER_OR_EQUAL => CompareOp::GreaterOrEqual,
            TCompareOp::GREATER => CompareOp::Greater,
            TCompareOp::NO_OP => CompareOp::NoOp,
        };
        let check = CheckAndMutate::if_matches(&row, &family, &qualifier, op, value.unwrap_or_default());
        let check = check.then(writes::row_mutations(row_mutations)?);
        Ok(self.table_to_write(&table)?.check(&check).await?.processed)
    }

    pub(super) async fn mutate_row(&self, table: Bytes, trow_mutations: TRowMutations) -> Outcome<()> {
        let table = self.table_to_write(&table)?;
        table.mutate_row(&writes::row_mutations(trow_mutations)?).await?;
        Ok(())
    }

    pub(super) async fn increment(&self, table: Bytes, tincrement: TIncrement) -> Outcome<TResult> {
        Ok(reads::result(&self.table_to_write(&table)?.increment(&writes::increment(tincrement)?).await?))
    }

    pub(super) async fn append(&self, table: Bytes, tappend: TAppend) -> Outcome<TResult> {
        Ok(reads::result(&self.table_to_write(&table)?.append(&writes::append(tappend)?).await?))
    }

    pub(super) async fn open_scanner(&self, table: Bytes, tscan: TScan) -> Outcome<i32> {
        let table = self.table(&table)?;
        let (scan, options) = scans::scan(tscan, scan_options(&table))?;
        self.scanners.add(table.scan(scan, options), false)
    }

    pub(super) async fn get_scanner_rows(&self, scanner_id: i32, num_rows: i32) -> Outcome<Vec<TResult>> {
        let next = self.scanners.next(scanner_id, num_rows).await;
        let (rows, _) = next.ok_or_else(|| Fault::Illegal("Invalid scanner Id".to_owned()))??;
        Ok(reads::results(&rows))
    }

    pub(super) async fn get_scanner_results(&self, table: Bytes, tscan: TScan, num_rows: i32) -> Outcome<Vec<TResult>> {
        let table = self.table(&table)?;
        let (scan, options) = scans::scan(tscan, scan_options(&table))?;
        let mut scanner = table.scan(scan, options);
        Ok(reads::results(&self.scanners.gather(&mut scanner, num_rows).await?))
    }

    /// A number that no scanner has is no error: it may have run out.
    pub(super) async fn close_scanner(&self, scanner_id: i32) -> Outcome<()> {
        self.scanners.close(scanner_id);
        Ok(())
    }
}

fn check(row: &Bytes, family: &Bytes, qualifier: &Bytes, value: Option<&Bytes>) -> CheckAndMutate {
    match value {
        Some(value) => CheckAndMutate::if_equals(row, family, qualifier, value),
        None => CheckAndMutate::if_not_exists(row, family, qualifier),
    }
}
