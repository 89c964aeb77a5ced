//! Quotas of requests and of space: set, listed, and how tables stand to them. Part of the group `quotas`. Follows: `Hbase::QuotasAdmin`,
//! `QuotaSettingsFactory`, `ThrottleSettings`, `SpaceLimitSettings`.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::{QuotaOwner, QuotaSettings};
use model::{Scan, TableName};
use proto::{Message, pb};

use super::arguments::{Options, table_name, truth};
use super::listing::whole_match;
use super::regions::server;
use super::{Arguments, Command, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("quotas", "list_quota_snapshots", 0..=1, list_quota_snapshots),
    command("quotas", "list_quota_table_sizes", 0..=1, list_quota_table_sizes),
    command("quotas", "list_quotas", 0..=1, list_quotas),
    command("quotas", "list_snapshot_sizes", 0..=1, list_snapshot_sizes),
    command("quotas", "set_quota", 1..=1, set_quota),
];

fn set_quota(shell: &mut Shell, arguments: &Arguments) -> Result {
    let request = request(&mut arguments.hash(0)?)?;
    shell.session.wait(async { shell.session.admin().set_quota(&request).await }).map(|()| Value::Nil)
}

/// What the options of `set_quota` ask for.
fn request(options: &mut Options) -> Result<pb::SetQuotaRequest> {
    let Some(kind) = options.take_text("TYPE") else {
        let Some(bypass) = options.take("GLOBAL_BYPASS") else { return Err(Flow::runtime("Expected TYPE argument")) };
        let user = options.take_text("USER").ok_or_else(|| Flow::runtime("Expected USER"))?;
        nothing_left(options)?;
        return Ok(pb::SetQuotaRequest {
            user_name: Some(user),
            bypass_globals: Some(truth(&bypass)),
            ..pb::SetQuotaRequest::default()
        });
    };
    match kind.as_str() {
        "THROTTLE" => throttle(options),
        "SPACE" => space(options),
        other => Err(Flow::runtime(format!("Invalid TYPE argument. got {other}"))),
    }
}

fn nothing_left(options: &Options) -> Result<()> {
    match options.rest() {
        [] => Ok(()),
        rest => {
            let rest: Vec<String> = rest.iter().map(|(k, v)| format!("{}=>{}", k.inspect(), v.inspect())).collect();
            Err(Flow::argument(format!("Unexpected arguments: {{{}}}", rest.join(", "))))
        }
    }
}

/// Puts into a request whom a throttle is for.
fn take_owner(options: &mut Options, request: &mut pb::SetQuotaRequest) -> Result<()> {
    request.user_name = options.take_text("USER");
    if let Some(table) = options.take_text("TABLE") {
        request.table_name = Some(convert::to_proto::table_name(&table_name(&table)?));
    } else if let Some(namespace) = options.take_text("NAMESPACE") {
        request.namespace = Some(namespace);
    } else if request.user_name.is_none() {
        // One server cannot have a quota of its own: every name stands for all.
        options
            .take("REGIONSERVER")
            .ok_or_else(|| Flow::runtime("One of USER, TABLE, NAMESPACE or REGIONSERVER must be specified"))?;
        request.region_server = Some("all".to_owned());
    }
    Ok(())
}

