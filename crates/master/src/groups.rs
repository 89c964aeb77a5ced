//! Groups of region servers at work: kept in hbase:rsgroup, asked where regions may be, and regions moved when they change.
//!
//! Always true:
//!  1. A change is in hbase:rsgroup before it is seen, and before regions are moved for it.
//!  2. While groups are on and known, a region is opened on servers of its table's group only, or as `hbase.rsgroup.fallback.enable` has it. Where
//!     there is none it is FAILED_OPEN, and tried again as soon as a server comes or a group changes. HBase's own tables are opened anywhere
//!     before that: without them nobody could mend anything.
//!  3. Until hbase:rsgroup is read, groups are as the coordination nodes have them, and cannot be changed.
//!  4. What is missing of a change after a crash (a table made or deleted, a region moved) is mended by the next start, or the balancer.
//!
//! Not here: the rules of groups (`rsgroup`). Follows: `RSGroupInfoManagerImpl`, `RSGroupAdminServer`, `RSGroupAdminEndpoint`,
//! `RSGroupBasedLoadBalancer` of branch 2.

use crate::catalog::newest_hidden_stamp;
use crate::chores;
use crate::cluster::{Cluster, RegionNode, RegionState};
use crate::host::BoxFuture;
use crate::master::Master;
use crate::procedure::Caller;
use crate::procedure::ddl::{create, modify};
use crate::procedure::region::transit::{self, Transition};
use crate::servers::Servers;
use crate::{ErrorKind, HostError, MasterError, Result, settings};
use base::{Config, SeqId};
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use model::{FamilyDescriptor, Mutation, MutationKind, RegionInfo, Scan, ServerName, TableDescriptor, TableName};
use parking_lot::RwLock;
use proto::{Message, magic, pb};
use rsgroup::{Address, Group, Groups, Moved, Refusal, RowChanges};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinSet;

/// The endpoint whose name among `hbase.coprocessor.master.classes` switches groups on.
const ENDPOINT: &str = "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint";
/// Regions that are on their way at the same time after a change.
const MOST_MOVING: usize = 64;

impl From<Refusal> for MasterError {
    fn from(refusal: Refusal) -> MasterError {
        match refusal {
            Refusal::Constraint(message) => MasterError::new(ErrorKind::Constraint, message),
            Refusal::DoNotRetry(message) => MasterError::do_not_retry(message),
        }
    }
}

/// Says to which group a new table belongs whose descriptor names none. Follows: `RSGroupInfoManagerImpl.RSGroupMappingScript`.
pub trait GroupMapping: Send + Sync {
    /// The name of the group; `None` where nothing is said of it, or it could not be found out, which has been told in the log.
    fn group<'a>(&'a self, table: &'a TableName) -> BoxFuture<'a, Option<String>>;
}

/// Says nothing of any table.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGroupMapping;

impl GroupMapping for NoGroupMapping {
    fn group<'a>(&'a self, _table: &'a TableName) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// What is known of groups.
#[derive(Debug)]
struct Known {
    /// The servers that were online when `default` was made of those that no other group has.
    online: BTreeSet<Address>,
    groups: Arc<Groups>,
    /// Whether it is what hbase:rsgroup says.
    is_read: bool,
}

/// The groups of a master's region servers.
#[derive(Debug)]
pub(crate) struct RegionServerGroups {
    is_on: bool,
    falls_back: AtomicBool,
    /// Held from reading what groups there are to seeing what they became.
    changing: tokio::sync::Mutex<()>,
    /// `None` while nothing is known, neither from the coordination nodes nor from hbase:rsgroup.
    known: RwLock<Option<Known>>,
}

impl RegionServerGroups {
    /// `nodes` are the values of the coordination nodes, which hold what the master before wrote last.
    pub fn new(config: &Config, nodes: &[Bytes]) -> RegionServerGroups {
        let named = |key: &str, class: &str| {
            config
                .text(key)
                .is_some_and(|text| text.split(',').any(|name| name.split('|').any(|part| part.trim() == class)))
        };
        let is_on = named(settings::MASTER_COPROCESSORS.key, ENDPOINT)
            || named(balancer::settings::CLASS.key, balancer::settings::BY_GROUP);
        let kept: Vec<Group> = nodes.iter().filter_map(of_node).collect();
        // Who is online is looked at when it is asked for.
        let known = (is_on && !kept.is_empty()).then(|| Known {
            online: BTreeSet::new(),
            groups: Arc::new(Groups::load(kept, &BTreeSet::new(), &rsgroup::Servers::default())),
            is_read: false,
        });
        RegionServerGroups {
            is_on,
            falls_back: AtomicBool::new(config.get(&settings::GROUP_FALLBACK)),
            changing: tokio::sync::Mutex::default(),
            known: RwLock::new(known),
        }
    }

