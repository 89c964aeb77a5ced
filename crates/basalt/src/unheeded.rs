//! HBase's keys that have no effect here, and why: whoever sets one is told so at the start.

use base::{Config, SettingRow};

/// Why each key of HBase's that no part of Basalt reads has no effect.
pub const UNHEEDED: &[(&str, &[&str])] = &[
    (
        "HBase 2.6 has it in hbase-default.xml and reads it nowhere",
        &["hbase.column.max.version", "hbase.coordinated.state.manager.class", "hbase.table.lock.enable"],
    ),
    ("there is nothing that a server keeps beside its data in hbase.rootdir", &["hbase.local.dir"]),
    (
        "the embedded ZooKeeper endpoint is one server, without peers and without a name to look up",
        &[
            "hbase.zookeeper.property.initLimit",
            "hbase.zookeeper.property.syncLimit",
            "hbase.zookeeper.peerport",
            "hbase.zookeeper.leaderport",
            "hbase.zookeeper.dns.interface",
            "hbase.zookeeper.dns.nameserver",
        ],
    ),
    (
        "where the blocks of a file are is known as of its opening, as with HBase's default",
        &["hbase.locality.inputstream.derive.enabled", "hbase.locality.inputstream.derive.cache.period"],
    ),
    (
        "it is for clients written in Java, in their own configuration",
        &[
            "hbase.bulkload.retries.number",
            "hbase.client.max.perregion.tasks",
            "hbase.client.max.perserver.tasks",
            "hbase.client.max.total.tasks",
            "hbase.client.perserver.requests.threshold",
            "hbase.client.localityCheck.threadPoolSize",
            "hbase.ipc.client.fallback-to-simple-auth-allowed",
            "hbase.ipc.client.tcpnodelay",
            "hbase.unsafe.client.kerberos.hostname.disable.reversedns",
            "hbase.status.listener.class",
        ],
    ),
    (
        "files and directories are made with the process's own umask",
        &["hbase.data.umask", "hbase.data.umask.enable", "hbase.rootdir.perms", "hbase.wal.dir.perms"],
    ),
    (
        "nothing is loaded into the process: there is no Java in it",
        &[
            "hbase.dynamic.jars.dir",
            "hbase.coprocessor.abortonerror",
            "hbase.coprocessor.enabled",
            "hbase.coprocessor.user.enabled",
            "hbase.defaults.for.version",
            "hbase.defaults.for.version.skip",
            "hbase.http.filter.initializers",
            "hbase.http.staticuser.user",
            "hbase.master.hfilecleaner.plugins",
            "hbase.master.logcleaner.plugins",
            "hbase.master.normalizer.class",
            "hbase.namedqueue.provider.classes",
            "hbase.procedure.master.classes",
            "hbase.procedure.regionserver.classes",
            "hbase.regionserver.hlog.reader.impl",
            "hbase.regionserver.hlog.writer.impl",
            "hbase.status.publisher.class",
        ],
    ),
    (
        "memstores are always arenas, whose chunks have their own sizes, in the one memory budget basalt.memory.size",
        &[
            "hbase.hregion.memstore.mslab.chunksize",
            "hbase.hregion.memstore.mslab.enabled",
            "hbase.hregion.memstore.mslab.max.allocation",
            "hbase.regionserver.free.heap.min.memory.size",
            "hbase.regionserver.offheap.global.memstore.size",
        ],
    ),
    ("memstores are not compacted in memory", &["hbase.systemtables.compacting.memstore.type"]),
    ("compactions work on cells one by one", &["hbase.hstore.compaction.kv.max"]),
    (
        "every look at a region looks at its major compaction, too: hbase.server.thread.wakefrequency says how often",
        &["hbase.server.compactchecker.interval.multiplier"],
    ),
    (
        "a region is flushed while it serves and again when it closes, however little there is",
        &["hbase.hregion.preclose.flush.size"],
    ),
    (
        "calls wait in one queue for each lane of threads, with turns between long and short ones",
        &[
            "hbase.ipc.server.callqueue.handler.factor",
            "hbase.ipc.server.callqueue.read.ratio",
            "hbase.ipc.server.callqueue.scan.ratio",
        ],
    ),
    (
        "the lease of a log on HDFS is recovered until the NameNode says that the file is closed",
        &["hbase.lease.recovery.dfs.timeout", "hbase.lease.recovery.timeout"],
    ),
    (
        "blocks are read from datanodes over the network",
        &["dfs.client.read.shortcircuit", "dfs.domain.socket.path", "hbase.dfs.client.read.shortcircuit.buffer.size"],
    ),
    (
        "a split's work on files has no limit of its own: it goes on at the next start",
        &["hbase.master.fileSplitTimeout"],
    ),
    (
        "a server's name is what basalt.bind and hbase.unsafe.regionserver.hostname say",
        &[
            "hbase.regionserver.dns.interface",
            "hbase.regionserver.dns.nameserver",
            "hbase.unsafe.regionserver.hostname.disable.master.reversedns",
        ],
    ),
    (
        "a call that panics is answered with an exception, and its thread goes on",
        &["hbase.regionserver.handler.abort.on.error.percent"],
    ),
    ("a port that is taken ends the start", &["hbase.regionserver.info.port.auto"]),
    (
        "a log file that cannot be closed is never written again, and the next one is",
        &["hbase.regionserver.logroll.errors.tolerated"],
    ),
    ("snapshots are made below hbase.rootdir", &["hbase.snapshot.working.dir"]),
    (
        "there is no authentication and no authorization: whoever reaches a port may do everything",
        &[
            "hadoop.policy.file",
            "hbase.auth.key.update.interval",
            "hbase.auth.token.max.lifetime",
            "hbase.ipc.server.fallback-to-simple-auth-allowed",
            "hbase.master.kerberos.principal",
            "hbase.master.keytab.file",
            "hbase.regionserver.kerberos.principal",
            "hbase.regionserver.keytab.file",
            "hbase.rest.support.proxyuser",
            "hbase.security.authentication",
            "hbase.security.exec.permission.checks",
            "hbase.security.visibility.mutations.checkauths",
            "zookeeper.znode.acl.parent",
        ],
    ),
    ("the second level of the block cache has blocks of any size", &["hbase.bucketcache.bucket.sizes"]),
    (
        "logs are not shipped to other clusters yet",
        &["hbase.replication.rpc.codec", "hbase.replication.source.maxthreads"],
    ),
    (
        "gateways serve connections without threads of their own",
        &[
            "hbase.rest.threads.max",
            "hbase.rest.threads.min",
            "hbase.thrift.maxQueuedRequests",
            "hbase.thrift.maxWorkerThreads",
            "hbase.thrift.minWorkerThreads",
            "hbase.thrift.selector.num",
            "hbase.thrift.threadKeepAliveTimeSec",
        ],
    ),
    ("the pages always show the start and end keys of regions", &["hbase.display.keys"]),
    ("two pages are made at a time, however many ask", &["hbase.http.max.threads"]),
    ("a master that waits has no pages", &["hbase.master.infoserver.redirect"]),
    ("the size of old logs is counted when it is asked for", &["hbase.master.oldwals.dir.updater.period"]),
    (
        "no region is reopened for the number of readers of its files",
        &["hbase.master.regions.recovery.check.interval", "hbase.regions.recovery.store.file.ref.count"],
    ),
    ("it is for HBase's own tests", &["hbase.master.wait.on.service.seconds"]),
    (
        "MOB files are opened and closed as store files are, and compacted when a family is",
        &[
            "hbase.mob.cache.evict.period",
            "hbase.mob.cache.evict.remain.ratio",
            "hbase.mob.compaction.chore.period",
            "hbase.mob.file.cache.size",
            "hbase.mob.major.compaction.region.batch.size",
        ],
    ),
    ("hbase.version is written once", &["hbase.server.versionfile.writeattempts"]),
    (
        "nothing is multicast: clients learn of dead servers when they ask",
        &["hbase.status.multicast.address.ip", "hbase.status.multicast.address.port", "hbase.status.published"],
    ),
    (
        "a scan looks into its files one after the other",
        &["hbase.storescanner.parallel.seek.enable", "hbase.storescanner.parallel.seek.threads"],
    ),
    ("a session with ZooKeeper is tried again with pauses of its own", &["zookeeper.recovery.retry.maxsleeptime"]),
];

