//! What a request to set a quota makes of the quotas there are, and what HBase refuses. Follows: `MasterQuotaManager#setQuota`,
//! `GlobalQuotaSettingsImpl#merge`, `QuotaSettings#buildFromProto`.

use crate::rows::Subject;
use model::TableName;
use proto::pb;

/// Why a quota cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// HBase throws a DoNotRetryIOException with this message.
    #[error("{0}")]
    DoNotRetry(String),
    /// HBase throws an unchecked exception with this message.
    #[error("{0}")]
    Unchecked(String),
}

fn unchecked<T>(message: impl Into<String>) -> Result<T, ChangeError> {
    Err(ChangeError::Unchecked(message.into()))
}

fn unsupported(message: impl std::fmt::Display) -> ChangeError {
    ChangeError::DoNotRetry(format!("java.lang.UnsupportedOperationException: {message}"))
}

/// The refusal where there are no quotas.
pub fn not_enabled() -> ChangeError {
    unsupported("quota support disabled")
}

/// Whose quota `request` sets. `table`: the table that it names.
///
/// # Errors
/// It names nobody.
pub fn subject(request: &pb::SetQuotaRequest, table: Option<TableName>) -> Result<Subject, ChangeError> {
    match (&request.user_name, table, &request.namespace, &request.region_server) {
        (Some(user), Some(table), ..) => Ok(Subject::UserTable(user.clone(), table)),
        (Some(user), None, Some(namespace), _) => Ok(Subject::UserNamespace(user.clone(), namespace.clone())),
        (Some(user), None, None, _) => Ok(Subject::User(user.clone())),
        (None, Some(table), ..) => Ok(Subject::Table(table)),
        (None, None, Some(namespace), _) => Ok(Subject::Namespace(namespace.clone())),
        (None, None, None, Some(server)) => Ok(Subject::RegionServer(server.clone())),
        (None, None, None, None) => Err(unsupported("a user, a table, a namespace or region server must be specified")),
    }
}

/// The quotas of `subject` after `request`; `None` when there are none left, and its row is to be deleted.
///
/// # Errors
/// What is wrong with the request.
pub fn merge(
    subject: &Subject,
    current: Option<pb::Quotas>,
    request: &pb::SetQuotaRequest,
) -> Result<Option<pb::Quotas>, ChangeError> {
    if request.remove_all() {
        return Ok(None);
    }
    let mut quotas = current.unwrap_or_default();
    match (request.bypass_globals, &request.space_limit, &request.throttle) {
        (Some(bypass), None, None) => quotas.bypass_globals = Some(bypass),
        (None, Some(limit), None) => quotas.space = space(subject, limit, quotas.space)?,
        (None, None, Some(throttle)) => quotas.throttle = throttled(throttle, quotas.throttle)?,
        (Some(_), ..) => return unchecked("SetQuotaRequest has multiple limits"),
        (None, Some(_), Some(_)) => return unchecked("SetQuotaRequests has multiple limits"),
        (None, None, None) => return unchecked("Unhandled SetRequestRequest state"),
    }
    Ok((quotas != pb::Quotas::default()).then_some(quotas))
}

fn throttled(
    request: &pb::ThrottleRequest,
    current: Option<pb::Throttle>,
) -> Result<Option<pb::Throttle>, ChangeError> {
    // A type that is not known is none, as protobuf has it in Java.
    let of_type = request.r#type.and_then(|of_type| pb::ThrottleType::try_from(of_type).ok());
    match (of_type, &request.timed_quota) {
        (Some(of_type), Some(quota)) => {
            let limit = quota.soft_limit() as i64;
            if limit < 1 {
                return Err(unsupported(format!("The throttle limit must be greater then 0, got {limit}")));
            }
            let mut throttle = current.unwrap_or_default();
            *field(&mut throttle, of_type) = Some(*quota);
            Ok(Some(throttle))
        }
        (Some(of_type), None) => Ok(current.and_then(|mut throttle| {
            *field(&mut throttle, of_type) = None;
            (throttle != pb::Throttle::default()).then_some(throttle)
        })),
        (None, _) => Ok(None),
    }
}

fn field(throttle: &mut pb::Throttle, of_type: pb::ThrottleType) -> &mut Option<pb::TimedQuota> {
    use pb::ThrottleType as Type;
    match of_type {
        Type::RequestNumber => &mut throttle.req_num,
        Type::RequestSize => &mut throttle.req_size,
        Type::WriteNumber => &mut throttle.write_num,
        Type::WriteSize => &mut throttle.write_size,
        Type::ReadNumber => &mut throttle.read_num,
        Type::ReadSize => &mut throttle.read_size,
        Type::RequestCapacityUnit => &mut throttle.req_capacity_unit,
        Type::WriteCapacityUnit => &mut throttle.write_capacity_unit,
        Type::ReadCapacityUnit => &mut throttle.read_capacity_unit,
        Type::AtomicReadSize => &mut throttle.atomic_read_size,
        Type::AtomicRequestNumber => &mut throttle.atomic_req_num,
        Type::AtomicWriteSize => &mut throttle.atomic_write_size,
        Type::RequestHandlerUsageMs => &mut throttle.req_handler_usage_ms,
    }
}

