//! The group `general`: status, version, who one is.

use model::ServerName;
use proto::pb;

use super::{Arguments, Command, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// The group.
pub(super) const COMMANDS: &[Command] = &[
    command("general", "processlist", 0..=2, processlist),
    command("general", "status", 0..=2, status),
    command("general", "table_help", 0..=0, table_help),
    command("general", "version", 0..=0, version),
    command("general", "whoami", 0..=0, whoami),
];

/// What `version` prints: the version of HBase whose client this is, then its own.
pub fn version_line() -> String {
    format!("2.6.4, rbasalt-{}, a native client", env!("CARGO_PKG_VERSION"))
}

fn version(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.output.line(&version_line())?;
    Ok(Value::Nil)
}

fn whoami(shell: &mut Shell, _: &Arguments) -> Result {
    let user = shell.session.connection().options().user.clone();
    shell.session.output.line(&format!("{user} (auth:SIMPLE)"))?;
    let groups = groups_of(&user);
    if !groups.is_empty() {
        shell.session.output.line(&format!("    groups: {}", groups.join(", ")))?;
    }
    Ok(Value::Nil)
}

/// The groups of a user of this machine: the first one, and those that list the user.
fn groups_of(user: &str) -> Vec<String> {
    let fields = |path: &str| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect()
    };
    let own = fields("/etc/passwd").into_iter().find(|line| line.first().is_some_and(|name| name == user));
    let own = own.and_then(|line| line.get(3).cloned());
    let groups = fields("/etc/group").into_iter().filter(|line| {
        let is_own = own.is_some() && line.get(2) == own.as_ref();
        is_own || line.get(3).is_some_and(|members| members.split(',').any(|member| member == user))
    });
    groups.filter_map(|line| line.into_iter().next()).collect()
}

fn table_help(shell: &mut Shell, _: &Arguments) -> Result {
    crate::help::help(shell, Some(&Value::text("table_help"))).map(|()| Value::Nil)
}

fn server(name: &pb::ServerName) -> String {
    format!("{}:{} {}", name.host_name, name.port(), name.start_code())
}

fn status(shell: &mut Shell, arguments: &Arguments) -> Result {
    let format = arguments.optional_text(0).unwrap_or_else(|| "summary".to_owned());
    let status = shell.session.wait(async { shell.session.admin().cluster_status().await })?;
    match format.as_str() {
        "simple" => simple(shell, &status),
        "detailed" => detailed(shell, &status),
        "replication" => replication(shell, &status, &arguments.optional_text(1).unwrap_or_default()),
        "tasks" => tasks(shell, &status),
        _ => summary(shell, &status),
    }?;
    Ok(Value::Nil)
}

fn summary(shell: &mut Shell, status: &pb::ClusterStatus) -> Result<()> {
    let regions: usize = status.live_servers.iter().map(|live| live.server_load.region_loads.len()).sum();
    let servers = status.live_servers.len();
    let average = if servers == 0 { 0.0 } else { regions as f64 / servers as f64 };
    shell.session.output.line(&format!(
        "1 active master, {} backup masters, {servers} servers, {} dead, {average:.4} average load",
        status.backup_masters.len(),
        status.dead_servers.len(),
    ))
}

fn masters(shell: &mut Shell, status: &pb::ClusterStatus) -> Result<()> {
    let output = &mut shell.session.output;
    if let Some(master) = &status.master {
        output.line(&format!("active master:  {}", server(master)))?;
    }
    output.line(&format!("{} backup masters", status.backup_masters.len()))?;
    for master in &status.backup_masters {
        output.line(&format!("    {}", server(master)))?;
    }
    Ok(())
}

fn dead(shell: &mut Shell, status: &pb::ClusterStatus) -> Result<()> {
    shell.session.output.line(&format!("{} dead servers", status.dead_servers.len()))?;
    for name in &status.dead_servers {
        let name = ServerName::new(&name.host_name, name.port() as u16, name.start_code());
        shell.session.output.line(&format!("    {name}"))?;
    }
    Ok(())
}

