//! Statements that are not DataFusion's business: writes, and what is refused.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::{DFSchema, ParamValues};
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Set, Statement};
use datafusion_postgres::QueryHook;
use datafusion_postgres::arrow_pg::datatypes::{arrow_schema_to_pg_fields, encode_recordbatch};
use datafusion_postgres::hooks::HookClient;
use pgwire::api::ClientInfo;
use pgwire::api::portal::Format;
use pgwire::api::results::{QueryResponse, Response, Tag};
use pgwire::api::store::PortalStore;
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::NoticeResponse;
use pgwire::types::format::FormatOptions;

use crate::error::{SqlError, of_datafusion};
use crate::running::Runner;
use crate::session::Session;
use crate::write;

const ALREADY_TOLD: &str = "basalt_told_of_transactions";

/// Writes, the notice about transactions, and the refusal of statements that would reach this server's files.
pub struct Statements(pub Runner);

/// What may run besides queries.
fn is_allowed(statement: &Statement) -> bool {
    match statement {
        Statement::Explain { statement, .. } => matches!(**statement, Statement::Query(_)),
        Statement::Query(_)
        | Statement::ShowVariable { .. }
        | Statement::ShowVariables { .. }
        | Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. }
        | Statement::Declare { .. }
        | Statement::Fetch { .. }
        | Statement::Close { .. }
        | Statement::Deallocate { .. }
        | Statement::Discard { .. }
        | Statement::Reset { .. } => true,
        Statement::Set(set) => !matches!(set, Set::SetRole { .. }),
        _ => false,
    }
}

/// Whether its answer is rows that DataFusion computes.
pub fn is_query(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_) | Statement::Explain { .. })
}

/// Whether it writes rows.
pub fn is_write(statement: &Statement) -> bool {
    matches!(statement, Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_))
}

fn refuse(statement: &Statement) -> Option<PgWireError> {
    if is_allowed(statement) || is_write(statement) {
        return None;
    }
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    Some(SqlError::unsupported(format!("{} is not supported", words.join(" "))).into())
}

/// The answer to a statement about savepoints: there are none, and clients that make one around each statement get on without.
fn of_savepoint(statement: &Statement) -> Option<Response> {
    Some(match statement {
        Statement::Savepoint { .. } => Response::Execution(Tag::new("SAVEPOINT")),
        Statement::ReleaseSavepoint { .. } => Response::Execution(Tag::new("RELEASE")),
        // A failed transaction goes on.
        Statement::Rollback { savepoint: Some(_), .. } => Response::TransactionStart(Tag::new("ROLLBACK")),
        _ => return None,
    })
}

/// `DEALLOCATE`, `DISCARD ALL`: statements that a client has prepared are forgotten. Of all of them there is no list: those that it does not
/// name any more stay until it leaves.
fn forget_prepared(statement: &Statement, client: &mut dyn HookClient) -> Option<Response> {
    match statement {
        Statement::Deallocate { name, .. } => {
            let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            if !is_all {
                client.portal_store().rm_statement(&write::name_of(name));
            }
            Some(Response::Execution(Tag::new(if is_all { "DEALLOCATE ALL" } else { "DEALLOCATE" })))
        }
        Statement::Discard { .. } => Some(Response::Execution(Tag::new("DISCARD ALL"))),
        _ => None,
    }
}

fn no_plan() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

async fn plan(ctx: &SessionContext, statement: &Statement) -> PgWireResult<LogicalPlan> {
    let plannable = DfStatement::Statement(Box::new(write::plannable(statement)));
    let plan = ctx.state().statement_to_plan(plannable).await.map_err(|e| of_datafusion(&e))?;
    write::checked(ctx, statement, plan).map_err(|e| of_datafusion(&e).into())
}