fn space(
    subject: &Subject,
    request: &pb::SpaceLimitRequest,
    current: Option<pb::SpaceQuota>,
) -> Result<Option<pb::SpaceQuota>, ChangeError> {
    let Some(quota) = &request.quota else {
        return unchecked("SpaceLimitRequest is missing the expected SpaceQuota.");
    };
    match subject {
        Subject::Table(_) | Subject::Namespace(_) => {}
        Subject::UserTable(..) | Subject::UserNamespace(..) => {
            return unchecked("Mismatched user names on settings to merge");
        }
        Subject::User(_) | Subject::RegionServer(_) => {
            return unchecked("Can only construct SpaceLimitSettings for a table or namespace.");
        }
    }
    if quota.remove() {
        return Ok(None);
    }
    let Some(limit) = quota.soft_limit else {
        return unchecked("Cannot handle SpaceQuota without a soft limit");
    };
    let Some(policy) = quota.violation_policy else {
        return unchecked("Cannot handle SpaceQuota without a violation policy");
    };
    if i64::try_from(limit).is_err() {
        return unchecked("Size limit must be a non-negative value.");
    }
    Ok(Some(pb::SpaceQuota {
        soft_limit: Some(limit),
        violation_policy: Some(policy),
        remove: current.and_then(|current| current.remove),
    }))
}