fn simple(shell: &mut Shell, status: &pb::ClusterStatus) -> Result<()> {
    masters(shell, status)?;
    let output = &mut shell.session.output;
    output.line(&format!("{} live servers", status.live_servers.len()))?;
    let (mut load, mut regions) = (0, 0);
    for live in &status.live_servers {
        output.line(&format!("    {}", server(&live.server)))?;
        output.line(&format!("        {}", server_load(&live.server_load)))?;
        load += live.server_load.number_of_requests();
        regions += live.server_load.region_loads.len();
    }
    dead(shell, status)?;
    shell.session.output.line(&format!("Aggregate load: {load}, regions: {regions}"))
}

fn detailed(shell: &mut Shell, status: &pb::ClusterStatus) -> Result<()> {
    let version = status.hbase_version.as_ref().map_or("", |version| version.version.as_str());
    let output = &mut shell.session.output;
    output.line(&format!("version {version}"))?;
    output.line(&format!("{} regionsInTransition", status.regions_in_transition.len()))?;
    for region in &status.regions_in_transition {
        let name = cell::print::to_string_binary(&region.spec.value);
        output.line(&format!("    {name} state={:?}", region.region_state.state()))?;
    }
    masters(shell, status)?;
    let output = &mut shell.session.output;
    let coprocessors: Vec<&str> = status.master_coprocessors.iter().map(|one| one.name.as_str()).collect();
    output.line(&format!("master coprocessors: [{}]", coprocessors.join(", ")))?;
    output.line(&format!("{} live servers", status.live_servers.len()))?;
    for live in &status.live_servers {
        output.line(&format!("    {}", server(&live.server)))?;
        output.line(&format!("        {}", server_load(&live.server_load)))?;
        for region in &live.server_load.region_loads {
            let name = cell::print::to_string_binary(&region.region_specifier.value);
            output.line(&format!("        {}", Value::text(name).inspect()))?;
            output.line(&format!("            {}", region_load(region)))?;
        }
    }
    dead(shell, status)
}

/// A server's load. Follows: `ServerMetricsBuilder.ServerMetricsImpl#toString`.
fn server_load(load: &pb::ServerLoad) -> String {
    let sum = |of: fn(&pb::RegionLoad) -> u64| load.region_loads.iter().map(of).sum::<u64>();
    let coprocessors: Vec<&str> = load.coprocessors.iter().map(|one| one.name.as_str()).collect();
    [
        format!("requestsPerSecond={}", load.number_of_requests()),
        format!("numberOfOnlineRegions={}", load.region_loads.len()),
        format!("usedHeapMB={}", load.used_heap_mb()),
        format!("maxHeapMB={}", load.max_heap_mb()),
        format!("numberOfStores={}", sum(|r| u64::from(r.stores()))),
        format!("numberOfStorefiles={}", sum(|r| u64::from(r.storefiles()))),
        format!("storefileUncompressedSizeMB={}", sum(|r| u64::from(r.store_uncompressed_size_mb()))),
        format!("storefileSizeMB={}", sum(|r| u64::from(r.storefile_size_mb()))),
        format!("memstoreSizeMB={}", sum(|r| u64::from(r.mem_store_size_mb()))),
        format!("readRequestsCount={}", sum(pb::RegionLoad::read_requests_count)),
        format!("filteredReadRequestsCount={}", sum(pb::RegionLoad::filtered_read_requests_count)),
        format!("writeRequestsCount={}", sum(pb::RegionLoad::write_requests_count)),
        format!("totalCompactingKVs={}", sum(pb::RegionLoad::total_compacting_k_vs)),
        format!("currentCompactedKVs={}", sum(pb::RegionLoad::current_compacted_k_vs)),
        format!("coprocessors=[{}]", coprocessors.join(", ")),
    ]
    .join(", ")
}