/// Runs a statement that writes.
pub async fn write(
    ctx: &SessionContext,
    runner: &Runner,
    session: &Arc<Session>,
    statement: &Statement,
    plan: LogicalPlan,
    format: &Format,
) -> PgWireResult<Response> {
    let written = runner.run(session, write::run(ctx.clone(), statement.clone(), plan)).await?;
    let command = match statement {
        Statement::Insert(_) => "INSERT 0",
        Statement::Update(_) => "UPDATE",
        _ => "DELETE",
    };
    let Some((schema, batches)) = written.returned else {
        return Ok(Response::Execution(Tag::new(command).with_rows(written.count as usize)));
    };
    let columns = Arc::new(arrow_schema_to_pg_fields(&schema, format, None)?);
    let of_batches = Arc::clone(&columns);
    let rows = batches.into_iter().flat_map(move |batch| encode_recordbatch(Arc::clone(&of_batches), batch));
    let rows: Vec<_> = rows.collect();
    let mut response = QueryResponse::new(columns, futures::stream::iter(rows));
    response.set_command_tag(command);
    Ok(Response::Query(response))
}

/// Tells the client something that is no error.
pub async fn notice(client: &mut dyn HookClient, text: &str) -> PgWireResult<()> {
    let info = ErrorInfo::new("NOTICE".into(), "00000".into(), text.to_owned());
    client.send_message(PgWireBackendMessage::NoticeResponse(NoticeResponse::from(info))).await
}

async fn tell_of_transactions(statement: &Statement, client: &mut dyn HookClient) -> PgWireResult<()> {
    if !matches!(statement, Statement::StartTransaction { .. }) || client.metadata().contains_key(ALREADY_TOLD) {
        return Ok(());
    }
    client.metadata_mut().insert(ALREADY_TOLD.to_owned(), String::new());
    let text =
        "rows are atomic here, transactions are not: each statement takes effect at once and ROLLBACK undoes nothing";
    notice(client, text).await
}

#[async_trait]
impl QueryHook for Statements {
    async fn handle_simple_query(
        &self,
        statement: &Statement,
        ctx: &SessionContext,
        client: &mut dyn HookClient,
    ) -> Option<PgWireResult<Response>> {
        if let Some(refusal) = refuse(statement) {
            return Some(Err(refusal));
        }
        if let Some(response) = of_savepoint(statement).or_else(|| forget_prepared(statement, client)) {
            return Some(Ok(response));
        }
        if let Err(e) = tell_of_transactions(statement, client).await {
            return Some(Err(e));
        }
        let session = Session::of(&*client);
        if is_query(statement) {
            let (ctx, text) = (ctx.clone(), statement.to_string());
            let options = Arc::new(FormatOptions::from_client_metadata(client.metadata()));
            let planning = async move { ctx.sql(&text).await };
            let rows = self.0.rows(&session, planning, Format::UnifiedText, Some(options)).await;
            return Some(rows.map(Response::Query));
        }
        if !is_write(statement) {
            return None;
        }
        Some(match plan(ctx, statement).await {
            Ok(plan) => write(ctx, &self.0, &session, statement, plan, &Format::UnifiedText).await,
            Err(e) => Err(e),
        })
    }

    async fn handle_extended_parse_query(
        &self,
        statement: &Statement,
        ctx: &SessionContext,
        _client: &(dyn ClientInfo + Send + Sync),
    ) -> Option<PgWireResult<LogicalPlan>> {
        if let Some(refusal) = refuse(statement) {
            return Some(Err(refusal));
        }
        if of_savepoint(statement).is_some()
            || matches!(statement, Statement::Deallocate { .. } | Statement::Discard { .. })
        {
            return Some(Ok(no_plan()));
        }
        if is_write(statement) { Some(plan(ctx, statement).await) } else { None }
    }

    async fn handle_extended_query(
        &self,
        statement: &Statement,
        _plan: &LogicalPlan,
        _params: &ParamValues,
        _ctx: &SessionContext,
        client: &mut dyn HookClient,
    ) -> Option<PgWireResult<Response>> {
        if let Some(response) = of_savepoint(statement).or_else(|| forget_prepared(statement, client)) {
            return Some(Ok(response));
        }
        tell_of_transactions(statement, client).await.err().map(Err)
    }
}
