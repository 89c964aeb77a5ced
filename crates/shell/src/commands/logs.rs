//! What servers keep in memory about slow and large calls and about the balancer. Part of the group `tools`. Follows:
//! `Hbase::Admin#get_slowlog_responses`, `OnlineLogRecord#toJsonPrettyPrint`, `BalancerDecision`, `BalancerRejection`.

use model::ServerName;
use proto::pb;
use proto::pb::slow_log_response_request::{FilterByOperator, LogType};

use super::arguments::{Options, texts};
use super::regions::server;
use super::{Arguments, Command, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::json::Json;
use crate::value::Value;

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("tools", "clear_slowlog_responses", 0..=1, clear_slow_log),
    command("tools", "get_balancer_decisions", 0..=1, balancer_decisions),
    command("tools", "get_balancer_rejections", 0..=1, balancer_rejections),
    command("tools", "get_largelog_responses", 1..=2, |shell, arguments| slow_log(shell, arguments, LogType::LargeLog)),
    command("tools", "get_slowlog_responses", 1..=2, |shell, arguments| slow_log(shell, arguments, LogType::SlowLog)),
];

/// How many of the balancer's decisions are shown unless LIMIT says otherwise.
const BALANCER_LIMIT: u32 = 250;

/// The servers that an argument names, all that are alive where it is `'*'` or nothing.
fn among(shell: &Shell, value: Option<&Value>) -> Result<Vec<ServerName>> {
    match value {
        None => shell.session.wait(async { shell.session.admin().servers().await }),
        Some(Value::Text(text)) if text.as_ref() == b"*" => among(shell, None),
        Some(value @ (Value::Text(_) | Value::Array(_))) => {
            texts(value).iter().map(|name| server(shell, name)).collect()
        }
        Some(other) => {
            Err(Flow::argument(format!("{} of {} is not of Array/String type", other.class(), other.inspect())))
        }
    }
}

fn hash(arguments: &Arguments, i: usize) -> Result<Options> {
    match arguments.get(i) {
        None | Some(Value::Hash(_)) => arguments.hash(i),
        Some(_) => Err(Flow::runtime("Filter parameters are not Hash")),
    }
}

/// LIMIT.
fn limit(options: &mut Options, otherwise: u32) -> Result<u32> {
    let given = options.take_int("LIMIT")?;
    given.map_or(Ok(otherwise), |limit| {
        u32::try_from(limit).map_err(|_| Flow::argument(format!("LIMIT must be a number from 0 on, not {limit}")))
    })
}

/// Prints records, and gives them back as texts.
fn print(shell: &mut Shell, title: &str, records: Vec<Json>) -> Result {
    shell.session.output.line(title)?;
    let texts: Vec<String> = records.iter().map(Json::pretty).collect();
    for text in &texts {
        shell.session.output.line(text)?;
    }
    Ok(Value::Nil)
}

fn slow_log(shell: &mut Shell, arguments: &Arguments, kind: LogType) -> Result {
    let servers = among(shell, arguments.get(0))?;
    let mut options = hash(arguments, 1)?;
    let operator = match options.take_text("FILTER_BY_OP").as_deref() {
        None | Some("OR") => FilterByOperator::Or,
        Some("AND") => FilterByOperator::And,
        Some(_) => return Err(Flow::argument("FILTER_BY_OP should be either OR / AND")),
    };
    let request = pb::SlowLogResponseRequest {
        region_name: options.take_text("REGION_NAME"),
        table_name: options.take_text("TABLE_NAME"),
        client_address: options.take_text("CLIENT_IP"),
        user_name: options.take_text("USER"),
        limit: Some(limit(&mut options, 10)?),
        filter_by_operator: Some(operator.into()),
        log_type: Some(kind.into()),
    };
    let mut records = Vec::new();
    for server in &servers {
        let found = shell.session.wait(async { shell.session.admin().slow_log(server, &request).await })?;
        records.extend(found.iter().map(record));
    }
    let title = match kind {
        LogType::SlowLog => "Retrieved SlowLog Responses from RegionServers",
        LogType::LargeLog => "Retrieved LargeLog Responses from RegionServers",
    };
    print(shell, title, records)
}

