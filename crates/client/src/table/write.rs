//! Writes to one row.

use bytes::Bytes;
use model::{Condition, Mutation, MutationKind};
use proto::methods::Method;
use proto::pb;

use super::call::{checked_of, row_of};
use super::{Checked, Table};
use crate::{Error, Increment, Result, Row};

impl Table {
    /// Writes to one row. What comes back is empty but for increments and appends.
    ///
    /// # Errors
    /// As [`Table::get`]; a mutation without cells, or a Put with a cell that is larger than the connection's options allow, before anything
    /// is sent.
    pub async fn mutate(&self, mutation: &Mutation) -> Result<Row> {
        let response = self.mutate_if(mutation, None).await?;
        Ok(response.1)
    }

    /// Writes a Put.
    ///
    /// # Errors
    /// As [`Table::mutate`].
    pub async fn put(&self, mutation: &Mutation) -> Result<()> {
        self.mutate(mutation).await.map(|_| ())
    }

    /// Writes a Delete.
    ///
    /// # Errors
    /// As [`Table::mutate`].
    pub async fn delete(&self, mutation: &Mutation) -> Result<()> {
        self.mutate(mutation).await.map(|_| ())
    }

    /// Adds to counters. Tried again, it counts once: it carries a nonce.
    ///
    /// # Errors
    /// As [`Table::mutate`].
    pub async fn increment(&self, mutation: &Mutation) -> Result<Row> {
        self.mutate(mutation).await
    }

    /// Appends to values. Tried again, it appends once.
    ///
    /// # Errors
    /// As [`Table::mutate`].
    pub async fn append(&self, mutation: &Mutation) -> Result<Row> {
        self.mutate(mutation).await
    }

    /// Adds to one counter; its new value.
    ///
    /// # Errors
    /// As [`Table::mutate`]; the value is no counter of 8 bytes.
    pub async fn increment_column_value(
        &self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        amount: i64,
    ) -> Result<i64> {
        let counted = self.increment(&Increment::new(row).add(family, qualifier, amount).build()).await?;
        let value = counted.value(family, qualifier).and_then(|value| value.try_into().ok());
        value.map(i64::from_be_bytes).ok_or_else(|| Error::Malformed("an increment without its new value".to_owned()))
    }

    /// Several writes to one row, all of them or none. What comes back is what increments and appends made.
    ///
    /// # Errors
    /// As [`Table::mutate`]; mutations of several rows.
    pub async fn mutate_row(&self, mutations: &[Mutation]) -> Result<Row> {
        if mutations.is_empty() {
            return Ok(Row::default());
        }
        Ok(self.mutate_rows_if(mutations, None).await?.row)
    }

    pub(super) async fn mutate_if(&self, mutation: &Mutation, condition: Option<&Condition>) -> Result<(bool, Row)> {
        self.examine(mutation)?;
        let mut wire = convert::to_proto::mutation_without_cells(mutation);
        let nonce_group = self.mark(mutation, &mut wire);
        let mut message = pb::MutateRequest {
            mutation: wire,
            condition: condition.map(convert::to_proto::condition),
            nonce_group,
            ..pb::MutateRequest::default()
        };
        let cells = [self.wire_cells(mutation)];
        let policy = self.manner.writing();
        let reply = self.on_region(&mutation.row, Method::ClientMutate, &mut message, &cells, policy).await?;
        let response: pb::MutateResponse = reply.decode()?;
        let row = response.result.as_ref().map(|result| row_of(result, &reply)).transpose()?;
        Ok((response.processed(), row.unwrap_or_default()))
    }

    pub(super) async fn mutate_rows_if(
        &self,
        mutations: &[Mutation],
        condition: Option<&Condition>,
    ) -> Result<Checked> {
        let row = &mutations[0].row;
        if mutations.iter().any(|mutation| mutation.row != *row) {
            return Err(Error::Request(
                "mutations of several rows cannot be done as one: no server holds them all".to_owned(),
            ));
        }
        mutations.iter().try_for_each(|mutation| self.examine(mutation))?;
        let mut cells = Vec::with_capacity(mutations.len());
        let (action, nonce_group) = self.row_action(mutations, condition, &mut cells);
        let mut message = pb::MultiRequest { region_action: vec![action], nonce_group, ..pb::MultiRequest::default() };
        let policy = self.manner.writing();
        let reply = self.on_region(row, Method::ClientMulti, &mut message, &cells, policy).await?;
        let mut response: pb::MultiResponse = reply.decode()?;
        let result = response.region_action_result.pop().unwrap_or_default();
        checked_of(&result, &reply)
    }

    /// What is wrong with a mutation wherever it is sent. Follows: `ConnectionUtils#validatePut`, `Mutation`'s constructors.
    pub(crate) fn examine(&self, mutation: &Mutation) -> Result<()> {
        let refused = |what: String| Err(Error::Request(what));
        if mutation.row.is_empty() {
            return refused("Row length 0 is too short: a mutation needs a row".to_owned());
        }
        if mutation.row.len() > cell::MAX_ROW_LENGTH {
            return refused(format!("Row length {} is > {}", mutation.row.len(), cell::MAX_ROW_LENGTH));
        }
        if mutation.cells.is_empty() && mutation.kind != MutationKind::Delete {
            return refused("No columns to insert: a mutation but a Delete needs cells".to_owned());
        }
        let most = self.cluster.options.max_cell_bytes;
        // Cells together that are not larger than one may be need no look at each.
        if mutation.kind == MutationKind::Put
            && most > 0
            && mutation.cells.bytes().len() > most
            && mutation.cells.iter().any(|cell| cell.bytes().len() > most)
        {
            return refused(format!(
                "KeyValue size too large: a Put has a cell of more than {most} bytes, see hbase.client.keyvalue.maxsize"
            ));
        }
        Ok(())
    }

    /// The region action that does `mutations` to one row at once; their cells are added to `cells`.
    pub(crate) fn row_action(
        &self,
        mutations: &[Mutation],
        condition: Option<&Condition>,
        cells: &mut Vec<Bytes>,
    ) -> (pb::RegionAction, Option<u64>) {
        let mut nonce_group = None;
        let mut action = Vec::with_capacity(mutations.len());
        for (index, mutation) in mutations.iter().enumerate() {
            let mut wire = convert::to_proto::mutation_without_cells(mutation);
            nonce_group = self.mark(mutation, &mut wire).or(nonce_group);
            cells.push(self.wire_cells(mutation));
            action.push(pb::Action { index: Some(index as u32), mutation: Some(wire), ..pb::Action::default() });
        }
        let condition = condition.map(convert::to_proto::condition);
        (pb::RegionAction { atomic: Some(true), action, condition, ..pb::RegionAction::default() }, nonce_group)
    }

    /// Gives an increment or append its nonce; the nonce group goes into the request.
    pub(crate) fn mark(&self, mutation: &Mutation, wire: &mut pb::MutationProto) -> Option<u64> {
        if !matches!(mutation.kind, MutationKind::Append | MutationKind::Increment) {
            return None;
        }
        let nonce = mutation.nonce.unwrap_or_else(|| self.cluster.nonce());
        wire.nonce = Some(nonce.number);
        Some(nonce.group)
    }

    /// The cells of a mutation in the connection's codec.
    pub(crate) fn wire_cells(&self, mutation: &Mutation) -> Bytes {
        let codec = self.cluster.options.codec;
        let has_tags = !codec.carries_tags() && mutation.cells.iter().any(|cell| !cell.tags().is_empty());
        codec.encode(mutation.cells.bytes().clone(), has_tags)
    }
}