/// Why `key` has no effect, if it is one of these.
pub fn reason(key: &str) -> Option<&'static str> {
    UNHEEDED.iter().find(|(_, keys)| keys.contains(&key)).map(|(reason, _)| *reason)
}

/// Keys that were given and that nothing reads: those with a reason, and those that nobody knows. Clients' keys may stand beside the
/// server's.
///
/// # Errors
/// A value that is not legal.
pub fn of(config: &Config, rows: &[&dyn SettingRow]) -> Result<Unread, base::SettingError> {
    let mut unread = Unread::default();
    for key in config.check(rows)? {
        match reason(key) {
            _ if client::settings::ALL.iter().any(|row| row.key() == key) => {}
            Some(reason) => unread.unheeded.push((key.to_owned(), reason)),
            None => unread.unknown.push(key.to_owned()),
        }
    }
    Ok(unread)
}

/// What [`of`] finds.
#[derive(Debug, Default)]
pub struct Unread {
    /// Keys of HBase's, each with why it has no effect.
    pub unheeded: Vec<(String, &'static str)>,
    /// Keys that neither HBase nor Basalt has.
    pub unknown: Vec<String>,
}

impl Unread {
    /// Says all of them in the log.
    pub fn warn(&self) {
        for (key, reason) in &self.unheeded {
            tracing::warn!("{key} has no effect: {reason}");
        }
        if !self.unknown.is_empty() {
            tracing::warn!("nothing reads {}; check the spelling", self.unknown.join(", "));
        }
    }
}