/// One call, with the members that HBase's record has.
fn record(call: &pb::SlowLogPayload) -> Json {
    let mut members = vec![
        ("startTime", Json::Int(call.start_time)),
        ("processingTime", Json::Int(call.processing_time.into())),
        ("queueTime", Json::Int(call.queue_time.into())),
        ("responseSize", Json::Int(call.response_size)),
        ("blockBytesScanned", Json::Int(call.block_bytes_scanned())),
        ("fsReadTime", Json::Int(call.fs_read_time())),
        ("clientAddress", Json::text(&call.client_address)),
        ("serverClass", Json::text(&call.server_class)),
        ("methodName", Json::text(&call.method_name)),
        ("callDetails", Json::text(&call.call_details)),
        ("param", Json::text(call.param())),
        ("userName", Json::text(&call.user_name)),
    ];
    for (name, count) in [
        ("multiGetsCount", call.multi_gets()),
        ("multiMutationsCount", call.multi_mutations()),
        ("multiServiceCalls", call.multi_service_calls()),
    ] {
        if count != 0 {
            members.push((name, Json::Int(count.into())));
        }
    }
    for (name, attributes) in
        [("requestAttributes", &call.request_attribute), ("connectionAttributes", &call.connection_attribute)]
    {
        if !attributes.is_empty() {
            let text = |bytes: &[u8]| Json::Text(cell::print::to_string_binary(bytes));
            let pairs = attributes.iter().map(|pair| (pair.name.clone(), text(pair.value())));
            members.push((name, Json::Object(pairs.collect())));
        }
    }
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn clear_slow_log(shell: &mut Shell, arguments: &Arguments) -> Result {
    let servers = among(shell, arguments.get(0))?;
    let mut cleared = 0;
    for server in &servers {
        cleared += usize::from(shell.session.wait(async { shell.session.admin().clear_slow_log(server).await })?);
    }
    let all = servers.len();
    shell.session.output.line(&format!("Cleared Slowlog responses from {cleared}/{all} RegionServers"))?;
    Ok(Value::Nil)
}

fn balancer_decisions(shell: &mut Shell, arguments: &Arguments) -> Result {
    let limit = limit(&mut hash(arguments, 0)?, BALANCER_LIMIT)?;
    let decisions = shell.session.wait(async { shell.session.admin().balancer_decisions(limit).await })?;
    let record = |decision: &pb::BalancerDecision| {
        let plans = decision.region_plans.iter().map(Json::text).collect();
        Json::Object(vec![
            ("initialFunctionCosts".to_owned(), Json::text(&decision.initial_function_costs)),
            ("finalFunctionCosts".to_owned(), Json::text(&decision.final_function_costs)),
            ("initTotalCost".to_owned(), Json::Float(decision.init_total_cost)),
            ("computedTotalCost".to_owned(), Json::Float(decision.computed_total_cost)),
            ("computedSteps".to_owned(), Json::Int(decision.computed_steps as i64)),
            ("regionPlans".to_owned(), Json::List(plans)),
        ])
    };
    print(shell, "Retrieved BalancerDecision Responses", decisions.iter().map(record).collect())
}

fn balancer_rejections(shell: &mut Shell, arguments: &Arguments) -> Result {
    let limit = limit(&mut hash(arguments, 0)?, BALANCER_LIMIT)?;
    let rejections = shell.session.wait(async { shell.session.admin().balancer_rejections(limit).await })?;
    let record = |rejection: &pb::BalancerRejection| {
        let costs = rejection.cost_func_info.iter().map(Json::text).collect();
        Json::Object(vec![
            ("reason".to_owned(), Json::text(&rejection.reason)),
            ("costFuncInfoList".to_owned(), Json::List(costs)),
        ])
    };
    print(shell, "Retrieved BalancerRejection Responses", rejections.iter().map(record).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_call_is_shown_as_hbase_shows_it() {
        let call = pb::SlowLogPayload {
            start_time: 1,
            processing_time: 2,
            client_address: "127.0.0.1:1".to_owned(),
            method_name: "Scan".to_owned(),
            multi_gets: Some(3),
            ..pb::SlowLogPayload::default()
        };
        let text = record(&call).pretty();
        assert!(text.starts_with("{\n  \"startTime\": 1,\n  \"processingTime\": 2,\n  \"queueTime\": 0,"), "{text}");
        assert!(text.ends_with("\"userName\": \"\",\n  \"multiGetsCount\": 3\n}"), "{text}");
    }
}