fn throttle(options: &mut Options) -> Result<pb::SetQuotaRequest> {
    let mut request = pb::SetQuotaRequest::default();
    let limit = options.take_text("LIMIT");
    let kind = options.take_text("THROTTLE_TYPE");
    let Some(limit) = limit.filter(|limit| limit != "NONE") else {
        take_owner(options, &mut request)?;
        match kind {
            Some(kind) => {
                let r#type = Some(throttle_type(&kind)?.into());
                request.throttle = Some(pb::ThrottleRequest { r#type, timed_quota: None });
            }
            None => {
                nothing_left(options)?;
                request.throttle = Some(pb::ThrottleRequest::default());
            }
        }
        return Ok(request);
    };
    let (kind, mut quota) = parse_limit(&limit, kind.as_deref().unwrap_or("REQUEST"))?;
    let scope = options.take_text("SCOPE").unwrap_or_else(|| "MACHINE".to_owned()).to_uppercase();
    quota.scope = Some(match scope.as_str() {
        "MACHINE" => pb::QuotaScope::Machine.into(),
        "CLUSTER" => pb::QuotaScope::Cluster.into(),
        _ => return Err(Flow::argument("Invalid throttle scope, must be either CLUSTER or MACHINE")),
    });
    take_owner(options, &mut request)?;
    if request.region_server.is_some() && scope == "CLUSTER" {
        return Err(Flow::argument("Invalid region server throttle scope, must be MACHINE"));
    }
    nothing_left(options)?;
    request.throttle = Some(pb::ThrottleRequest { r#type: Some(kind.into()), timed_quota: Some(quota) });
    Ok(request)
}

fn throttle_type(name: &str) -> Result<pb::ThrottleType> {
    pb::ThrottleType::from_str_name(name).ok_or_else(|| {
        let why = format!("No enum constant org.apache.hadoop.hbase.quotas.ThrottleType.{name}");
        Flow::raise("Java::JavaLang::IllegalArgumentException", why)
    })
}

/// `10req/sec`, `5K/min`, `100CU/hour`, with a type of READ, WRITE or REQUEST.
fn parse_limit(text: &str, kind: &str) -> Result<(pb::ThrottleType, pb::TimedQuota)> {
    let wrong = || Flow::argument("Invalid throttle limit syntax");
    let text = text.to_lowercase();
    let (amount, per) = text.split_once('/').ok_or_else(wrong)?;
    let digits = amount.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = amount[..digits].parse().map_err(|_| wrong())?;
    let (of, number) = match &amount[digits..] {
        "req" => ("NUMBER", Some(number)),
        "cu" => ("CAPACITY_UNIT", Some(number)),
        unit => ("SIZE", scaled(number, unit).ok_or_else(wrong)?),
    };
    let number = number.filter(|number| *number > 0);
    let number = number.ok_or_else(|| Flow::argument("Invalid throttle limit, must be greater than 0"))?;
    let unit = match per {
        "sec" => pb::TimeUnit::Seconds,
        "min" => pb::TimeUnit::Minutes,
        "hour" => pb::TimeUnit::Hours,
        "day" => pb::TimeUnit::Days,
        _ => return Err(wrong()),
    };
    let quota = pb::TimedQuota { time_unit: unit.into(), soft_limit: Some(number), ..pb::TimedQuota::default() };
    Ok((throttle_type(&format!("{kind}_{of}"))?, quota))
}

/// A number of so many units; none where there is no such unit, none within where it is out of bounds.
fn scaled(number: u64, unit: &str) -> Option<Option<u64>> {
    let shift = match unit {
        "" | "b" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    Some(number.checked_mul(1 << shift).filter(|bytes| *bytes <= i64::MAX as u64))
}

fn space(options: &mut Options) -> Result<pb::SetQuotaRequest> {
    let limit = options.take("LIMIT");
    let policy = options.take_text("POLICY");
    let removed = limit.as_ref().is_some_and(|limit| limit.to_text() == "NONE");
    let quota = if removed {
        pb::SpaceQuota { remove: Some(true), ..pb::SpaceQuota::default() }
    } else {
        let limit = limit.ok_or_else(|| Flow::argument("Expected a LIMIT to be provided"))?;
        let policy = policy.ok_or_else(|| Flow::argument("Expected a POLICY to be provided"))?;
        let text = limit.to_text().to_lowercase();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number = text[..digits].parse().ok().and_then(|number| scaled(number, &text[digits..]));
        let number = number.ok_or_else(|| Flow::argument("Invalid size limit syntax"))?.filter(|number| *number > 0);
        let policy = pb::SpaceViolationPolicy::from_str_name(&policy).ok_or_else(|| {
            let why = format!("No enum constant org.apache.hadoop.hbase.quotas.SpaceViolationPolicy.{policy}");
            Flow::raise("Java::JavaLang::IllegalArgumentException", why)
        })?;
        pb::SpaceQuota {
            soft_limit: Some(number.ok_or_else(|| Flow::argument("Invalid space limit, must be greater than 0"))?),
            violation_policy: Some(policy.into()),
            remove: None,
        }
    };
    let mut request = pb::SetQuotaRequest {
        space_limit: Some(pb::SpaceLimitRequest { quota: Some(quota) }),
        ..pb::SetQuotaRequest::default()
    };
    match (options.take_text("TABLE"), options.take_text("NAMESPACE")) {
        (Some(table), None) => request.table_name = Some(convert::to_proto::table_name(&table_name(&table)?)),
        (None, Some(namespace)) => request.namespace = Some(namespace),
        (Some(_), Some(_)) => return Err(Flow::argument("Only one of TABLE or NAMESPACE can be specified.")),
        (None, None) => return Err(Flow::argument("One of TABLE or NAMESPACE must be specified.")),
    }
    Ok(request)
}

/// Whom a quota is for, as the shell shows it.
fn owner_text(owner: &QuotaOwner) -> String {
    let parts: Vec<(&str, &str)> = match owner {
        QuotaOwner::User { user, table, namespace } => [("USER", Some(user)), ("TABLE", table.as_ref())]
            .into_iter()
            .chain([("NAMESPACE", namespace.as_ref())])
            .filter_map(|(name, value)| Some((name, value?.as_str())))
            .collect(),
        QuotaOwner::Table(table) => vec![("TABLE", table)],
        QuotaOwner::Namespace(namespace) => vec![("NAMESPACE", namespace)],
        QuotaOwner::RegionServer(server) => vec![("REGIONSERVER", server)],
    };
    parts.iter().map(|(name, value)| format!("{name} => {value}")).collect::<Vec<String>>().join(", ")
}

/// The quotas of an owner, one text each, in the order in which HBase's client gives them.
fn quota_texts(settings: &QuotaSettings) -> Vec<String> {
    let throttle = settings.quotas.throttle.unwrap_or_default();
    let throttles = [
        ("REQUEST_NUMBER", &throttle.req_num),
        ("REQUEST_SIZE", &throttle.req_size),
        ("WRITE_NUMBER", &throttle.write_num),
        ("WRITE_SIZE", &throttle.write_size),
        ("READ_NUMBER", &throttle.read_num),
        ("READ_SIZE", &throttle.read_size),
        ("REQUEST_CAPACITY_UNIT", &throttle.req_capacity_unit),
        ("READ_CAPACITY_UNIT", &throttle.read_capacity_unit),
        ("WRITE_CAPACITY_UNIT", &throttle.write_capacity_unit),
        ("ATOMIC_READ_SIZE", &throttle.atomic_read_size),
        ("ATOMIC_WRITE_SIZE", &throttle.atomic_write_size),
        ("ATOMIC_REQUEST_NUMBER", &throttle.atomic_req_num),
        ("REQUEST_HANDLER_USAGE_MS", &throttle.req_handler_usage_ms),
    ];
    let mut texts: Vec<String> = throttles
        .into_iter()
        .filter_map(|(kind, quota)| quota.as_ref().map(|quota| throttle_text(kind, quota)))
        .collect();
    if settings.quotas.bypass_globals() {
        texts.push("GLOBAL_BYPASS => true".to_owned());
    }
    if let Some(space) = &settings.quotas.space {
        let of = match &settings.owner {
            QuotaOwner::Table(table) => format!("TABLE => {table}"),
            QuotaOwner::Namespace(namespace) => format!("NAMESPACE => {namespace}"),
            other => owner_text(other),
        };
        texts.push(match space.remove() {
            true => format!("TYPE => SPACE, {of}, REMOVE => true"),
            false => format!(
                "TYPE => SPACE, {of}, LIMIT => {}, VIOLATION_POLICY => {}",
                size_text(space.soft_limit()),
                space.violation_policy().as_str_name()
            ),
        });
    }
    texts
}

fn throttle_text(kind: &str, quota: &pb::TimedQuota) -> String {
    let limit = match quota.soft_limit {
        Some(limit) if kind.ends_with("_NUMBER") => format!("{limit}req"),
        Some(limit) if kind.ends_with("_CAPACITY_UNIT") => format!("{limit}CU"),
        Some(limit) if kind.ends_with("_MS") => format!("{limit}ms"),
        Some(limit) => size_text(limit),
        None => quota.share.map_or_else(String::new, |share| format!("{share:.2}%")),
    };
    let per = match quota.time_unit() {
        pb::TimeUnit::Nanoseconds => "nsec",
        pb::TimeUnit::Microseconds => "usec",
        pb::TimeUnit::Milliseconds => "msec",
        pb::TimeUnit::Seconds => "sec",
        pb::TimeUnit::Minutes => "min",
        pb::TimeUnit::Hours => "hour",
        pb::TimeUnit::Days => "day",
    };
    let scope = quota.scope.map_or_else(String::new, |_| format!(", SCOPE => {}", quota.scope().as_str_name()));
    format!("TYPE => THROTTLE, THROTTLE_TYPE => {kind}, LIMIT => {limit}/{per}{scope}")
}

fn size_text(bytes: u64) -> String {
    let units = [(50, 'P'), (40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')];
    let unit = units.iter().find(|(shift, _)| bytes >= 1 << shift).copied().unwrap_or((0, 'B'));
    format!("{:.2}{}", bytes as f64 / (1_u64 << unit.0) as f64, unit.1)
}

/// What `list_quotas` is to show.
struct Wanted {
    user: Option<regex::Regex>,
    table: Option<regex::Regex>,
    namespace: Option<regex::Regex>,
}

impl Wanted {
    fn take(options: &mut Options) -> Result<Wanted> {
        let mut one = |name: &str| options.take(name).map(|value| whole_match(Some(&value))).transpose();
        Ok(Wanted { user: one("USER")?, table: one("TABLE")?, namespace: one("NAMESPACE")? })
    }

    /// As HBase's filter decides: with a user only quotas of users, within a table or a namespace where one is named; without one, quotas of
    /// tables, or else of namespaces.
    fn has(&self, owner: &QuotaOwner) -> bool {
        let within = |wanted: &Option<regex::Regex>, name: Option<&String>| {
            wanted.as_ref().is_some_and(|wanted| name.is_some_and(|name| wanted.is_match(name)))
        };
        match (&self.user, owner) {
            (Some(wanted), QuotaOwner::User { user, table, namespace }) => {
                let all = self.table.is_none() && self.namespace.is_none();
                let of = within(&self.table, table.as_ref()) || within(&self.namespace, namespace.as_ref());
                wanted.is_match(user) && (all || of)
            }
            (Some(_), _) => false,
            (None, owner) => match (&self.table, &self.namespace, owner) {
                (Some(wanted), _, QuotaOwner::Table(table)) => wanted.is_match(table),
                (None, Some(wanted), QuotaOwner::Namespace(namespace)) => wanted.is_match(namespace),
                (None, None, _) => true,
                _ => false,
            },
        }
    }
}

fn list_quotas(shell: &mut Shell, arguments: &Arguments) -> Result {
    let mut options = arguments.hash(0)?;
    let limit = options.take_int("LIMIT")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let wanted = Wanted::take(&mut options)?;
    nothing_left(&options)?;
    shell.session.output.header(&["OWNER", "QUOTAS"])?;
    let quotas = shell.session.wait(async { shell.session.admin().quotas().await })?;
    let mut rows = Vec::new();
    for settings in quotas.iter().filter(|settings| wanted.has(&settings.owner)) {
        rows.extend(quota_texts(settings).into_iter().map(|text| (owner_text(&settings.owner), text)));
    }
    rows.truncate(limit.unwrap_or(usize::MAX));
    for (owner, text) in &rows {
        shell.session.output.row(&[owner, text])?;
    }
    shell.session.output.footer(Some(rows.len() as u64))?;
    Ok(Value::Int(rows.len() as i64))
}

fn list_quota_table_sizes(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.output.header(&["TABLE", "SIZE"])?;
    let sizes = shell.session.wait(async { shell.session.admin().space_quota_table_sizes().await })?;
    for (table, bytes) in &sizes {
        shell.session.output.row(&[table.as_str(), &bytes.to_string()])?;
    }
    shell.session.output.footer(Some(sizes.len() as u64))?;
    Ok(Value::Nil)
}

/// Values of the family `u` of hbase:quota by row and qualifier.
fn usage(shell: &Shell, qualifiers: &[Bytes]) -> Result<Vec<(Bytes, Bytes, pb::SpaceQuotaSnapshot)>> {
    let table = shell.session.table(&TableName::quota_table());
    let scan = Scan {
        columns: [(Bytes::from_static(b"u"), qualifiers.to_vec())].into(),
        start_row: Bytes::from_static(b"t."),
        stop_row: Bytes::from_static(b"t/"),
        ..Scan::default()
    };
    let mut scanner = shell.session.within(|| table.scan(scan, table.scan_options()));
    let mut found = Vec::new();
    while let Some(row) = shell.session.wait(async { scanner.next().await })? {
        for cell in &row {
            let value = pb::SpaceQuotaSnapshot::decode(cell.value()).map_err(|error| {
                let row = cell::print::to_string_binary(cell.row());
                Flow::raise("IOError", format!("hbase:quota, row {row}: no usage of space: {error}"))
            })?;
            found.push((Bytes::copy_from_slice(cell.row()), Bytes::copy_from_slice(cell.qualifier()), value));
        }
    }
    Ok(found)
}

fn list_quota_snapshots(shell: &mut Shell, arguments: &Arguments) -> Result {
    let mut options = arguments.hash(0)?;
    let (table, namespace) = (options.take_text("TABLE"), options.take_text("NAMESPACE"));
    shell.session.output.header(&["TABLE", "USAGE", "LIMIT", "IN_VIOLATION", "POLICY"])?;
    let states: BTreeMap<TableName, pb::SpaceQuotaSnapshot> = match options.take_text("REGIONSERVER") {
        Some(name) => {
            let server = server(shell, &name)?;
            let reply = shell.session.wait(async { shell.session.admin().space_quotas_at(&server).await })?;
            let state = |state: pb::get_space_quota_snapshots_response::TableQuotaSnapshot| {
                let name = convert::from_proto::table_name(state.table_name.as_ref()?).ok()?;
                Some((name, state.snapshot.unwrap_or_default()))
            };
            reply.snapshots.into_iter().filter_map(state).collect()
        }
        None => {
            let rows = usage(shell, &[Bytes::from_static(b"p")])?;
            let name = |row: &[u8]| TableName::parse(std::str::from_utf8(row.get(2..)?).ok()?).ok();
            rows.into_iter().filter_map(|(row, _, state)| Some((name(&row)?, state))).collect()
        }
    };
    let mut count = 0;
    for (name, state) in &states {
        if table.as_ref().is_some_and(|table| name.qualifier() != table)
            || namespace.as_ref().is_some_and(|namespace| name.namespace() != namespace)
        {
            continue;
        }
        let status = state.quota_status.unwrap_or_default();
        let policy = if status.in_violation() { status.violation_policy().as_str_name() } else { "None" };
        shell.session.output.row(&[
            name.as_str(),
            &state.quota_usage().to_string(),
            &state.quota_limit().to_string(),
            &status.in_violation().to_string(),
            policy,
        ])?;
        count += 1;
    }
    shell.session.output.footer(Some(count))?;
    Ok(Value::Nil)
}

fn list_snapshot_sizes(shell: &mut Shell, _: &Arguments) -> Result {
    shell.session.output.header(&["SNAPSHOT", "SIZE"])?;
    let rows = usage(shell, &[])?;
    let sizes: BTreeMap<String, u64> = rows
        .iter()
        .filter_map(|(_, qualifier, size)| {
            let name = qualifier.strip_prefix(b"ss.")?;
            Some((String::from_utf8_lossy(name).into_owned(), size.quota_usage()))
        })
        .collect();
    for (name, bytes) in &sizes {
        shell.session.output.row(&[name, &bytes.to_string()])?;
    }
    shell.session.output.footer(Some(sizes.len() as u64))?;
    Ok(Value::Nil)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Pairs;

    fn options(pairs: &[(&str, &str)]) -> Options {
        let pairs = pairs.iter().map(|(key, value)| (Value::text(key), Value::text(value))).collect();
        Options::of(Some(&Value::hash(Pairs(pairs)))).unwrap_or_default()
    }

    fn of(pairs: &[(&str, &str)]) -> Option<pb::SetQuotaRequest> {
        request(&mut options(pairs)).ok()
    }

    #[test]
    fn throttles_are_read_in_hbases_words() {
        let quota = of(&[("TYPE", "THROTTLE"), ("USER", "u1"), ("LIMIT", "10M/min")]).expect("a quota");
        let throttle = quota.throttle.expect("a throttle");
        assert_eq!(throttle.r#type(), pb::ThrottleType::RequestSize);
        let timed = throttle.timed_quota.expect("a limit");
        assert_eq!((timed.soft_limit(), timed.time_unit()), (10 << 20, pb::TimeUnit::Minutes));
        assert_eq!(timed.scope(), pb::QuotaScope::Machine);
        let quota = of(&[("TYPE", "THROTTLE"), ("TABLE", "t"), ("THROTTLE_TYPE", "READ"), ("LIMIT", "5CU/day")]);
        let throttle = quota.and_then(|quota| quota.throttle).expect("a throttle");
        assert_eq!(throttle.r#type(), pb::ThrottleType::ReadCapacityUnit);
        let removed = of(&[("TYPE", "THROTTLE"), ("REGIONSERVER", "all"), ("LIMIT", "NONE")]).expect("a quota");
        assert_eq!((removed.region_server(), removed.throttle.map(|t| t.timed_quota)), ("all", Some(None)));
        for wrong in [
            &[("TYPE", "THROTTLE"), ("USER", "u"), ("LIMIT", "10")][..],
            &[("TYPE", "THROTTLE"), ("USER", "u"), ("LIMIT", "0req/sec")],
            &[("TYPE", "THROTTLE"), ("USER", "u"), ("LIMIT", "9999999999G/sec")],
            &[("TYPE", "THROTTLE"), ("LIMIT", "1req/sec")],
            &[("TYPE", "THROTTLE"), ("REGIONSERVER", "all"), ("SCOPE", "CLUSTER"), ("LIMIT", "1req/sec")],
            &[("TYPE", "NONSENSE")],
            &[("TYPE", "SPACE"), ("TABLE", "t"), ("LIMIT", "1G")],
            &[("TYPE", "SPACE"), ("LIMIT", "1G"), ("POLICY", "NO_INSERTS")],
            &[("TYPE", "THROTTLE"), ("USER", "u"), ("LIMIT", "1req/sec"), ("POLICY", "DISABLE")],
        ] {
            assert!(of(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn quotas_are_shown_as_hbase_shows_them() {
        let quota = of(&[("TYPE", "SPACE"), ("TABLE", "t"), ("LIMIT", "1536M"), ("POLICY", "NO_INSERTS")]);
        let space = quota.and_then(|quota| quota.space_limit).and_then(|limit| limit.quota);
        let timed = pb::TimedQuota {
            time_unit: pb::TimeUnit::Seconds.into(),
            soft_limit: Some(10),
            scope: Some(pb::QuotaScope::Machine.into()),
            share: None,
        };
        let throttle = pb::Throttle { req_num: Some(timed), write_size: Some(timed), ..pb::Throttle::default() };
        let quotas = pb::Quotas { bypass_globals: Some(true), throttle: Some(throttle), space };
        let texts = quota_texts(&QuotaSettings { owner: QuotaOwner::Table("t".to_owned()), quotas });
        assert_eq!(
            texts,
            [
                "TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 10req/sec, SCOPE => MACHINE",
                "TYPE => THROTTLE, THROTTLE_TYPE => WRITE_SIZE, LIMIT => 10.00B/sec, SCOPE => MACHINE",
                "GLOBAL_BYPASS => true",
                "TYPE => SPACE, TABLE => t, LIMIT => 1.50G, VIOLATION_POLICY => NO_INSERTS",
            ]
        );
        let user = QuotaOwner::User { user: "u".to_owned(), table: Some("t".to_owned()), namespace: None };
        assert_eq!(owner_text(&user), "USER => u, TABLE => t");
    }
}
