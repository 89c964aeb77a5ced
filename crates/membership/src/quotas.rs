//! Quotas of a member: read from the table hbase:quota, as any client reads it, and held to by the server; sizes of regions are reported to the
//! master, which holds them against quotas of space.
//!
//! Always true: until hbase:quota was read for the first time nobody is limited; when it cannot be read, what was read last holds. Follows:
//! `QuotaCache`, `RegionServerRpcQuotaManager`, `RpcThrottleStorage`, `SpaceQuotaRefresherChore`, `RegionSizeReportingChore`.

use crate::link::{LinkError, MasterLink};
use base::Config;
use bytes::Bytes;
use client::Connection;
use convert::{from_proto, to_proto};
use coordination::SessionOver;
use model::{Scan, TableName};
use proto::methods::Method;
use proto::pb;
use quota::rows::{self, Subject, Usage};
use quota::space::ChoreTimes;
use quota::{Factors, Refresh, TableSnapshots, settings};
use regionserver::{QuotaSource, RegionServer, Report};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::time::Duration;

/// hbase:quota, or the master, does not answer for so long: the server goes on with what it knows.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// After the first failure; doubled by each of the next.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The pause does not grow beyond it.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why something was not read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Client(#[from] client::Error),
    #[error(transparent)]
    Over(#[from] SessionOver),
    #[error("no answer within {} s", READ_LIMIT.as_secs())]
    Late,
}

/// Reads hbase:quota for one server.
pub struct QuotaReader {
    server: Arc<RegionServer>,
    link: Arc<MasterLink>,
    connection: Connection,
    period: Duration,
    space: ChoreTimes,
    sizes: ChoreTimes,
    /// Held while the table is read, so that what was read later counts; the shares of tables as they were found last.
    reading: tokio::sync::Mutex<FxHashMap<String, f64>>,
}

impl QuotaReader {
    /// For `server`, over a connection to its cluster that `connect` opens; `None` where `config` has no quotas (`hbase.quota.enabled`).
    pub fn new(
        server: Arc<RegionServer>,
        link: Arc<MasterLink>,
        connect: impl FnOnce() -> Connection,
        config: &Config,
    ) -> Option<Arc<QuotaReader>> {
        config.get(&settings::ENABLED).then(|| {
            Arc::new(QuotaReader {
                server,
                link,
                connection: connect(),
                period: Duration::from_millis(config.get(&settings::REFRESH_PERIOD_MS)),
                space: settings::REFRESHER.times(config),
                sizes: settings::REPORTING.times(config),
                reading: tokio::sync::Mutex::default(),
            })
        })
    }

    /// Holds the server to its quotas, and reports sizes, for as long as it is polled.
    pub async fn keep(&self) {
        tokio::join!(self.keep_limits(), self.keep_space(), self.keep_reporting());
    }

    async fn keep_limits(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let next = match self.read_limits().await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    self.period
                }
                Err(error) => {
                    tell(&error, "the limits of calls in hbase:quota were not read, those that were read last hold");
                    let next = pause.min(self.period);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    next
                }
            };
            tokio::time::sleep(next).await;
        }
    }

    async fn keep_space(&self) {
        tokio::time::sleep(self.space.delay).await;
        loop {
            match within(self.read_space()).await {
                Ok(snapshots) => self.server.space_quotas().refresh(snapshots),
                Err(error) => tell(&error, "how tables stand to their quotas of space was not read from hbase:quota"),
            }
            tokio::time::sleep(self.space.period).await;
        }
    }

    async fn keep_reporting(&self) {
        tokio::time::sleep(self.sizes.delay).await;
        loop {
            match self.report_sizes().await {
                Ok(()) => {}
                Err(error) if error.is_not_ready() => tracing::debug!("region sizes were not reported: {error}"),
                Err(error) => {
                    tracing::warn!("region sizes were not reported to the master, the next report has them: {error}")
                }
            }
            tokio::time::sleep(self.sizes.period).await;
        }
    }

    async fn report_sizes(&self) -> Result<(), LinkError> {
        let of_region = |(info, bytes)| pb::RegionSpaceUse {
            region_info: Some(to_proto::region_info(&info)),
            region_size: Some(bytes),
        };
        let space_use = self.server.region_sizes().into_iter().map(of_region).collect();
        let request = pb::RegionSpaceUseReportRequest { space_use };
        let method = Method::RegionServerStatusReportRegionSpaceUse;
        self.link.call::<pb::RegionSpaceUseReportResponse>(method, &request).await.map(drop)
    }

    /// From now on calls are limited by what hbase:quota says now, if the switch says that they are. The switch is read each time: the order to
    /// throw it may have been lost with the master that gave it.
    async fn read_limits(&self) -> Result<(), ReadError> {
        let mut shares = self.reading.lock().await;
        self.server.quotas().switch(self.link.nodes().rpc_throttle().await?);
        let mut refresh = Refresh::default();
        within(self.scan(rows::SETTINGS_FAMILY, &[], |row, qualifier, value| {
            if row == rows::EXCEED_THROTTLE_ROW {
                refresh.exceed = rows::decode_switch(value);
            }
            match rows::parse(row, qualifier, value) {
                Some(Ok(quota)) => refresh.quotas.push(quota),
                Some(Err(error)) => tracing::error!("{error}"),
                None => {}
            }
        }))
        .await?;
        let servers = self.link.nodes().live_servers().await?.len().max(1);
        match within(self.shares_of_tables(&refresh.quotas)).await {
            Ok(found) => *shares = found,
            Err(error) => {
                tracing::warn!(
                    "how many regions tables have is not known, shares of limits stay as they were: {error}"
                );
            }
        }
        refresh.factors = Factors { machine: 1.0 / servers as f64, tables: shares.clone() };
        self.server.quotas().refresh(&refresh);
        Ok(())
    }

    /// This server's share of the open regions of each table that a quota names. Asks the master where there are any.
    async fn shares_of_tables(&self, quotas: &[(Subject, pb::Quotas)]) -> Result<FxHashMap<String, f64>, ReadError> {
        let named: FxHashSet<&TableName> = quotas.iter().filter_map(|(subject, _)| table_of(subject)).collect();
        if named.is_empty() {
            return Ok(FxHashMap::default());
        }
        let status = self.connection.admin().cluster_status_of(&[pb::Option::TableToRegionsCount]).await?;
        let mut here: FxHashMap<TableName, u32> = FxHashMap::default();
        for region in self.server.regions().iter().filter(|region| region.info().replica_id == 0) {
            *here.entry(region.info().table.clone()).or_default() += 1;
        }
        Ok(shares(&status.table_region_states_count, &named, &here))
    }

    async fn read_space(&self) -> Result<TableSnapshots, ReadError> {
        let mut snapshots = TableSnapshots::default();
        self.scan(rows::USAGE_FAMILY, rows::POLICY, |row, qualifier, value| {
            match rows::parse_usage(row, qualifier, value) {
                Some(Ok(Usage::Table(table, snapshot))) => drop(snapshots.insert(table, snapshot)),
                Some(Err(error)) => tracing::error!("{error}"),
                Some(Ok(_)) | None => {}
            }
        })
        .await?;
        Ok(snapshots)
    }

    /// Shows `see` row, column and value of each cell of a family of hbase:quota; of one column where it is not empty.
    async fn scan(
        &self,
        family: &'static [u8],
        qualifier: &'static [u8],
        mut see: impl FnMut(&[u8], &[u8], &[u8]),
    ) -> Result<(), ReadError> {
        let qualifiers = Some(Bytes::from_static(qualifier)).filter(|name| !name.is_empty()).into_iter().collect();
        let columns = [(Bytes::from_static(family), qualifiers)].into_iter().collect();
        let table = self.connection.table(&TableName::quota_table());
        let mut scanner = table.scan(Scan { columns, ..Scan::default() }, table.scan_options());
        while let Some(row) = scanner.next().await? {
            for cell in &row {
                see(cell.row(), cell.qualifier(), cell.value());
            }
        }
        Ok(())
    }
}

