//! Quotas as the master keeps them: the table hbase:quota, requests that change it, and telling region servers of it.
//!
//! Always true: region servers are told after the table was written, and before the client is answered; those of other processes are told to
//! read it then, and nobody waits until they have. Follows: `MasterQuotaManager`, `HMaster#reloadRegionServerQuotas`.

pub(crate) mod namespace;
pub(crate) mod space;
pub(crate) mod table;

use crate::catalog::newest_hidden_stamp;
use crate::master::Master;
use crate::procedure::ddl::create;
use crate::{ErrorKind, MasterError, Result};
use base::Config;
use model::TableName;
use parking_lot::Mutex;
use proto::pb;
use quota::change::{self, ChangeError};
use quota::rows::{self, ALL_REGION_SERVERS, Subject};
use quota::{Factors, Refresh};
use space::{Removal, Space};
use std::sync::Arc;
use table::QuotaTable;

/// What the master keeps of quotas beside their table.
#[derive(Debug)]
pub(crate) struct Quotas {
    enabled: bool,
    remove_with_table: bool,
    /// Held from reading a row to writing it.
    changing: tokio::sync::Mutex<()>,
    /// Whose quotas are to be deleted as soon as hbase:quota is open.
    forgotten: Mutex<Vec<Subject>>,
    /// Who uses more space than it may.
    pub space: Space,
}

impl Quotas {
    pub(crate) fn new(config: &Config) -> Quotas {
        Quotas {
            enabled: config.get(&quota::settings::ENABLED),
            remove_with_table: config.get(&crate::settings::QUOTA_REMOVE_ON_TABLE_DELETE),
            changing: tokio::sync::Mutex::default(),
            forgotten: Mutex::default(),
            space: Space::default(),
        }
    }

    fn first_forgotten(&self) -> Option<Subject> {
        self.forgotten.lock().first().cloned()
    }

    /// Whether there are quotas.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }
}

impl From<ChangeError> for MasterError {
    fn from(error: ChangeError) -> MasterError {
        match error {
            ChangeError::DoNotRetry(message) => MasterError::do_not_retry(message),
            // What is not checked in Java comes over the wire as an IOException.
            ChangeError::Unchecked(message) => MasterError::new(ErrorKind::Io, message),
        }
    }
}

/// Makes hbase:quota where it is missing, and tells region servers what is in it. Every table is open.
pub(crate) async fn bring_up(master: &Arc<Master>) -> Result<()> {
    if !master.quotas.enabled {
        return Ok(());
    }
    let table = TableName::quota_table();
    if !master.cluster.read().exists(&table) {
        let caller = crate::Caller { user: "basalt".into(), nonce: None };
        let id = create::submit(master, rows::descriptor(), &[], &caller).await?;
        master.procedures.wait_for(id).await?;
    }
    for region in master.tables.live_regions(&table) {
        // What was deleted later than the clock shows now would hide what is written.
        let host = master.assignment.host_of(region.encoded_name())?;
        master.catalog.stamp_after(newest_hidden_stamp(&*host, region.encoded_name()).await? + 1);
    }
    // What cannot be deleted now is when this is done again.
    while let Some(subject) = master.quotas.first_forgotten() {
        delete(master, &subject).await?;
        master.quotas.forgotten.lock().remove(0);
    }
    tell_switch(master);
    space::refresh(master).await?;
    refresh(master).await
}

/// Reads hbase:quota and tells region servers.
pub(crate) async fn refresh(master: &Arc<Master>) -> Result<()> {
    if !master.quotas.enabled {
        return Ok(());
    }
    let mut refresh = Refresh::default();
    for cells in (QuotaTable { master }).settings().await? {
        for cell in cells.iter_from(0) {
            if cell.row() == rows::EXCEED_THROTTLE_ROW {
                refresh.exceed = rows::decode_switch(cell.value());
            }
            match rows::parse(cell.row(), cell.qualifier(), cell.value()) {
                Some(Ok(quota)) => refresh.quotas.push(quota),
                Some(Err(error)) => tracing::error!("{error}"),
                None => {}
            }
        }
    }
    for host in master.servers.all() {
        refresh.factors = factors(master, &host.server_name());
        host.refresh_quotas(refresh.clone());
    }
    order_quotas(master);
    Ok(())
}

/// Has region servers of other processes read hbase:quota anew.
fn order_quotas(master: &Master) {
    for host in master.servers.all().into_iter().filter(|host| host.is_remote()) {
        tokio::spawn(async move {
            if let Err(error) = host.order_quotas().await {
                let server = host.server_name();
                tracing::info!(%server, %error, "the order to reload quotas was not carried out; the server reads hbase:quota every hbase.quota.refresh.period");
            }
        });
    }
}

/// Which part of what is meant for the cluster is this server's. Follows: `QuotaRefresherChore#updateQuotaFactors`.
fn factors(master: &Master, server: &model::ServerName) -> Factors {
    let servers = master.servers.all().len().max(1);
    let mut counts: std::collections::HashMap<&str, (usize, usize)> = std::collections::HashMap::new();
    let cluster = master.cluster.read();
    for node in cluster.regions().filter(|node| node.is_live() && node.location.is_some()) {
        let (here, all) = counts.entry(node.info.table.as_str()).or_default();
        *here += usize::from(node.location.as_ref() == Some(server));
        *all += 1;
    }
    let share = |(table, (here, all)): (&str, (usize, usize))| (table.to_owned(), here as f64 / all as f64);
    Factors { machine: 1.0 / servers as f64, tables: counts.into_iter().map(share).collect() }
}

