//! Slow and large requests of region servers.

use super::Handler;
use super::types::*;
use crate::fault::Outcome;
use crate::wire::Set;
use model::ServerName;
use proto::pb;

fn server(from: &TServerName) -> ServerName {
    let port = from.port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
    ServerName::new(&from.host_name, port, from.start_code.unwrap_or_default() as u64)
}

impl Handler {
    pub(super) async fn clear_slow_log_responses(&self, server_names: Option<Set<TServerName>>) -> Outcome<Vec<bool>> {
        let mut cleared = Vec::new();
        for name in server_names.unwrap_or_default().0 {
            cleared.push(self.admin().clear_slow_log(&server(&name)).await?);
        }
        Ok(cleared)
    }

    pub(super) async fn get_slow_log_responses(
        &self,
        server_names: Option<Set<TServerName>>,
        log_query_filter: Option<TLogQueryFilter>,
    ) -> Outcome<Vec<TOnlineLogRecord>> {
        let request = request(log_query_filter.unwrap_or_default());
        let mut records = Vec::new();
        for name in server_names.unwrap_or_default().0 {
            let found = self.admin().slow_log(&server(&name), &request).await?;
            records.extend(found.into_iter().map(record));
        }
        Ok(records)
    }
}

/// Follows: `ThriftUtilities#getSlowLogQueryFromThrift`.
fn request(from: TLogQueryFilter) -> pb::SlowLogResponseRequest {
    use pb::slow_log_response_request::{FilterByOperator, LogType};
    let log_type = match from.log_type {
        Some(TLogType::LARGE_LOG) => LogType::LargeLog,
        _ => LogType::SlowLog,
    };
    let operator = match from.filter_by_operator {
        Some(TFilterByOperator::AND) => FilterByOperator::And,
        _ => FilterByOperator::Or,
    };
    pb::SlowLogResponseRequest {
        region_name: from.region_name,
        table_name: from.table_name,
        client_address: from.client_address,
        user_name: from.user_name,
        limit: Some(from.limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(10)),
        filter_by_operator: Some(operator.into()),
        log_type: Some(log_type.into()),
    }
}

/// Follows: `ThriftUtilities#getSlowLogRecordsFromHBase`.
fn record(from: pb::SlowLogPayload) -> TOnlineLogRecord {
    TOnlineLogRecord {
        start_time: from.start_time,
        processing_time: from.processing_time,
        queue_time: from.queue_time,
        response_size: from.response_size,
        client_address: from.client_address,
        server_class: from.server_class,
        method_name: from.method_name,
        call_details: from.call_details,
        param: from.param.unwrap_or_default(),
        user_name: from.user_name,
        multi_gets_count: from.multi_gets.unwrap_or_default(),
        multi_mutations_count: from.multi_mutations.unwrap_or_default(),
        multi_service_calls: from.multi_service_calls.unwrap_or_default(),
        region_name: from.region_name,
        block_bytes_scanned: from.block_bytes_scanned,
        fs_read_time: from.fs_read_time,
    }
}
