//! The slow log: calls that took long or were answered with much. Each is told of in the server's log, and the newest are kept for whoever
//! asks, in a ring of bounded length and bounded entries.
//!
//! Always true: a call that is neither costs two comparisons.
//!
//! Not here: what a write that waits reads after its first step is not counted; a call answered by a task counts as processed from its beginning. Follows: `RpcServer#logResponse`, `SlowLogQueueService`, `LogHandlerUtils`.

mod describe;
mod table;

pub(crate) use table::{period as table_period, write_table};

use base::{Clock, Config};
use parking_lot::Mutex;
use proto::pb;
use proto::pb::slow_log_payload::Type;
use rpc::{AnsweredCall, CallObserver};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::settings;

/// Most characters of a request that are kept: filters may be as long as they like.
const MOST_PARAM_CHARS: usize = 16 * 1024;
/// Most characters of a request that are logged. Follows: `RpcServer#truncateTraceLog`.
const MOST_LOGGED_CHARS: usize = 150;
/// What Java calls the class of the server.
const SERVER_CLASS: &str = "HRegionServer";

/// The slow log of a server of its own, for those who measure what it costs.
pub fn slow_log(config: &Config, clock: Arc<dyn Clock>) -> Arc<dyn CallObserver> {
    SlowLog::new(config, clock)
}

/// Slow and large calls of a server.
pub(crate) struct SlowLog {
    clock: Arc<dyn Clock>,
    limits: Limits,
    /// `None` where none are kept.
    ring: Option<Mutex<VecDeque<pb::SlowLogPayload>>>,
    ring_len: usize,
    keeps_scans: bool,
    /// What is to be written to hbase:slowlog, the oldest first; `None` where there is no such table.
    for_table: Option<Mutex<VecDeque<pb::SlowLogPayload>>>,
    for_table_len: usize,
    /// Whether slow calls are kept now.
    records: AtomicBool,
}

/// From when on a call is slow or large; -1: never.
struct Limits {
    time_ms: AtomicI64,
    size_bytes: AtomicI64,
    scan_time_ms: AtomicI64,
    scan_size_bytes: AtomicI64,
}

impl Limits {
    fn set(&self, config: &Config) {
        let time_ms = i64::from(config.get(&settings::WARN_RESPONSE_TIME_MS));
        let size_bytes = i64::from(config.get(&settings::WARN_RESPONSE_BYTES));
        let of_scans = |setting: &base::Setting<i32>, other: i64| {
            if config.is_set(setting.key) { i64::from(config.get(setting)) } else { other }
        };
        self.time_ms.store(time_ms, Ordering::Relaxed);
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
        self.scan_time_ms.store(of_scans(&settings::WARN_SCAN_RESPONSE_TIME_MS, time_ms), Ordering::Relaxed);
        self.scan_size_bytes.store(of_scans(&settings::WARN_SCAN_RESPONSE_BYTES, size_bytes), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for SlowLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlowLog").field("ring_len", &self.ring_len).finish_non_exhaustive()
    }
}

impl SlowLog {
    /// As `config` says.
    pub fn new(config: &Config, clock: Arc<dyn Clock>) -> Arc<SlowLog> {
        let limits = Limits {
            time_ms: AtomicI64::new(0),
            size_bytes: AtomicI64::new(0),
            scan_time_ms: AtomicI64::new(0),
            scan_size_bytes: AtomicI64::new(0),
        };
        limits.set(config);
        Arc::new(SlowLog {
            clock,
            limits,
            ring: config.get(&settings::SLOW_LOG_BUFFER).then(Mutex::default),
            ring_len: config.get(&settings::SLOW_LOG_RING_LEN) as usize,
            keeps_scans: config.get(&settings::SLOW_LOG_SCAN_PAYLOAD),
            for_table: table::is_wanted(config).then(Mutex::default),
            for_table_len: config.get(&settings::SLOW_LOG_TABLE_QUEUE_LEN) as usize,
            records: AtomicBool::new(config.get(&settings::SLOW_LOG_BUFFER)),
        })
    }