    /// What may change while the master runs is as `config` says from now on.
    pub fn update_configuration(&self, config: &Config) {
        self.falls_back.store(config.get(&settings::GROUP_FALLBACK), Ordering::SeqCst);
    }

    /// Whether there are any.
    pub fn are_on(&self) -> bool {
        self.is_on
    }

    /// The same once hbase:rsgroup is read.
    fn read(&self, servers: &Servers) -> Option<Arc<Groups>> {
        let is_read = self.known.read().as_ref().is_some_and(|known| known.is_read);
        if is_read { self.current(servers) } else { None }
    }

    /// The groups as they are now; `None` where they are off, or nothing is known yet.
    pub fn current(&self, servers: &Servers) -> Option<Arc<Groups>> {
        if !self.is_on {
            return None;
        }
        let online = addresses(&servers.names());
        if let Some(known) = self.known.read().as_ref()?.with(&online) {
            return Some(known);
        }
        let mut known = self.known.write();
        let known = known.as_mut()?;
        known.groups = Arc::new(known.groups.with_online(&online));
        known.online = online;
        Some(known.groups.clone())
    }

    /// The servers on which regions of `table` may be opened; `None`: on any.
    pub fn servers_for(&self, table: &TableName, cluster: &Cluster, servers: &Servers) -> Option<BTreeSet<ServerName>> {
        let groups = self.current(servers)?;
        let may = self.candidates(&groups, group_of(&groups, table, cluster), servers);
        if may.is_empty() && table.is_system() {
            return None;
        }
        Some(may)
    }

    /// The servers that are online on which the regions of `group` may be opened.
    pub fn candidates(&self, groups: &Groups, group: &Group, servers: &Servers) -> BTreeSet<ServerName> {
        let names = servers.names();
        let may = groups.candidates(group, &addresses(&names), self.falls_back.load(Ordering::SeqCst));
        names.into_iter().filter(|name| may.contains(&Address::from(name))).collect()
    }
}

impl Known {
    fn with(&self, online: &BTreeSet<Address>) -> Option<Arc<Groups>> {
        (self.online == *online).then(|| self.groups.clone())
    }
}

/// The group that a coordination node holds, without its prefix. One that cannot be read is told of: hbase:rsgroup counts.
fn of_node(value: &Bytes) -> Option<Group> {
    let group = read_group(magic::decode(value)?);
    group
        .inspect_err(|error| {
            tracing::warn!(
                "cannot read a znode below rsgroup, its group is ignored until hbase:rsgroup is read: {error}"
            )
        })
        .ok()
}

/// A group as znodes and hbase:rsgroup hold it.
fn read_group(message: std::result::Result<pb::RsGroupInfo, impl Display>) -> std::result::Result<Group, String> {
    let message = message.map_err(|error| error.to_string())?;
    Group::from_proto(&message).map_err(|error| error.to_string())
}

fn addresses(names: &[ServerName]) -> BTreeSet<Address> {
    names.iter().map(Address::from).collect()
}

/// The group that the regions of a table belong to.
pub(crate) fn group_of<'a>(groups: &'a Groups, table: &TableName, cluster: &Cluster) -> &'a Group {
    let descriptor = cluster.descriptor(table);
    let of_table = descriptor.as_ref().and_then(|descriptor| attribute(descriptor));
    let of_namespace = cluster.namespace(table.namespace()).and_then(|pairs| pairs.get(rsgroup::GROUP_ATTRIBUTE));
    groups.for_table(table, of_table, of_namespace.map(String::as_str))
}

fn attribute(table: &TableDescriptor) -> Option<&str> {
    table.attributes.get(rsgroup::GROUP_ATTRIBUTE.as_bytes()).and_then(|value| std::str::from_utf8(value).ok())
}

/// As HBase makes it. Follows: `RSGroupInfoManagerImpl#createRSGroupTable`.
fn descriptor() -> TableDescriptor {
    let mut table = TableDescriptor::new(table(), [FamilyDescriptor::new(rsgroup::COLUMN.0)]);
    let split_policy = "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy";
    let endpoint = "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|";
    table.attributes.insert(Bytes::from("SPLIT_POLICY"), Bytes::from(split_policy));
    table.attributes.insert(Bytes::from("coprocessor$1"), Bytes::from(endpoint));
    table
}

