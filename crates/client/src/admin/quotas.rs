//! Quotas: of requests and of space. Follows: `QuotaTableUtil`, `RawAsyncHBaseAdmin#setQuota`.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{Scan, ServerName, TableName};
use proto::methods::Method;
use proto::{Message, magic, pb};

use super::Admin;
use crate::{Error, Result};

/// Whom a quota is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaOwner {
    /// A user, everywhere, in one table or in one namespace.
    User {
        /// The user.
        user: String,
        /// The table, if it is for one.
        table: Option<String>,
        /// The namespace, if it is for one.
        namespace: Option<String>,
    },
    /// A table.
    Table(String),
    /// A namespace.
    Namespace(String),
    /// A region server, or `all`.
    RegionServer(String),
}

/// The quotas of one owner.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaSettings {
    /// Whom they are for.
    pub owner: QuotaOwner,
    /// What they are.
    pub quotas: pb::Quotas,
}

impl Admin {
    /// Sets or removes a quota.
    ///
    /// # Errors
    /// The master refuses: quotas are off, or this one makes no sense.
    pub async fn set_quota(&self, quota: &pb::SetQuotaRequest) -> Result<()> {
        self.master::<pb::SetQuotaResponse>(Method::MasterSetQuota, quota).await.map(|_| ())
    }

    /// All quotas, out of the table `hbase:quota`.
    ///
    /// # Errors
    /// It cannot be read; there is none while quotas are off.
    pub async fn quotas(&self) -> Result<Vec<QuotaSettings>> {
        let name = TableName::parse("hbase:quota").map_err(Error::malformed)?;
        let table = self.connection.table(&name);
        let scan = Scan { columns: [(Bytes::from_static(b"q"), Vec::new())].into(), ..Scan::default() };
        let mut scanner = table.scan(scan, table.scan_options());
        let mut settings = Vec::new();
        while let Some(row) = scanner.next().await? {
            for cell in &row {
                let Some(owner) = owner_of(cell.row(), cell.qualifier()) else { continue };
                let value = Bytes::copy_from_slice(cell.value());
                let quotas = magic::strip(&value).and_then(|payload| pb::Quotas::decode(payload).ok());
                let unreadable = || Error::Malformed(format!("hbase:quota holds no quota for {owner:?}"));
                settings.push(QuotaSettings { quotas: quotas.ok_or_else(unreadable)?, owner: owner.clone() });
            }
        }
        Ok(settings)
    }

    /// Bytes of each table as the master knows them, for quotas of space.
    ///
    /// # Errors
    /// The master refuses: quotas are off.
    pub async fn space_quota_table_sizes(&self) -> Result<BTreeMap<TableName, u64>> {
        let reply: pb::GetSpaceQuotaRegionSizesResponse =
            self.master(Method::MasterGetSpaceQuotaRegionSizes, &pb::GetSpaceQuotaRegionSizesRequest {}).await?;
        let size = |of: &pb::get_space_quota_region_sizes_response::RegionSizes| {
            let name = of.table_name.as_ref().ok_or_else(|| Error::Malformed("a size of no table".to_owned()))?;
            Ok((convert::from_proto::table_name(name).map_err(Error::malformed)?, of.size()))
        };
        reply.sizes.iter().map(size).collect()
    }

    /// How tables and namespaces stand to their quotas of space, as the master sees it.
    ///
    /// # Errors
    /// The master refuses: quotas are off.
    pub async fn quota_states(&self) -> Result<pb::GetQuotaStatesResponse> {
        self.master(Method::MasterGetQuotaStates, &pb::GetQuotaStatesRequest {}).await
    }

    /// How a table stands to its quota of space, as the master sees it; none where it has none.
    ///
    /// # Errors
    /// The master refuses: quotas are off.
    pub async fn space_quota_of_table(&self, table: &TableName) -> Result<Option<pb::SpaceQuotaSnapshot>> {
        let wanted = convert::to_proto::table_name(table);
        let states = self.quota_states().await?.table_snapshots;
        Ok(states.into_iter().find(|state| state.table_name.as_ref() == Some(&wanted)).and_then(|state| state.snapshot))
    }

    /// The same for a namespace.
    ///
    /// # Errors
    /// The master refuses: quotas are off.
    pub async fn space_quota_of_namespace(&self, namespace: &str) -> Result<Option<pb::SpaceQuotaSnapshot>> {
        let states = self.quota_states().await?.ns_snapshots;
        Ok(states.into_iter().find(|state| state.namespace() == namespace).and_then(|state| state.snapshot))
    }

    /// How tables stand to their quotas of space, as a region server enforces it.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses: quotas are off.
    pub async fn space_quotas_at(&self, server: &ServerName) -> Result<pb::GetSpaceQuotaSnapshotsResponse> {
        self.server_call(server, Method::AdminGetSpaceQuotaSnapshots, &pb::GetSpaceQuotaSnapshotsRequest {}).await
    }
}

/// Whose the settings in a cell of `hbase:quota` are: rows are `t.TABLE`, `n.NAMESPACE`, `u.USER` and `r.SERVER`, qualifiers `s`, and for
/// users also `s.TABLE` and `s.NAMESPACE:`.
fn owner_of(row: &[u8], qualifier: &[u8]) -> Option<QuotaOwner> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let (kind, name) = row.split_at_checked(2)?;
    let name = text(name)?;
    match (kind, qualifier) {
        (b"t.", b"s") => Some(QuotaOwner::Table(name)),
        (b"n.", b"s") => Some(QuotaOwner::Namespace(name)),
        (b"r.", b"s") => Some(QuotaOwner::RegionServer(name)),
        (b"u.", b"s") => Some(QuotaOwner::User { user: name, table: None, namespace: None }),
        (b"u.", _) => {
            let of = text(qualifier.strip_prefix(b"s.")?)?;
            let (table, namespace) = match of.strip_suffix(':') {
                Some(namespace) => (None, Some(namespace.to_owned())),
                None => (Some(of), None),
            };
            Some(QuotaOwner::User { user: name, table, namespace })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_qualifiers_say_whose_a_quota_is() {
        let user = |table: Option<&str>, namespace: Option<&str>| QuotaOwner::User {
            user: "bob".to_owned(),
            table: table.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
        };
        for (row, qualifier, owner) in [
            ("t.ns:t", "s", Some(QuotaOwner::Table("ns:t".to_owned()))),
            ("n.ns", "s", Some(QuotaOwner::Namespace("ns".to_owned()))),
            ("r.all", "s", Some(QuotaOwner::RegionServer("all".to_owned()))),
            ("u.bob", "s", Some(user(None, None))),
            ("u.bob", "s.ns:t", Some(user(Some("ns:t"), None))),
            ("u.bob", "s.ns:", Some(user(None, Some("ns")))),
            ("exceedThrottleQuota", "s", None),
            ("t.t", "p", None),
            ("u", "s", None),
        ] {
            assert_eq!(owner_of(row.as_bytes(), qualifier.as_bytes()), owner, "{row} {qualifier}");
        }
    }
}