    /// The configuration was read anew: what is slow and what is large changes, and whether such calls are kept; as in HBase a ring that was not
    /// there at the start is not made.
    pub fn update_configuration(&self, config: &Config) {
        self.limits.set(config);
        self.records.store(config.get(&settings::SLOW_LOG_BUFFER), Ordering::Relaxed);
    }

    /// The newest calls that `request` asks for, newest first.
    pub fn entries(&self, request: &pb::SlowLogResponseRequest) -> Vec<pb::SlowLogPayload> {
        use pb::slow_log_response_request::LogType;
        let wanted = if request.log_type() == LogType::LargeLog { Type::LargeLog } else { Type::SlowLog };
        let Some(ring) = &self.ring else { return Vec::new() };
        let ring = ring.lock();
        let of_type = ring.iter().rev().filter(|entry| entry.r#type() == Type::All || entry.r#type() == wanted);
        of_type.filter(|entry| is_wanted(request, entry)).take(request.limit() as usize).cloned().collect()
    }

    /// Forgets all; whether any are kept at all.
    pub fn clear(&self) -> bool {
        self.ring.as_ref().map(|ring| ring.lock().clear()).is_some()
    }

    fn keep(&self, entry: pb::SlowLogPayload) {
        if !self.records.load(Ordering::Relaxed) {
            return;
        }
        // Calls to the table itself would make more of themselves.
        if let Some(queue) = self.for_table.as_ref().filter(|_| !entry.region_name().starts_with("hbase:slowlog")) {
            push_newest(queue, self.for_table_len, entry.clone());
        }
        if let Some(ring) = &self.ring {
            push_newest(ring, self.ring_len, entry);
        }
    }

    /// So many of the oldest that are to be written to the table, which forgets them.
    fn take_for_table(&self, most: usize) -> Vec<pb::SlowLogPayload> {
        let Some(queue) = &self.for_table else { return Vec::new() };
        let mut queue = queue.lock();
        let count = queue.len().min(most);
        queue.drain(..count).collect()
    }

    fn entry(
        &self,
        call: &AnsweredCall<'_>,
        of_type: Type,
        processing_ms: i64,
        response_bytes: i64,
    ) -> pb::SlowLogPayload {
        let mut described = describe::describe(call);
        truncate(&mut described.param, MOST_PARAM_CHARS);
        pb::SlowLogPayload {
            start_time: self.clock.now_ms().0.saturating_sub(processing_ms),
            processing_time: i32::try_from(processing_ms).unwrap_or(i32::MAX),
            queue_time: 0,
            response_size: response_bytes,
            client_address: call.conn.peer.to_string(),
            server_class: SERVER_CLASS.to_owned(),
            method_name: call.method.name.to_owned(),
            call_details: describe::call_details(call.method),
            param: Some(described.param),
            user_name: call.conn.user.to_string(),
            region_name: Some(described.region),
            multi_gets: Some(described.gets),
            multi_mutations: Some(described.mutations),
            multi_service_calls: Some(described.service_calls),
            r#type: of_type as i32,
            block_bytes_scanned: Some(call.reads.block_bytes_scanned as i64),
            scan: described.scan.filter(|_| self.keeps_scans),
            connection_attribute: call.conn.attributes.clone(),
            request_attribute: call.attributes.to_vec(),
            fs_read_time: Some(as_ms(call.reads.fs_read_us)),
        }
    }
}

impl CallObserver for SlowLog {
    fn answered(&self, call: &AnsweredCall<'_>) {
        let Some(response_bytes) = call.response_bytes else { return };
        let response_bytes = i64::try_from(response_bytes).unwrap_or(i64::MAX);
        let processing_ms = as_ms(call.processed_us);
        let is_scan = call.method.method == proto::methods::Method::ClientScan;
        let (time, size) = match is_scan {
            true => (&self.limits.scan_time_ms, &self.limits.scan_size_bytes),
            false => (&self.limits.time_ms, &self.limits.size_bytes),
        };
        let exceeds = |value: i64, limit: &AtomicI64| {
            let limit = limit.load(Ordering::Relaxed);
            limit > -1 && value > limit
        };
        let of_type = match (exceeds(processing_ms, time), exceeds(response_bytes, size)) {
            (false, false) => return,
            (true, false) => Type::SlowLog,
            (false, true) => Type::LargeLog,
            (true, true) => Type::All,
        };
        let mut entry = self.entry(call, of_type, processing_ms, response_bytes);
        entry.queue_time = i32::try_from(as_ms(call.queued_us)).unwrap_or(i32::MAX);
        log(call, &entry);
        self.keep(entry);
    }
}

/// Only the newest are kept.
fn push_newest(queue: &Mutex<VecDeque<pb::SlowLogPayload>>, most: usize, entry: pb::SlowLogPayload) {
    let mut queue = queue.lock();
    while queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(entry);
}

fn as_ms(us: u64) -> i64 {
    i64::try_from(us / 1000).unwrap_or(i64::MAX)
}

/// `(responseTooSlow): {...}`, with HBase's fields.
fn log(call: &AnsweredCall<'_>, entry: &pb::SlowLogPayload) {
    let tag = match entry.r#type() {
        Type::All => "TooLarge & TooSlow",
        Type::SlowLog => "TooSlow",
        Type::LargeLog => "TooLarge",
    };
    tracing::warn!("(response{tag}): {}", json(call, entry));
}

fn json(call: &AnsweredCall<'_>, entry: &pb::SlowLogPayload) -> String {
    let mut param = describe::short_text(call);
    truncate(&mut param, MOST_LOGGED_CHARS);
    let mut line = format!(
        "{{\"starttimems\":{},\"processingtimems\":{},\"queuetimems\":{},\"responsesize\":{},\"blockbytesscanned\":{},\"fsreadtime\":{}",
        entry.start_time,
        entry.processing_time,
        entry.queue_time,
        entry.response_size,
        entry.block_bytes_scanned(),
        entry.fs_read_time()
    );
    let texts = [
        ("client", &entry.client_address),
        ("class", &entry.server_class),
        ("method", &entry.method_name),
        ("call", &entry.call_details),
        ("param", &param),
    ];
    for (name, text) in texts {
        line += &format!(",\"{name}\":{}", quoted(text));
    }
    if call.method.method == proto::methods::Method::ClientMulti {
        line += &format!(
            ",\"multi.gets\":{},\"multi.mutations\":{},\"multi.service_calls\":{}",
            entry.multi_gets(),
            entry.multi_mutations(),
            entry.multi_service_calls()
        );
    }
    line + "}"
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn truncate(text: &mut String, most_chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(most_chars) {
        text.truncate(at);
        text.push_str(" <TRUNCATED>");
    }
}

/// Whether an entry passes the filters of a request. Follows: `LogHandlerUtils#filterLogs`.
fn is_wanted(request: &pb::SlowLogResponseRequest, entry: &pb::SlowLogPayload) -> bool {
    use pb::slow_log_response_request::FilterByOperator;
    let given = |filter: &Option<String>| filter.clone().filter(|filter| !filter.is_empty());
    let address = entry.client_address.rsplit_once(':').map_or(entry.client_address.as_str(), |(host, _)| host);
    let matches = [
        given(&request.region_name).map(|region| entry.region_name() == region),
        given(&request.table_name).map(|table| entry.region_name().starts_with(&table)),
        given(&request.client_address).map(|client| client == entry.client_address || client == address),
        given(&request.user_name).map(|user| entry.user_name == user),
    ];
    let mut matches = matches.into_iter().flatten().peekable();
    if matches.peek().is_none() {
        return true;
    }
    match request.filter_by_operator() {
        FilterByOperator::And => matches.all(|is_match| is_match),
        FilterByOperator::Or => matches.any(|is_match| is_match),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;
    use bytes::Bytes;
    use proto::Message;
    use proto::methods::Method;
    use proto::pb::slow_log_response_request::{FilterByOperator, LogType};
    use rpc::{CallReads, ConnInfo};

    /// A call that may be told of.
    struct Asked {
        method: &'static proto::methods::MethodInfo,
        param: Bytes,
        conn: ConnInfo,
    }

    impl Asked {
        fn answered(&self, (queued_ms, processed_ms): (u64, u64), response_bytes: Option<u64>) -> AnsweredCall<'_> {
            AnsweredCall {
                method: self.method,
                param: &self.param,
                conn: &self.conn,
                attributes: &[],
                queued_us: queued_ms * 1000,
                processed_us: processed_ms * 1000,
                response_bytes,
                reads: CallReads { block_bytes_scanned: 65_536, fs_read_us: 7_900 },
            }
        }
    }

    /// The call of `asked` took so long, and was answered with so many bytes.
    fn tell(log: &SlowLog, asked: &Asked, processed_ms: u64, response_bytes: u64) {
        log.answered(&asked.answered((0, processed_ms), Some(response_bytes)));
    }

    fn call(user: &str) -> Asked {
        let get = pb::GetRequest {
            region: pb::RegionSpecifier {
                r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
                value: Bytes::from("t,,1.abc."),
            },
            get: pb::Get { row: Bytes::from_static(b"row\x01"), ..pb::Get::default() },
        };
        let info = Method::ClientGet.info();
        let conn = ConnInfo {
            id: 1,
            peer: ([127, 0, 0, 1], 7).into(),
            user: Arc::from(user),
            service: info.service,
            codec: None,
            compressor: None,
            version: None,
            attributes: Vec::new(),
            load: std::sync::OnceLock::new(),
        };
        Asked { method: info, param: Bytes::from(get.encode_to_vec()), conn }
    }

    fn slow_log(settings: &[(&str, &str)]) -> (Arc<SlowLog>, Arc<ManualClock>) {
        let mut config = Config::default();
        settings.iter().for_each(|(key, value)| config.set(*key, *value));
        let clock = Arc::new(ManualClock::new(1_000_000));
        (SlowLog::new(&config, clock.clone()), clock)
    }

    fn asked(log_type: LogType) -> pb::SlowLogResponseRequest {
        pb::SlowLogResponseRequest { log_type: Some(log_type as i32), ..pb::SlowLogResponseRequest::default() }
    }

    const KEPT: (&str, &str) = ("hbase.regionserver.slowlog.buffer.enabled", "true");

    #[test]
    fn slow_and_large_calls_are_kept_and_found_newest_first() {
        let limits = [KEPT, ("hbase.ipc.warn.response.time", "100"), ("hbase.ipc.warn.response.size", "1000")];
        let (log, clock) = slow_log(&limits);
        clock.advance_ms(101);
        tell(&log, &call("quick"), 99, 1000);
        assert_eq!(log.entries(&asked(LogType::SlowLog)), [], "neither slow nor large");
        tell(&log, &call("slow"), 101, 10);
        log.answered(&call("large").answered((101, 0), Some(1001)));
        tell(&log, &call("both"), 101, 1001);
        let users = |log_type| -> Vec<String> {
            log.entries(&asked(log_type)).into_iter().map(|entry| entry.user_name).collect()
        };
        assert_eq!(users(LogType::SlowLog), ["both", "slow"]);
        assert_eq!(users(LogType::LargeLog), ["both", "large"]);
        let slow = &log.entries(&asked(LogType::SlowLog))[1];
        assert_eq!((slow.processing_time, slow.start_time, slow.response_size), (101, 1_000_000, 10));
        assert_eq!((slow.block_bytes_scanned(), slow.fs_read_time()), (65_536, 7));
        assert_eq!(log.entries(&asked(LogType::LargeLog))[1].queue_time, 101, "it waited before it was begun");
        assert_eq!(slow.region_name(), "t,,1.abc.");
        assert_eq!(slow.param(), "region= t,,1.abc., row= row\\x01");
        assert_eq!(slow.call_details, "Get(org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos$GetRequest)");
        assert_eq!((slow.client_address.as_str(), slow.server_class.as_str()), ("127.0.0.1:7", "HRegionServer"));
        assert!(log.clear());
        assert_eq!(users(LogType::SlowLog), [""; 0]);
    }

    #[test]
    fn the_ring_forgets_the_oldest_and_without_it_nothing_is_kept() {
        let (log, clock) = slow_log(&[
            KEPT,
            ("hbase.ipc.warn.response.time", "0"),
            ("hbase.regionserver.slowlog.ringbuffer.size", "2"),
        ]);
        clock.advance_ms(5);
        ["a", "b", "c"].iter().for_each(|user| tell(&log, &call(user), 5, 1));
        let users: Vec<_> = log.entries(&asked(LogType::SlowLog)).into_iter().map(|entry| entry.user_name).collect();
        assert_eq!(users, ["c", "b"]);
        log.answered(&call("failed").answered((0, 5), None));
        assert_eq!(log.entries(&asked(LogType::SlowLog)).len(), 2, "what failed is not told of");
        let (log, clock) = slow_log(&[("hbase.ipc.warn.response.time", "0")]);
        clock.advance_ms(5);
        tell(&log, &call("a"), 60_000, 1);
        assert!(log.entries(&asked(LogType::SlowLog)).is_empty() && !log.clear());
    }

    #[test]
    fn calls_wait_for_the_table_up_to_the_newest_and_not_those_to_the_table_itself() {
        let slow = ("hbase.ipc.warn.response.time", "0");
        let (table, few) =
            ("hbase.regionserver.slowlog.systable.enabled", "hbase.regionserver.slowlog.systable.queue.size");
        let (log, clock) = slow_log(&[KEPT, slow, (table, "true"), (few, "2")]);
        clock.advance_ms(5);
        ["a", "b", "c"].iter().for_each(|user| tell(&log, &call(user), 5, 1));
        let own = pb::SlowLogPayload { region_name: Some("hbase:slowlog,,1.abc.".into()), ..Default::default() };
        log.keep(own);
        assert_eq!(log.entries(&asked(LogType::SlowLog)).len(), 4, "the ring has all");
        let taken = || -> Vec<String> { log.take_for_table(1).into_iter().map(|entry| entry.user_name).collect() };
        assert_eq!((taken(), taken(), taken()), (vec!["b".to_owned()], vec!["c".to_owned()], vec![]));
        let (log, clock) = slow_log(&[slow, (table, "true")]);
        clock.advance_ms(5);
        tell(&log, &call("a"), 60_000, 1);
        assert!(log.take_for_table(1).is_empty(), "as in HBase, the table has what the ring has");
    }

    #[test]
    fn limits_follow_the_configuration_and_scans_may_have_their_own() {
        let (log, clock) = slow_log(&[KEPT, ("hbase.ipc.warn.response.time", "-1")]);
        clock.advance_ms(60_000);
        tell(&log, &call("a"), 60_000, 1);
        assert_eq!(log.entries(&asked(LogType::SlowLog)), [], "-1 is never");
        let mut config = Config::default();
        config.set("hbase.ipc.warn.response.time.scan", "5");
        config.set(KEPT.0, KEPT.1);
        log.update_configuration(&config);
        tell(&log, &call("slow"), 60_000, 1);
        let mut scan = call("scan");
        (scan.method, scan.param) = (Method::ClientScan.info(), Bytes::new());
        tell(&log, &scan, 10, 1);
        tell(&log, &call("quick"), 10, 1);
        let users: Vec<_> = log.entries(&asked(LogType::SlowLog)).into_iter().map(|entry| entry.user_name).collect();
        assert_eq!(users, ["scan", "slow"]);
    }

    #[test]
    fn what_is_large_follows_the_configuration_and_scans_may_have_their_own() {
        let (log, _) = slow_log(&[KEPT, ("hbase.ipc.warn.response.size", "-1")]);
        let mut scan = call("scan");
        (scan.method, scan.param) = (Method::ClientScan.info(), Bytes::new());
        let mut config = Config::default();
        config.set(KEPT.0, KEPT.1);
        for (key, value) in [("hbase.ipc.warn.response.size", "100"), ("hbase.ipc.warn.response.size.scan", "1000")] {
            config.set(key, value);
            log.update_configuration(&config);
            tell(&log, &call("get"), 0, 500);
            tell(&log, &scan, 0, 500);
        }
        let users: Vec<_> = log.entries(&asked(LogType::LargeLog)).into_iter().map(|entry| entry.user_name).collect();
        assert_eq!(users, ["get", "scan", "get"]);
    }

    #[test]
    fn calls_are_kept_while_the_configuration_says_so() {
        let (log, clock) = slow_log(&[KEPT, ("hbase.ipc.warn.response.time", "5")]);
        clock.advance_ms(60_000);
        for (keeps, user) in [("true", "first"), ("false", "second"), ("true", "third")] {
            let mut config = Config::default();
            config.set("hbase.ipc.warn.response.time", "5");
            config.set(settings::SLOW_LOG_BUFFER.key, keeps);
            log.update_configuration(&config);
            tell(&log, &call(user), 60_000, 1);
        }
        let users: Vec<_> = log.entries(&asked(LogType::SlowLog)).into_iter().map(|entry| entry.user_name).collect();
        assert_eq!(users, ["third", "first"]);
    }

    #[test]
    fn filters_are_joined_as_the_client_says() {
        let entry = pb::SlowLogPayload {
            region_name: Some("t,,1.abc.".into()),
            client_address: "10.0.0.1:99".into(),
            user_name: "bob".into(),
            ..pb::SlowLogPayload::default()
        };
        let request = |operator: Option<FilterByOperator>, table: &str, user: &str| pb::SlowLogResponseRequest {
            table_name: Some(table.into()),
            user_name: Some(user.into()),
            filter_by_operator: operator.map(|operator| operator as i32),
            ..pb::SlowLogResponseRequest::default()
        };
        assert!(is_wanted(&request(None, "", ""), &entry));
        assert!(is_wanted(&request(None, "t", "eve"), &entry), "one of them is enough");
        assert!(!is_wanted(&request(Some(FilterByOperator::And), "t", "eve"), &entry));
        assert!(is_wanted(&request(Some(FilterByOperator::And), "t", "bob"), &entry));
        let of_client = |client: &str| pb::SlowLogResponseRequest {
            client_address: Some(client.into()),
            ..pb::SlowLogResponseRequest::default()
        };
        assert!(is_wanted(&of_client("10.0.0.1"), &entry) && is_wanted(&of_client("10.0.0.1:99"), &entry));
        assert!(!is_wanted(&of_client("10.0.0.2"), &entry));
    }

    #[test]
    fn the_log_line_is_json_whatever_the_request_holds() {
        let (log, _) = slow_log(&[]);
        let mut odd = call("bob");
        odd.param = Bytes::from_static(b"\xFF\xFF");
        let odd = odd.answered((0, 7), Some(9));
        let line = json(&odd, &log.entry(&odd, Type::SlowLog, 7, 9));
        assert!(line.starts_with("{\"starttimems\":") && line.ends_with("}"), "{line}");
        assert!(line.contains("\"processingtimems\":7") && line.contains("\"responsesize\":9"), "{line}");
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
        let mut long = "x".repeat(MOST_LOGGED_CHARS + 1);
        truncate(&mut long, MOST_LOGGED_CHARS);
        assert_eq!(long.len(), MOST_LOGGED_CHARS + " <TRUNCATED>".len());
    }
}