/// hbase:rsgroup.
pub(crate) fn table() -> TableName {
    TableName::of("hbase", "rsgroup").expect("a legal name")
}

/// Servers as changes look at them.
pub(crate) fn servers_of(master: &Master) -> rsgroup::Servers {
    rsgroup::Servers {
        online: addresses(&master.servers.names()),
        draining: addresses(&master.servers.draining()),
        dead: addresses(&master.servers.dead()),
    }
}

/// Makes hbase:rsgroup where it is missing, opens and reads it. Regions are placed by it from then on.
pub(crate) async fn bring_up(master: &Arc<Master>) -> Result<()> {
    if !master.groups.is_on {
        return Ok(());
    }
    let table = table();
    if master.cluster.read().exists(&table) {
        master.assignment.assign(master.tables.closed_regions(&table)).await?;
        master.assignment.check_none_failed(&table)?;
    } else {
        let caller = Caller { user: "basalt".into(), nonce: None };
        let id = create::submit(master, descriptor(), &[], &caller).await?;
        master.procedures.wait_for(id).await?;
    }
    let mut kept = Vec::new();
    for region in master.tables.live_regions(&table) {
        let (host, name) = (master.assignment.host_of(region.encoded_name())?, region.encoded_name());
        // What was deleted later than the clock shows now would hide what is written.
        master.catalog.stamp_after(newest_hidden_stamp(&*host, name).await? + 1);
        let cells = host.scan(name, Scan { cache_blocks: true, ..Scan::default() }).await?;
        for cell in cells.iter_from(0).filter(|cell| cell.qualifier() == rsgroup::COLUMN.1.as_bytes()) {
            match read_group(pb::RsGroupInfo::decode(cell.value())) {
                Ok(group) => kept.push(group),
                Err(error) => {
                    let row = cell::print::to_string_binary(cell.row());
                    tracing::error!(
                        "cannot read the row {row} of hbase:rsgroup, its group is ignored; mend or delete the row and restart the master: {error}"
                    );
                }
            }
        }
    }
    let groups = reconcile(master, kept);
    let online = addresses(&master.servers.names());
    *master.groups.known.write() = Some(Known { online, groups: Arc::new(groups.clone()), is_read: true });
    tell_observer(master, &[], &groups);
    Ok(())
}

/// The groups that are kept, with the tables that there are: a table made or deleted when the master stopped is where it belongs.
fn reconcile(master: &Master, kept: Vec<Group>) -> Groups {
    let cluster = master.cluster.read();
    let tables: BTreeSet<TableName> = cluster.tables().map(|(table, _)| table.name.clone()).collect();
    // Somebody wants those there, whatever their namespace says.
    let of_default = kept.iter().find(|group| group.name == rsgroup::DEFAULT);
    let settled: BTreeSet<TableName> = of_default.map(|group| group.tables.clone()).unwrap_or_default();
    let mut groups = Groups::load(kept, &tables, &servers_of(master));
    let gone: Vec<TableName> =
        groups.list().flat_map(|group| group.tables.iter().filter(|table| !tables.contains(*table)).cloned()).collect();
    for table in gone {
        groups = groups.without_table(&table);
    }
    let of_default = groups.get(rsgroup::DEFAULT).map(|group| group.tables.clone()).unwrap_or_default();
    for table in of_default.difference(&settled) {
        let without = groups.without_table(table);
        let group = group_of(&without, table, &cluster).name.clone();
        if group != rsgroup::DEFAULT {
            groups = without.with_table(table, &group);
        }
    }
    groups
}

/// Changes groups as `change` says, and answers what it has moved.
///
/// # Errors
/// What `change` refuses; hbase:rsgroup cannot be written, and nothing is changed.
pub(crate) async fn change<T>(
    master: &Arc<Master>,
    change: impl FnOnce(&Groups, &rsgroup::Servers) -> std::result::Result<(Groups, T), Refusal>,
) -> Result<T> {
    let _one_at_a_time = master.groups.changing.lock().await;
    let before = must_be_known(master)?;
    let (after, moved) = change(&before, &servers_of(master))?;
    let rows = before.rows_after(&after);
    write(master, &rows).await?;
    tell_observer(master, &rows.deleted, &after);
    let online = addresses(&master.servers.names());
    let groups = Arc::new(after.with_online(&online));
    *master.groups.known.write() = Some(Known { groups, online, is_read: true });
    chores::wake_failed_opens(master);
    Ok(moved)
}