impl QuotaSource for QuotaReader {
    fn reload(&self) -> Report<'_> {
        Box::pin(async move { self.read_limits().await.map_err(|error| error.to_string()) })
    }
}

async fn within<T>(work: impl Future<Output = Result<T, ReadError>>) -> Result<T, ReadError> {
    tokio::time::timeout(READ_LIMIT, work).await.unwrap_or(Err(ReadError::Late))
}

/// A table that is not there is made by a master at its start, when quotas are on for it, too.
fn tell(error: &ReadError, what: &str) {
    match error {
        ReadError::Client(client::Error::TableNotFound(_)) => {
            tracing::info!("{what}: there is no such table; set hbase.quota.enabled for the master, too");
        }
        _ => tracing::warn!("{what}: {error}"),
    }
}

fn table_of(subject: &Subject) -> Option<&TableName> {
    match subject {
        Subject::Table(table) | Subject::UserTable(_, table) => Some(table),
        Subject::User(_) | Subject::UserNamespace(..) | Subject::Namespace(_) | Subject::RegionServer(_) => None,
    }
}

/// Follows: `QuotaRefresherChore#updateTableMachineQuotaFactors`.
fn shares(
    counts: &[pb::TableRegionStatesCount],
    named: &FxHashSet<&TableName>,
    here: &FxHashMap<TableName, u32>,
) -> FxHashMap<String, f64> {
    let share = |count: &pb::TableRegionStatesCount| {
        let table = from_proto::table_name(&count.table_name).ok().filter(|table| named.contains(table))?;
        let all = count.region_states_count.open_regions;
        let here = here.get(&table).copied().unwrap_or_default();
        // The master's count may be older than a region that was opened here.
        let share = if all == 0 { 0.0 } else { (f64::from(here) / f64::from(all)).min(1.0) };
        Some((table.as_str().to_owned(), share))
    };
    counts.iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_limit_is_divided_by_its_open_regions() {
        let table = |name: &str| TableName::parse(name).expect("legal");
        let count = |name: &str, open_regions| pb::TableRegionStatesCount {
            table_name: to_proto::table_name(&table(name)),
            region_states_count: pb::RegionStatesCount { open_regions, total_regions: 9, ..Default::default() },
        };
        let counts = [count("ns:a", 8), count("b", 0), count("c", 2), count("d", 4), count("e", 4)];
        let names = ["ns:a", "b", "c", "d", "gone"].map(table);
        let here = [(table("ns:a"), 2), (table("c"), 3), (table("e"), 1)].into_iter().collect();
        let found = shares(&counts, &names.iter().collect(), &here);
        let mut found: Vec<_> = found.iter().map(|(name, share)| (name.as_str(), *share)).collect();
        found.sort_by_key(|(name, _)| *name);
        assert_eq!(found, [("b", 0.0), ("c", 1.0), ("d", 0.0), ("ns:a", 0.25)]);
    }
}
