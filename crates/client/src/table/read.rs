//! Reads of one row.

use model::Get;
use proto::methods::Method;
use proto::pb;

use super::Table;
use super::call::row_of;
use crate::{Result, Row};

impl Table {
    /// Reads one row. With TIMELINE consistency a replica may answer, which the row then says ([`Row::is_stale`]).
    ///
    /// # Errors
    /// What the server refuses, or that it could not be reached in time.
    pub async fn get(&self, get: &Get) -> Result<Row> {
        if get.timeline && !self.name().is_meta() {
            return self.get_from_any_replica(get).await;
        }
        self.get_from_primary(get).await
    }

    /// As [`Table::get`], from nowhere else.
    pub(super) async fn get_from_primary(&self, get: &Get) -> Result<Row> {
        let mut message = pb::GetRequest { get: convert::to_proto::get(get), ..pb::GetRequest::default() };
        let reply = self.on_region(&get.row, Method::ClientGet, &mut message, &[], self.manner.reading()).await?;
        let response: pb::GetResponse = reply.decode()?;
        response.result.map_or_else(|| Ok(Row::default()), |result| row_of(&result, &reply))
    }

    /// Whether one row has anything of what `get` asks for.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn exists(&self, get: &Get) -> Result<bool> {
        let get = Get { existence_only: true, ..get.clone() };
        Ok(self.get(&get).await?.exists())
    }

    /// As [`Table::exists`], for many rows at once; answers in their order.
    ///
    /// # Errors
    /// The first that failed.
    pub async fn exists_all(&self, gets: &[Get]) -> Result<Vec<bool>> {
        let gets: Vec<Get> = gets.iter().map(|get| Get { existence_only: true, ..get.clone() }).collect();
        Ok(self.get_all(&gets).await?.iter().map(Row::exists).collect())
    }
}