/// The groups as they are now.
///
/// # Errors
/// They are not read yet.
pub(crate) fn must_be_known(master: &Master) -> Result<Arc<Groups>> {
    let known = master.groups.read(&master.servers);
    known.ok_or_else(|| MasterError::new(ErrorKind::PleaseHold, "hbase:rsgroup is not read yet"))
}

async fn write(master: &Arc<Master>, rows: &RowChanges) -> Result<()> {
    let not_open = || HostError::Failed(format!("no region of {} is open", table()));
    let region = master.tables.live_regions(&table()).pop().ok_or_else(not_open)?;
    let (family, qualifier) = (rsgroup::COLUMN.0.as_bytes(), rsgroup::COLUMN.1.as_bytes());
    let mutation = |kind: MutationKind, spec: CellSpec<'_>| {
        let mut cells = CellBuffer::new();
        cells.push_spec(&spec, SeqId(0));
        Mutation::new(kind, Bytes::copy_from_slice(spec.row), cells.into_block())
    };
    let (stamp, delete_stamp) = (master.catalog.stamp().0, master.catalog.delete_stamp().0);
    let puts = rows.put.iter().map(|(name, message)| {
        let (row, type_code, value) = (name.as_bytes(), CellType::Put.code(), message.encode_to_vec());
        let spec = CellSpec { row, family, qualifier, timestamp: stamp, type_code, value: &value, tags: &[] };
        mutation(MutationKind::Put, spec)
    });
    let deletes = rows.deleted.iter().map(|name| {
        let (row, type_code) = (name.as_bytes(), CellType::DeleteFamily.code());
        let spec = CellSpec { row, family, qualifier: &[], timestamp: delete_stamp, type_code, value: &[], tags: &[] };
        mutation(MutationKind::Delete, spec)
    });
    let name = region.encoded_name();
    Ok(master.assignment.host_of(name)?.mutate(name, puts.chain(deletes).collect()).await?)
}

fn tell_observer(master: &Master, gone: &[String], groups: &Groups) {
    gone.iter().for_each(|name| master.observer.region_server_group(name, None));
    for group in groups.list() {
        master.observer.region_server_group(&group.name, Some(&magic::encode(&group.to_proto())));
    }
}

/// A table was made: it belongs to the group where its regions are. Follows: `RSGroupAdminEndpoint#assignTableToGroup`.
pub(crate) async fn table_made(master: &Arc<Master>, table: &TableName) -> Result<()> {
    let Some(groups) = master.groups.read(&master.servers) else { return Ok(()) };
    if groups.of_table(table).is_some() {
        return Ok(());
    }
    let group = group_of(&groups, table, &master.cluster.read()).name.clone();
    change(master, |groups, _| Ok((groups.with_table(table, &group), ()))).await
}

/// A table was deleted.
pub(crate) async fn table_deleted(master: &Arc<Master>, table: &TableName) -> Result<()> {
    if master.groups.read(&master.servers).is_none_or(|groups| groups.of_table(table).is_none()) {
        return Ok(());
    }
    change(master, |groups, _| Ok((groups.without_table(table), ()))).await
}

/// A table has another descriptor: where that names another group than before, the table goes there. Its regions follow when they are reopened.
/// Follows: `RSGroupAdminEndpoint#postCompletedModifyTableAction`.
pub(crate) async fn table_changed(master: &Arc<Master>, old: &TableDescriptor, new: &TableDescriptor) -> Result<()> {
    let Some(groups) = master.groups.read(&master.servers) else { return Ok(()) };
    let Some(target) = attribute(new).filter(|name| Some(*name) != attribute(old)) else { return Ok(()) };
    if groups.of_table(&new.name).is_some_and(|group| group.name == target) {
        return Ok(());
    }
    // One that has gone meanwhile takes nothing in.
    change(master, |groups, _| {
        let after = if groups.get(target).is_some() { groups.with_table(&new.name, target) } else { groups.clone() };
        Ok((after, ()))
    })
    .await
}