/// Whether calls may be let exceed their quotas: region servers must have quotas of their own. Follows:
/// `QuotaUtil#checkRSQuotaToEnableExceedThrottle`.
///
/// # Errors
/// What they lack.
pub fn may_exceed(region_servers: Option<&pb::Quotas>) -> Result<(), ChangeError> {
    let refused = |message: &str| Err(ChangeError::DoNotRetry(message.to_owned()));
    let Some(throttle) = region_servers.and_then(|quotas| quotas.throttle) else {
        return refused("Please set region server quota before enable exceed throttle quota");
    };
    let of_requests = [throttle.req_num, throttle.req_size, throttle.req_capacity_unit];
    let of_reads = [throttle.read_num, throttle.read_size, throttle.read_capacity_unit];
    let of_writes = [throttle.write_num, throttle.write_size, throttle.write_capacity_unit];
    let any = |quotas: &[Option<pb::TimedQuota>]| quotas.iter().any(Option::is_some);
    if !any(&of_requests) && !any(&of_reads) {
        return refused("Please set at least one read region server quota before enable exceed throttle quota");
    }
    if !any(&of_requests) && !any(&of_writes) {
        return refused("Please set at least one write region server quota before enable exceed throttle quota");
    }
    let mut all = of_requests.iter().chain(&of_reads).chain(&of_writes).flatten();
    if all.any(|quota| quota.time_unit() != pb::TimeUnit::Seconds) {
        return refused("All region server quota must be in seconds time unit if enable exceed throttle quota");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(limit: u64, unit: pb::TimeUnit) -> pb::TimedQuota {
        pb::TimedQuota {
            time_unit: unit as i32,
            soft_limit: Some(limit),
            share: None,
            scope: Some(pb::QuotaScope::Machine as i32),
        }
    }

    fn throttle(of_type: Option<pb::ThrottleType>, quota: Option<pb::TimedQuota>) -> pb::SetQuotaRequest {
        let throttle = pb::ThrottleRequest { r#type: of_type.map(|of_type| of_type as i32), timed_quota: quota };
        pb::SetQuotaRequest { throttle: Some(throttle), ..pb::SetQuotaRequest::default() }
    }

    fn space_request(quota: Option<pb::SpaceQuota>) -> pb::SetQuotaRequest {
        pb::SetQuotaRequest { space_limit: Some(pb::SpaceLimitRequest { quota }), ..pb::SetQuotaRequest::default() }
    }

    const USER: fn() -> Subject = || Subject::User("bob".into());
    const NAMESPACE: fn() -> Subject = || Subject::Namespace("ns".into());

    #[test]
    fn throttles_of_every_type_are_set_and_removed_one_by_one() {
        let second = timed(10, pb::TimeUnit::Seconds);
        let mut quotas = None;
        for number in 1..=13 {
            let of_type = pb::ThrottleType::try_from(number).expect("a type");
            quotas = merge(&USER(), quotas, &throttle(Some(of_type), Some(second))).expect("legal");
        }
        let all = quotas.and_then(|quotas| quotas.throttle).expect("thirteen throttles");
        assert_eq!(
            (all.req_num, all.req_handler_usage_ms, all.atomic_write_size),
            (Some(second), Some(second), Some(second))
        );
        for number in 1..=13 {
            assert!(quotas.is_some(), "{number}");
            let of_type = pb::ThrottleType::try_from(number).expect("a type");
            quotas = merge(&USER(), quotas, &throttle(Some(of_type), None)).expect("legal");
        }
        assert_eq!(quotas, None, "nothing is left, so the row goes");
    }

    #[test]
    fn a_throttle_request_without_a_type_removes_all_throttles_and_leaves_the_rest() {
        let quotas =
            merge(&NAMESPACE(), None, &throttle(Some(pb::ThrottleType::ReadSize), Some(timed(1, pb::TimeUnit::Days))));
        let limit = pb::SpaceQuota { soft_limit: Some(5), violation_policy: Some(3), remove: None };
        let quotas = merge(&NAMESPACE(), quotas.expect("legal"), &space_request(Some(limit))).expect("legal");
        assert!(quotas.is_some_and(|quotas| quotas.throttle.is_some() && quotas.space == Some(limit)));
        let quotas = merge(&NAMESPACE(), quotas, &throttle(None, None)).expect("legal");
        assert_eq!(quotas, Some(pb::Quotas { space: Some(limit), ..pb::Quotas::default() }));
        let removal = pb::SpaceQuota { remove: Some(true), ..pb::SpaceQuota::default() };
        assert_eq!(merge(&NAMESPACE(), quotas, &space_request(Some(removal))), Ok(None));
    }

    #[test]
    fn nonsense_is_refused_with_hbases_sentences() {
        let message = |result: Result<Option<pb::Quotas>, ChangeError>| result.expect_err("refused").to_string();
        let none = throttle(Some(pb::ThrottleType::ReadSize), Some(timed(0, pb::TimeUnit::Seconds)));
        assert_eq!(
            message(merge(&USER(), None, &none)),
            "java.lang.UnsupportedOperationException: The throttle limit must be greater then 0, got 0"
        );
        let limit = pb::SpaceQuota { soft_limit: Some(5), violation_policy: Some(3), remove: None };
        assert_eq!(
            message(merge(&USER(), None, &space_request(Some(limit)))),
            "Can only construct SpaceLimitSettings for a table or namespace."
        );
        assert_eq!(
            message(merge(&NAMESPACE(), None, &space_request(None))),
            "SpaceLimitRequest is missing the expected SpaceQuota."
        );
        let half = pb::SpaceQuota { soft_limit: Some(5), ..pb::SpaceQuota::default() };
        assert_eq!(
            message(merge(&NAMESPACE(), None, &space_request(Some(half)))),
            "Cannot handle SpaceQuota without a violation policy"
        );
        assert_eq!(message(merge(&USER(), None, &pb::SetQuotaRequest::default())), "Unhandled SetRequestRequest state");
        assert_eq!(
            subject(&pb::SetQuotaRequest::default(), None).expect_err("nobody").to_string(),
            "java.lang.UnsupportedOperationException: a user, a table, a namespace or region server must be specified"
        );
    }

    #[test]
    fn bypassing_globals_is_kept_even_when_it_is_off() {
        let bypass = |on| pb::SetQuotaRequest { bypass_globals: Some(on), ..pb::SetQuotaRequest::default() };
        let on = merge(&USER(), None, &bypass(true)).expect("legal");
        assert_eq!(on, Some(pb::Quotas { bypass_globals: Some(true), ..pb::Quotas::default() }));
        let off = merge(&USER(), on, &bypass(false)).expect("legal");
        assert_eq!(off, Some(pb::Quotas { bypass_globals: Some(false), ..pb::Quotas::default() }));
        let all = pb::SetQuotaRequest { remove_all: Some(true), ..pb::SetQuotaRequest::default() };
        assert_eq!(merge(&USER(), off, &all), Ok(None));
    }

    #[test]
    fn exceeding_needs_quotas_of_region_servers_for_reads_and_writes_by_the_second() {
        let message = |throttle: pb::Throttle| {
            let quotas = pb::Quotas { throttle: Some(throttle), ..pb::Quotas::default() };
            may_exceed(Some(&quotas)).map_err(|error| error.to_string())
        };
        let second = Some(timed(10, pb::TimeUnit::Seconds));
        assert!(may_exceed(None).expect_err("none").to_string().starts_with("Please set region server quota"));
        let reads = pb::Throttle { read_num: second, ..pb::Throttle::default() };
        assert!(message(reads).expect_err("no writes").contains("one write region server quota"));
        let writes = pb::Throttle { write_num: second, ..pb::Throttle::default() };
        assert!(message(writes).expect_err("no reads").contains("one read region server quota"));
        assert_eq!(message(pb::Throttle { read_num: second, ..writes }), Ok(()));
        let minute = pb::Throttle { req_num: Some(timed(10, pb::TimeUnit::Minutes)), ..pb::Throttle::default() };
        assert!(message(minute).expect_err("too slow").starts_with("All region server quota must be in seconds"));
    }
}