fn tell_switch(master: &Arc<Master>) {
    let on = master.switches.rpc_throttle();
    // A server that starts now reads what the observer writes.
    master.observer.rpc_throttle(on);
    master.servers.all().iter().for_each(|host| host.switch_rpc_throttle(on));
}

/// Sets a quota as a client asks.
///
/// # Errors
/// HBase's refusals; the table cannot be read or written.
pub(crate) async fn set(master: &Arc<Master>, request: pb::SetQuotaRequest) -> Result<()> {
    if !master.quotas.enabled {
        return Err(change::not_enabled().into());
    }
    let named = request.table_name.as_ref().map(convert::from_proto::table_name).transpose()?;
    let subject = change::subject(&request, named)?;
    let freed = {
        let _changing = master.quotas.changing.lock().await;
        change_one(master, &subject, &request).await?
    };
    refresh(master).await?;
    match freed {
        Some(table) => space::enable(master, &table).await,
        None => Ok(()),
    }
}

/// Answers the table that is to be enabled now, for a quota of space had disabled it.
async fn change_one(
    master: &Arc<Master>,
    subject: &Subject,
    request: &pb::SetQuotaRequest,
) -> Result<Option<TableName>> {
    let table = QuotaTable { master };
    let current = table.quotas(subject).await?;
    let changed = change::merge(subject, current, request)?;
    let removal = match changed.and_then(|quotas| quotas.space) {
        Some(_) => None,
        None => Removal::of(master, subject, current.as_ref()).await?,
    };
    match changed {
        Some(quotas) => table.put(subject.row(), subject.qualifier(), rows::encode(&quotas)).await?,
        None => table.delete(subject).await?,
    }
    match removal {
        Some(removal) => removal.after(master).await,
        None => Ok(None),
    }
}

/// Switches whether quotas of requests count; answers how it was.
pub(crate) async fn switch_rpc_throttle(master: &Arc<Master>, on: bool) -> Result<bool> {
    if !master.quotas.enabled {
        tracing::warn!("rpc-throttle is not switched to {on}: hbase.quota.enabled is false");
        return Ok(false);
    }
    let was = master.switches.change(&master.files, |switches| switches.set_rpc_throttle(on)).await?;
    tell_switch(master);
    let mut told = tokio::task::JoinSet::new();
    for host in master.servers.all().into_iter().filter(|host| host.is_remote()) {
        told.spawn(async move { (host.server_name(), host.order_rpc_throttle(on).await) });
    }
    for (server, outcome) in told.join_all().await {
        if let Err(error) = outcome {
            tracing::warn!(%server, %error, "the order to switch rpc-throttle was not carried out; switch it again, or restart the server, which reads it then");
        }
    }
    Ok(was)
}

/// Whether quotas of requests count.
pub(crate) fn is_rpc_throttle_on(master: &Master) -> bool {
    master.quotas.enabled && master.switches.rpc_throttle()
}

/// Switches whether calls may exceed their quotas while the region server's own last; answers how it was.
pub(crate) async fn switch_exceed_throttle(master: &Arc<Master>, on: bool) -> Result<bool> {
    if !master.quotas.enabled {
        tracing::warn!("exceed-throttle is not switched to {on}: hbase.quota.enabled is false");
        return Ok(false);
    }
    let table = QuotaTable { master };
    let was = {
        let _changing = master.quotas.changing.lock().await;
        let was = table.value(rows::EXCEED_THROTTLE_ROW, rows::SETTINGS).await?;
        let was = was.is_some_and(|value| rows::decode_switch(&value));
        if was != on {
            if on {
                let all = Subject::RegionServer(ALL_REGION_SERVERS.to_owned());
                change::may_exceed(table.quotas(&all).await?.as_ref())?;
            }
            table.put(rows::EXCEED_THROTTLE_ROW.into(), rows::SETTINGS.into(), rows::encode_switch(on)).await?;
        }
        was
    };
    refresh(master).await?;
    Ok(was)
}

/// A table or namespace is gone, and its quotas with it. Follows: `MasterQuotasObserver`.
pub(crate) async fn forget(master: &Arc<Master>, subject: Subject) -> Result<()> {
    if !master.quotas.enabled {
        return Ok(());
    }
    if let Subject::Table(table) = &subject {
        master.quotas.space.forget_table(table);
    }
    if !master.quotas.remove_with_table {
        return Ok(());
    }
    if !master.is_initialized() {
        master.quotas.forgotten.lock().push(subject);
        return Ok(());
    }
    delete(master, &subject).await?;
    refresh(master).await
}

async fn delete(master: &Arc<Master>, subject: &Subject) -> Result<()> {
    let _changing = master.quotas.changing.lock().await;
    let table = QuotaTable { master };
    let Some(quotas) = table.quotas(subject).await? else { return Ok(()) };
    let removal = Removal::of(master, subject, Some(&quotas)).await?;
    table.delete(subject).await?;
    match removal {
        // The table is gone: there is nothing to enable.
        Some(removal) => removal.after(master).await.map(drop),
        None => Ok(()),
    }
}