/// Whether a table of this descriptor may be made. Answers the group that [`GroupMapping`] has for it, into which it is to be moved
/// ([`move_new_table`]) before its regions are opened. Follows: `RSGroupAdminEndpoint#preCreateTableAction`, `#preCloneSnapshot`,
/// `RSGroupInfoManagerImpl#determineRSGroupInfoForTable`.
///
/// # Errors
/// It names a group that is not there, or its group has no server that is online.
pub(crate) async fn check_create(master: &Master, descriptor: &TableDescriptor) -> Result<Option<String>> {
    let Some(groups) = master.groups.read(&master.servers) else { return Ok(None) };
    let table = &descriptor.name;
    if table.is_system() {
        return Ok(None);
    }
    if attribute(descriptor).is_none()
        && groups.of_table(table).is_none()
        && let Some(name) = master.group_mapping.group(table).await
    {
        // One that is not there is passed over, as in HBase.
        if let Some(group) = groups.get(&name) {
            check_servers(master, group, table)?;
            return Ok(Some(name));
        }
        tracing::warn!(
            %table,
            "the rsgroup {name:?} that {} gives for a new table does not exist; the table goes to the group of its namespace, or to default",
            settings::GROUP_SCRIPT.key
        );
    }
    check_group(master, &groups, descriptor).map(|()| None)
}

/// A table that is about to be made is in that group from now on. Follows: `RSGroupAdminEndpoint#moveTableToRSGroup`.
///
/// # Errors
/// hbase:rsgroup cannot be written.
pub(crate) async fn move_new_table(master: &Arc<Master>, table: &TableName, group: Option<String>) -> Result<()> {
    let Some(group) = group else { return Ok(()) };
    change(master, |groups, _| {
        // One that has gone meanwhile takes nothing in.
        let after = if groups.get(&group).is_some() { groups.with_table(table, &group) } else { groups.clone() };
        Ok((after, ()))
    })
    .await
}

/// Whether a table's descriptor may become `new`. Follows: `RSGroupAdminEndpoint#preModifyTableAction`.
///
/// # Errors
/// It names another group than before, which is not there or has no server that is online.
pub(crate) fn check_modify(master: &Master, old: &TableDescriptor, new: &TableDescriptor) -> Result<()> {
    match master.groups.read(&master.servers) {
        Some(groups) if attribute(old) != attribute(new) => check_group(master, &groups, new),
        _ => Ok(()),
    }
}

fn check_group(master: &Master, groups: &Groups, descriptor: &TableDescriptor) -> Result<()> {
    let group = match attribute(descriptor) {
        Some(name) => groups.get(name).ok_or_else(|| missing(name))?,
        None => {
            let cluster = master.cluster.read();
            let pairs = cluster.namespace(descriptor.name.namespace());
            let of_namespace = pairs.and_then(|pairs| pairs.get(rsgroup::GROUP_ATTRIBUTE));
            groups.for_table(&descriptor.name, None, of_namespace.map(String::as_str))
        }
    };
    check_servers(master, group, &descriptor.name)
}

fn check_servers(master: &Master, group: &Group, table: &TableName) -> Result<()> {
    if addresses(&master.servers.assignable()).is_disjoint(&group.servers) {
        let message = format!("No online servers in the rsgroup {} which table {table} belongs to", group.name);
        return Err(MasterError::new(ErrorKind::HBaseIo, message));
    }
    Ok(())
}

/// Servers that were dead are forgotten: they are in no group any more, but for those whose address has a server again. Follows:
/// `RSGroupAdminEndpoint#postClearDeadServers`.
pub(crate) async fn dead_cleared(master: &Arc<Master>, cleared: &[ServerName]) -> Result<()> {
    let Some(groups) = master.groups.read(&master.servers) else { return Ok(()) };
    let all = servers_of(master);
    let gone: BTreeSet<Address> = cleared.iter().map(Address::from).collect();
    let gone = gone.into_iter().filter(|address| !all.online.contains(address) && !all.dead.contains(address));
    let gone: BTreeSet<Address> = gone.filter(|address| groups.of_server(address).is_some()).collect();
    if gone.is_empty() {
        return Ok(());
    }
    change(master, |groups, all| Ok((groups.remove_servers(&gone, all)?, ()))).await
}