/// A region's load. Follows: `RegionMetricsBuilder.RegionMetricsImpl#toString`.
fn region_load(region: &pb::RegionLoad) -> String {
    [
        format!("numberOfStores={}", region.stores()),
        format!("numberOfStorefiles={}", region.storefiles()),
        format!("storefileUncompressedSizeMB={}", region.store_uncompressed_size_mb()),
        format!("lastMajorCompactionTimestamp={}", region.last_major_compaction_ts()),
        format!("storefileSizeMB={}", region.storefile_size_mb()),
        format!("memstoreSizeMB={}", region.mem_store_size_mb()),
        format!("readRequestsCount={}", region.read_requests_count()),
        format!("writeRequestsCount={}", region.write_requests_count()),
        format!("totalCompactingKVs={}", region.total_compacting_k_vs()),
        format!("currentCompactedKVs={}", region.current_compacted_k_vs()),
        format!("completeSequenceId={}", region.complete_sequence_id()),
        format!("dataLocality={}", region.data_locality()),
    ]
    .join(", ")
}

fn replication(shell: &mut Shell, status: &pb::ClusterStatus, kind: &str) -> Result<()> {
    let version = status.hbase_version.as_ref().map_or("", |version| version.version.as_str());
    let output = &mut shell.session.output;
    output.line(&format!("version {version}"))?;
    output.line(&format!("{} live servers", status.live_servers.len()))?;
    for live in &status.live_servers {
        output.line(&format!("    {}:", live.server.host_name))?;
        if !kind.eq_ignore_ascii_case("sink") {
            let mut source = "       SOURCE:".to_owned();
            for load in &live.server_load.repl_load_source {
                source.push_str(&format!(
                    " PeerID={}\n           AgeOfLastShippedOp={}, SizeOfLogQueue={}, Replication Lag={}",
                    load.peer_id, load.age_of_last_shipped_op, load.size_of_log_queue, load.replication_lag
                ));
            }
            output.line(&source)?;
        }
        if let Some(sink) = live.server_load.repl_load_sink.as_ref().filter(|_| !kind.eq_ignore_ascii_case("source")) {
            output.line(&format!(
                "      SINK: TimeStampStarted={}, AgeOfLastAppliedOp={}, TimeStampsOfLastAppliedOp={}",
                sink.timestamp_started(),
                sink.age_of_last_applied_op,
                crate::pretty::moment(sink.time_stamps_of_last_applied_op as i64)
            ))?;
        }
    }
    Ok(())
}

fn tasks(shell: &mut Shell, status: &pb::ClusterStatus) -> Result<()> {
    let masters = status.master.iter().map(|master| (server(master), &status.master_tasks));
    let servers = status.live_servers.iter().map(|live| (server(&live.server), &live.server_load.tasks));
    for (name, tasks) in masters.chain(servers) {
        shell.session.output.line(&name)?;
        for task in tasks {
            let line = format!("    {:?}: {}, {}", task.state(), &task.description, task.status);
            shell.session.output.line(&line)?;
        }
    }
    Ok(())
}

/// What servers are at, as they report it to the master.
fn processlist(shell: &mut Shell, arguments: &Arguments) -> Result {
    let kinds = ["all", "general", "handler", "rpc", "operation"];
    let kind = arguments.optional_text(0).unwrap_or_else(|| "all".to_owned());
    if !kinds.contains(&kind.as_str()) {
        return Err(Flow::argument(format!("{kind} is no kind of task: one of {} is needed", kinds.join(", "))));
    }
    let host = arguments.optional_text(1);
    let status = shell.session.wait(async { shell.session.admin().cluster_status().await })?;
    let output = &mut shell.session.output;
    let mut count = 0;
    output.header(&["HOST", "STATE", "DESCRIPTION", "STATUS"])?;
    for live in &status.live_servers {
        if host.as_ref().is_some_and(|host| !live.server.host_name.starts_with(host.as_str())) {
            continue;
        }
        for task in &live.server_load.tasks {
            count += 1;
            let state = format!("{:?}", task.state());
            output.row(&[&live.server.host_name, &state, &task.description, &task.status])?;
        }
    }
    output.line(&format!("{count} tasks"))?;
    Ok(Value::Nil)
}