/// Gives tables the name of their new group where their descriptors name one, and waits until they have it: `is_meant` says which. Their regions
/// move as they are reopened. Follows: `RSGroupAdminServer#modifyOrMoveTables`, `#renameRSGroup`.
///
/// # Errors
/// Those of a change of a table: the group has changed all the same.
pub(crate) async fn rename_in_tables(
    master: &Arc<Master>,
    group: &str,
    caller: &Caller,
    is_meant: impl Fn(&TableDescriptor, &str) -> bool,
) -> Result<()> {
    let meant: Vec<TableName> = {
        let cluster = master.cluster.read();
        let tables = cluster.tables().map(|(table, _)| table);
        let tables = tables.filter(|table| attribute(table).is_some_and(|name| name != group && is_meant(table, name)));
        tables.map(|table| table.name.clone()).collect()
    };
    let mut begun = Vec::new();
    for table in meant {
        let named = |old: &TableDescriptor| {
            let mut new = old.clone();
            let (key, value) = (Bytes::from(rsgroup::GROUP_ATTRIBUTE), Bytes::copy_from_slice(group.as_bytes()));
            new.attributes.insert(key, value);
            Ok(new)
        };
        let caller = Caller { user: caller.user.clone(), nonce: None };
        begun.push(modify::submit(master, &table, true, &caller, named).await?);
    }
    for id in begun {
        master.procedures.wait_for(id).await?;
    }
    Ok(())
}

/// Whether a namespace may be configured so. Follows: `RSGroupAdminEndpoint#preCreateNamespace`.
///
/// # Errors
/// It names a group that is not there.
pub(crate) fn check_namespace(master: &Master, configuration: &crate::cluster::NamespaceConfiguration) -> Result<()> {
    let Some(groups) = master.groups.read(&master.servers) else { return Ok(()) };
    match configuration.get(rsgroup::GROUP_ATTRIBUTE).filter(|name| groups.get(name).is_none()) {
        Some(name) => Err(missing(name)),
        None => Ok(()),
    }
}

fn missing(group: &str) -> MasterError {
    MasterError::new(ErrorKind::Constraint, format!("Region server group {group} does not exist."))
}

/// A region that is not where it belongs.
#[derive(Debug)]
pub(crate) struct Misplaced {
    pub info: RegionInfo,
    pub to: ServerName,
}

/// Regions that are open on servers on which they may not be, of those that `counts` says yes to, with the server that takes each. Those for
/// which there is none stay.
pub(crate) fn misplaced(master: &Master, counts: impl Fn(&TableName, &ServerName) -> bool) -> Vec<Misplaced> {
    let Some(groups) = master.groups.current(&master.servers) else { return Vec::new() };
    let (cluster, draining) = (master.cluster.read(), master.servers.draining());
    let mut loads = std::collections::BTreeMap::<ServerName, usize>::new();
    let mut found = Vec::new();
    for (table, _) in cluster.tables() {
        let may = master.groups.candidates(&groups, group_of(&groups, &table.name, &cluster), &master.servers);
        let open = |node: &&RegionNode| node.is_live() && node.state == RegionState::Open;
        for node in cluster.with_replicas_of(&table.name).filter(open) {
            let Some(server) = node.location.as_ref().filter(|server| counts(&table.name, server)) else { continue };
            if may.contains(server) {
                continue;
            }
            let load = |name: &ServerName| {
                let regions = loads.get(name).copied().unwrap_or(0) + cluster.regions_on(name);
                (draining.contains(name), regions)
            };
            if let Some(to) = may.iter().min_by_key(|name| load(name)).cloned() {
                *loads.entry(to.clone()).or_default() += 1;
                found.push(Misplaced { info: node.info.clone(), to });
            }
        }
    }
    found
}

/// Moves the regions that are not where they belong after a change, and waits until they are there.
///
/// # Errors
/// A region could not be moved: the group has changed all the same, and the balancer tries again.
pub(crate) async fn settle(master: &Arc<Master>, moved: Moved, caller: &Caller) -> Result<()> {
    let plans = misplaced(master, |table, server| {
        moved.tables.contains(table) || moved.servers.contains(&Address::from(server))
    });
    let mut moving = JoinSet::new();
    let mut outcome = Ok(());
    for Misplaced { info, to } in plans {
        if moving.len() >= MOST_MOVING {
            outcome = outcome.and(joined(moving.join_next().await));
        }
        let (master, caller) = (Arc::clone(master), Caller { user: caller.user.clone(), nonce: None });
        moving.spawn(async move {
            let id = transit::submit(&master, info, Transition::Move, Some(to), &caller, || Ok(())).await?;
            master.procedures.wait_for(id).await.map(drop)
        });
    }
    while !moving.is_empty() {
        outcome = outcome.and(joined(moving.join_next().await));
    }
    outcome
}

fn joined(done: Option<std::result::Result<Result<()>, tokio::task::JoinError>>) -> Result<()> {
    match done {
        Some(Ok(outcome)) => outcome,
        Some(Err(panic)) => Err(MasterError::do_not_retry(format!("internal error: {panic}"))),
        None => Ok(()),
    }
}
