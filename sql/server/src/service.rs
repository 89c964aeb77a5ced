//! PostgreSQL's two ways to send statements. What defines tables, copies, and queries for one row are done here, all else by DataFusion and
//! `datafusion-postgres` with our hook.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::BytesMut;
use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, ParamValues, ScalarValue};
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};
use datafusion_postgres::DfSessionService;
use datafusion_postgres::arrow_pg::datatypes::arrow_schema_to_pg_fields;
use datafusion_postgres::arrow_pg::datatypes::df::deserialize_parameters;
use datafusion_postgres::hooks::cursor::CursorStatementHook;
use datafusion_postgres::hooks::set_show::SetShowHook;
use datafusion_postgres::hooks::transactions::TransactionStatementHook;
use futures::{Sink, SinkExt, StreamExt};
use parking_lot::Mutex;
use pgwire::api::portal::{Format, Portal, PortalExecutionState};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{CopyResponse, DescribePortalResponse, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::stmt::{QueryParser, StoredStatement};
use pgwire::api::store::{Entry, PortalStore};
use pgwire::api::{ClientInfo, ClientPortalStore, DEFAULT_NAME, PgWireConnectionState, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::data::{DataRow, NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Describe, Execute, Parse, ParseComplete, TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::NoticeResponse;
use pgwire::messages::simplequery::Query;
use pgwire::types::format::FormatOptions;

use crate::answer::{as_postgres, fields};
use crate::catalog::{Catalog, name_with};
use crate::copy::{self, Copy, Form, Out, Source};
use crate::copy_in::CopyIn;
use crate::ddl::{self, Name};
use crate::error::{SqlError, SqlState, of_datafusion};
use crate::hook::{Statements, is_query, is_write, write};
use crate::mapping::Versions;
use crate::pg_catalog;
use crate::point::{self, Plans};
use crate::rewriting;
use crate::running::Runner;
use crate::session::Session;
use crate::write::returning;

/// How old what is known of the tables may be when a statement is planned.
const CATALOG_LASTS: Duration = Duration::from_secs(2);

/// A statement's text, and what it was parsed to: nothing, where it is not for DataFusion to plan.
type Parsed = (String, Option<(Statement, LogicalPlan)>);

/// What all connections share.
pub struct Shared {
    catalog: Arc<Catalog>,
    context: Arc<SessionContext>,
    inner: Arc<DfSessionService>,
    parser: Arc<Parser>,
    runner: Runner,
    points: Arc<Plans>,
}

impl Shared {
    /// Over a catalog, the context that plans with it, and the threads that queries run on.
    pub fn new(catalog: Arc<Catalog>, context: Arc<SessionContext>, runner: Runner) -> Shared {
        let hooks: Vec<Arc<dyn datafusion_postgres::QueryHook>> = vec![
            Arc::new(Statements(runner.clone())),
            Arc::new(CursorStatementHook),
            Arc::new(SetShowHook),
            Arc::new(TransactionStatementHook),
        ];
        let inner = Arc::new(DfSessionService::new_with_hooks(Arc::clone(&context), hooks));
        let points = Arc::new(Plans::default());
        let parser = Parser {
            catalog: Arc::clone(&catalog),
            inner: inner.query_parser(),
            points: Arc::clone(&points),
            planned: Mutex::default(),
        };
        Shared { catalog, context, inner, parser: Arc::new(parser), runner, points }
    }
}

/// Both handlers of one connection.
pub struct Service {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

impl Service {
    /// For a connection.
    pub fn new(shared: Arc<Shared>, session: Arc<Session>) -> Service {
        Service { shared, session }
    }

    /// Runs a statement that defines tables.
    async fn define<C>(&self, client: &mut C, ddl: ddl::Ddl) -> PgWireResult<Response>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let tag = ddl.tag();
        self.shared.catalog.refresh(CATALOG_LASTS).await?;
        for text in ddl::run(&self.shared.catalog, ddl).await? {
            let info = ErrorInfo::new("NOTICE".into(), "00000".into(), text);
            client.send(PgWireBackendMessage::NoticeResponse(NoticeResponse::from(info))).await?;
        }
        Ok(Response::Execution(Tag::new(tag)))
    }

    /// Begins a copy from the client, or does one to it.
    async fn copy<C>(&self, client: &mut C, copy: Copy) -> PgWireResult<Response>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.shared.catalog.refresh(CATALOG_LASTS).await?;
        if copy.is_from {
            let Source::Table(name, columns) = &copy.source else {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "COPY FROM wants a table").into());
            };
            let table = self.shared.catalog.table(&name.schema, &name.name).await?.ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
            })?;
            let begun = CopyIn::new(table, columns, copy.options)?;
            let form = i8::from(begun.is_binary());
            let response = CopyResponse::new(form, begun.width(), futures::stream::empty());
            *self.session.copy.lock() = Some(begun);
            return Ok(Response::CopyIn(response));
        }
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let query = match &copy.source {
            Source::Query(query) => query.clone(),
            Source::Table(Name { schema, name }, columns) => {
                let columns = match &columns[..] {
                    [] => "*".to_owned(),
                    columns => columns.iter().map(quoted).collect::<Vec<_>>().join(", "),
                };
                format!("SELECT {columns} FROM {}.{}", quoted(schema), quoted(name))
            }
        };
        let [query] = &statements(&query)[..] else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "COPY wants one query").into());
        };
        let (ctx, query) = (self.shared.context.as_ref().clone(), query.clone());
        let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let planning = async move { ctx.sql_with_options(&query, options).await };
        let is_binary = copy.options.form == Form::Binary;
        let format = if is_binary { Format::UnifiedBinary } else { Format::UnifiedText };
        let settings = Arc::new(FormatOptions::from_client_metadata(client.metadata()));
        let rows = self.shared.runner.rows(&self.session, planning, format, Some(settings)).await?;
        let Response::Query(mut rows) = as_postgres(Response::Query(rows)) else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "COPY got no rows").into());
        };
        let columns = rows.row_schema();
        let names: Vec<&str> = columns.iter().map(FieldInfo::name).collect();
        let formats = vec![i16::from(is_binary); names.len()];
        let begun = CopyOutResponse::new(i8::from(is_binary), names.len() as i16, formats);
        client.feed(PgWireBackendMessage::CopyOutResponse(begun)).await?;
        let out = Out(copy.options);
        // What comes first goes with the first row, as some clients want it.
        let mut before = BytesMut::from(&out.begin(&names)[..]);
        let mut count = 0;
        while let Some(row) = rows.data_rows().next().await {
            let mut data = out.row(&row?);
            if !before.is_empty() {
                before.extend_from_slice(&data);
                data = before.split().freeze();
            }
            client.feed(PgWireBackendMessage::CopyData(CopyData::new(data))).await?;
            count += 1;
        }
        before.extend_from_slice(&out.end());
        if !before.is_empty() {
            client.feed(PgWireBackendMessage::CopyData(CopyData::new(before.freeze()))).await?;
        }
        client.feed(PgWireBackendMessage::CopyDone(CopyDone::new())).await?;
        Ok(Response::Execution(Tag::new("COPY").with_rows(count)))
    }

    /// The row of a prepared query for one row; nothing where its values are for the planner.
    async fn prepared_point(&self, portal: &Portal<Parsed>) -> PgWireResult<Option<Option<DataRow>>> {
        let shared = &self.shared;
        if portal.statement.statement.1.is_some() {
            return Ok(None);
        }
        let Some(plan) = shared.points.known(&shared.catalog, &portal.statement.statement.0) else { return Ok(None) };
        let Ok(ParamValues::List(values)) = deserialize_parameters(portal, &plan.parameters()) else { return Ok(None) };
        let values: Vec<ScalarValue> = values.into_iter().map(|value| value.value).collect();
        let Some(key) = plan.key(&values) else { return Ok(None) };
        shared.catalog.refresh_behind(CATALOG_LASTS).await?;
        let columns = plan.fields(&portal.result_column_format)?;
        plan.row(&self.session, key, &columns).await.map(Some)
    }

    /// Runs a portal: of a prepared query for one row past the planner.
    async fn execute<C>(
        &self,
        client: &mut C,
        message: Execute,
        portal: &Option<Entry<Portal<Parsed>>>,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let Some(Entry::Value(portal)) = portal
            && matches!(client.state(), PgWireConnectionState::ReadyForQuery)
            && portal.state().try_lock().is_ok_and(|state| matches!(*state, PortalExecutionState::Initial))
            && let Some(row) = self.prepared_point(portal).await?
        {
            *portal.state().lock().await = PortalExecutionState::Finished;
            let tag = Tag::new("SELECT").with_rows(usize::from(row.is_some()));
            if let Some(row) = row {
                client.feed(PgWireBackendMessage::DataRow(row)).await?;
            }
            client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
            return Ok(());
        }
        self._on_execute(client, message).await
    }

    /// A portal of a query that DataFusion plans.
    async fn planned<C>(&self, client: &C, portal: &Portal<Parsed>) -> PgWireResult<Option<Response>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let Some((statement, plan)) = &portal.statement.statement.1 else { return Ok(None) };
        if !is_query(statement) && !is_write(statement) {
            return Ok(None);
        }
        let types = parameter_types(plan).map_err(|e| of_datafusion(&e))?;
        let values = values_of(portal, &types)?;
        let plan = plan.clone().replace_params_with_values(&values).map_err(|e| of_datafusion(&e))?;
        let (shared, format) = (&self.shared, &portal.result_column_format);
        if is_write(statement) {
            let written = write(&shared.context, &shared.runner, &self.session, statement, plan, format).await?;
            return Ok(Some(written));
        }
        let ctx = shared.context.as_ref().clone();
        let options = Arc::new(FormatOptions::from_client_metadata(client.metadata()));
        let planning = async move { ctx.execute_logical_plan(plan).await };
        let rows = shared.runner.rows(&self.session, planning, format.clone(), Some(options)).await?;
        Ok(Some(Response::Query(rows)))
    }
}

/// Values of a portal's parameters. A number is taken for a decimal column whatever type its client gave it.
fn values_of(portal: &Portal<Parsed>, types: &[Option<DataType>]) -> PgWireResult<ParamValues> {
    let given = &portal.statement.parameter_types;
    let is_other_number = |at: usize| {
        let numbers = [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8];
        matches!(types.get(at), Some(Some(DataType::Decimal128(..))))
            && given.get(at).is_some_and(|of| of.as_ref().is_some_and(|of| numbers.contains(of)))
    };
    let asked: Vec<Option<&DataType>> =
        types.iter().enumerate().map(|(at, of)| of.as_ref().filter(|_| !is_other_number(at))).collect();
    let mut values = deserialize_parameters(portal, &asked)?;
    if let ParamValues::List(values) = &mut values {
        for (at, value) in values.iter_mut().enumerate() {
            if let Some(Some(of)) = types.get(at).filter(|_| is_other_number(at)) {
                value.value = value.value.cast_to(of).map_err(|e| of_datafusion(&e))?;
            }
        }
    }
    Ok(values)
}

/// Types of a plan's parameters, in their order: what they are compared with, or cast to.
fn parameter_types(plan: &LogicalPlan) -> Result<Vec<Option<DataType>>, DataFusionError> {
    let mut types: HashMap<String, Option<DataType>> = plan.get_parameter_types()?;
    if types.values().any(Option::is_none) {
        plan.apply(|node| {
            for expr in node.expressions() {
                expr.apply(|expr| {
                    if let Expr::Cast(cast) = expr
                        && let Expr::Placeholder(placeholder) = &*cast.expr
                        && let Some(of @ None) = types.get_mut(&placeholder.id)
                    {
                        *of = Some(cast.field.data_type().clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let number = |name: &str| name.trim_start_matches('$').parse().unwrap_or(u32::MAX);
    let mut types: Vec<(u32, Option<DataType>)> = types.into_iter().map(|(name, of)| (number(&name), of)).collect();
    types.sort_by_key(|(number, _)| *number);
    Ok(types.into_iter().map(|(_, of)| of).collect())
}

#[async_trait]
impl SimpleQueryHandler for Service {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.session.begin(client, &query.query);
        let done = self._on_query(client, query).await;
        self.session.end();
        done
    }

    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let shared = &self.shared;
        if let Some(plan) = point::plan(&shared.catalog, query)
            && let Some(key) = plan.key(&[])
        {
            shared.catalog.refresh_behind(CATALOG_LASTS).await?;
            let columns = plan.fields(&Format::UnifiedText)?;
            let row = plan.row(&self.session, key, &columns).await?;
            let rows = futures::stream::iter(row.map(Ok));
            return Ok(vec![Response::Query(QueryResponse::new(columns, rows))]);
        }
        let mut responses = Vec::new();
        for statement in statements(query) {
            if let Some(ddl) = ddl::parse(&statement)? {
                responses.push(self.define(client, ddl).await?);
                continue;
            }
            if let Some(copy) = copy::parse(&statement)? {
                responses.push(self.copy(client, copy).await?);
                continue;
            }
            shared.catalog.refresh(CATALOG_LASTS).await?;
            let statement = as_insert(&statement);
            let work = SimpleQueryHandler::do_query(&*shared.inner, client, &statement);
            let answers = self.session.run(work).await??;
            responses.extend(answers.into_iter().map(as_postgres));
        }
        Ok(responses)
    }
}

#[async_trait]
impl ExtendedQueryHandler for Service {
    type Statement = Parsed;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        Arc::clone(&self.shared.parser)
    }

    /// As pgwire does it, without a message of its own on the network.
    async fn on_parse<C>(&self, client: &mut C, message: Parse) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.session.begin(client, &message.query);
        let parsed = StoredStatement::parse(client, &message, self.query_parser()).await;
        self.session.end();
        match parsed? {
            Some(statement) => client.portal_store().put_statement(Arc::new(statement)),
            None => client.portal_store().put_empty_statement(message.name.as_deref().unwrap_or(DEFAULT_NAME)),
        }
        client.feed(PgWireBackendMessage::ParseComplete(ParseComplete::new())).await?;
        Ok(())
    }

    /// As pgwire does it, without a message of its own on the network.
    async fn on_bind<C>(&self, client: &mut C, message: Bind) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.statement_name.as_deref().unwrap_or(DEFAULT_NAME);
        match client.portal_store().get_statement(name) {
            Some(Entry::Value(statement)) => {
                client.portal_store().put_portal(Arc::new(Portal::try_new(&message, statement)?));
            }
            Some(Entry::Empty) if message.parameters.is_empty() => {
                client.portal_store().put_empty_portal(message.portal_name.as_deref().unwrap_or(DEFAULT_NAME));
            }
            Some(Entry::Empty) => {
                let text = "bind message supplies parameters, but the prepared statement is empty";
                return Err(SqlError::new("08P01", text).into());
            }
            None => return Err(PgWireError::StatementNotFound(name.to_owned())),
        }
        client.feed(PgWireBackendMessage::BindComplete(BindComplete::new())).await?;
        Ok(())
    }

    /// As pgwire does it, which answers for a statement with parameters and no columns as if it had columns.
    async fn on_describe<C>(&self, client: &mut C, message: Describe) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        let statement = client.portal_store().get_statement(name);
        let statement = statement.filter(|_| message.target_type == TARGET_TYPE_BYTE_STATEMENT);
        let Some(Entry::Value(statement)) = statement else { return self._on_describe(client, message).await };
        let described = self.do_describe_statement(client, &statement).await?;
        let parameters = ParameterDescription::new(described.parameters.iter().map(Type::oid).collect());
        client.feed(PgWireBackendMessage::ParameterDescription(parameters)).await?;
        let columns = described.fields.iter().map(Into::into).collect::<Vec<_>>();
        let columns = if columns.is_empty() {
            PgWireBackendMessage::NoData(NoData::new())
        } else {
            PgWireBackendMessage::RowDescription(RowDescription::new(columns))
        };
        client.feed(columns).await?;
        Ok(())
    }

    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let portal = client.portal_store().get_portal(message.name.as_deref().unwrap_or(DEFAULT_NAME));
        let text = match &portal {
            Some(Entry::Value(portal)) => &*portal.statement.statement.0,
            _ => "",
        };
        self.session.begin(client, text);
        let done = self.execute(client, message, &portal).await;
        self.session.end();
        done
    }
    /// A cursor's portal has a text and no plan: its columns are planned for anew.
    async fn do_describe_portal<C>(
        &self,
        _client: &mut C,
        portal: &Portal<Parsed>,
    ) -> PgWireResult<DescribePortalResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let (shared, format) = (&self.shared, &portal.result_column_format);
        let (text, parsed) = &portal.statement.statement;
        let is_known = parsed.is_some() || shared.points.known(&shared.catalog, text).is_some();
        if is_known || ddl::parse(text)?.is_some() || copy::parse(text)?.is_some() {
            let columns = shared.parser.get_result_schema(&portal.statement.statement, Some(format))?;
            return Ok(DescribePortalResponse::new(columns));
        }
        let plan = shared.context.state().create_logical_plan(text).await.map_err(|e| of_datafusion(&e))?;
        let columns = arrow_schema_to_pg_fields(plan.schema().as_arrow(), format, None)?;
        Ok(DescribePortalResponse::new(fields(&columns)))
    }

    async fn do_query<C>(&self, client: &mut C, portal: &Portal<Parsed>, max_rows: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Parsed>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let (text, parsed) = &portal.statement.statement;
        if let Some(response) = self.planned(client, portal).await? {
            return Ok(as_postgres(response));
        }
        if parsed.is_none() {
            if let Some(ddl) = ddl::parse(text)? {
                return self.define(client, ddl).await;
            }
            if let Some(copy) = copy::parse(text)? {
                return self.copy(client, copy).await;
            }
            if point::shape(text).is_some() {
                // A query for one row whose table or values turned out to be for the planner.
                let types = &portal.statement.parameter_types;
                let Some(parsed) = self.shared.parser.plan(client, text, types).await? else {
                    return Ok(Response::EmptyQuery);
                };
                let statement = StoredStatement::new(portal.statement.id.clone(), parsed, types.clone());
                let mut again = Portal::new_cursor(portal.name.clone(), Arc::new(statement));
                again.parameter_format = portal.parameter_format.clone();
                again.parameters = portal.parameters.clone();
                again.result_column_format = portal.result_column_format.clone();
                if let Some(response) = self.planned(client, &again).await? {
                    return Ok(as_postgres(response));
                }
            }
        }
        let work = ExtendedQueryHandler::do_query(&*self.shared.inner, client, portal, max_rows);
        self.session.run(work).await?.map(as_postgres)
    }
}

/// Texts that are remembered with their plans; above, all are forgotten.
const MOST_PLANNED: usize = 500;

/// A text that was prepared, with the types that its client gave.
type Prepared = (String, Vec<Option<Type>>);

/// Parses for the extended protocol.
pub struct Parser {
    catalog: Arc<Catalog>,
    inner: Arc<datafusion_postgres::Parser>,
    points: Arc<Plans>,
    /// Plans of queries, with what was known of the tables when they were made.
    planned: Mutex<HashMap<Prepared, (u64, Parsed)>>,
}

impl Parser {
    /// Parses and plans with DataFusion, or remembers it.
    async fn plan<C>(&self, client: &C, sql: &str, types: &[Option<Type>]) -> PgWireResult<Option<Parsed>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let version = self.catalog.version();
        let prepared = (sql.to_owned(), types.to_vec());
        if let Some((seen, parsed)) = self.planned.lock().get(&prepared)
            && *seen == version
        {
            return Ok(Some(parsed.clone()));
        }
        let parsed = self.inner.parse_sql(client, &as_insert(sql), types).await?;
        if let Some(parsed @ (_, Some((statement, _)))) = &parsed
            && is_query(statement)
        {
            let mut planned = self.planned.lock();
            if planned.len() >= MOST_PLANNED {
                planned.clear();
            }
            planned.insert(prepared, (version, parsed.clone()));
        }
        Ok(parsed)
    }
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = Parsed;

    async fn parse_sql<C>(&self, client: &C, sql: &str, types: &[Option<Type>]) -> PgWireResult<Option<Parsed>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        if self.points.prepare(&self.catalog, sql).is_some() {
            self.catalog.refresh_behind(CATALOG_LASTS).await?;
            return Ok(Some((sql.to_owned(), None)));
        }
        if ddl::parse(sql)?.is_some() || copy::parse(sql)?.is_some() {
            return Ok(Some((sql.to_owned(), None)));
        }
        self.catalog.refresh(CATALOG_LASTS).await?;
        let mut cut = statements(sql);
        if cut.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).into());
        }
        let Some(statement) = cut.pop() else { return Ok(None) };
        self.plan(client, &statement, types).await
    }

    fn get_parameter_types(&self, statement: &Parsed) -> PgWireResult<Vec<Type>> {
        if statement.1.is_none()
            && let Some(plan) = self.points.known(&self.catalog, &statement.0)
        {
            return plan.parameter_types();
        }
        self.inner.get_parameter_types(statement)
    }

    fn get_result_schema(&self, statement: &Parsed, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        let format_or_text = format.unwrap_or(&Format::UnifiedText);
        match &statement.1 {
            None => {
                if let Some(plan) = self.points.known(&self.catalog, &statement.0) {
                    return Ok(plan.fields(format_or_text)?.to_vec());
                }
            }
            Some((written, plan)) if returning(written).is_some() => {
                let columns = arrow_schema_to_pg_fields(plan.schema().as_arrow(), format_or_text, None)?;
                return Ok(fields(&columns));
            }
            Some(_) => {}
        }
        Ok(fields(&self.inner.get_result_schema(statement, format)?))
    }
}

/// The statements of a text, cut at its semicolons.
fn statements(text: &str) -> Vec<String> {
    // What cannot be cut is for the parser to complain about.
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).with_unescape(false).tokenize();
    let Ok(tokens) = tokens.map(with_times) else { return vec![text.to_owned()] };
    let mut statements = Vec::new();
    let mut current = String::new();
    let mut is_blank = true;
    let mut tokens = tokens.into_iter().chain([Token::SemiColon]).peekable();
    while let Some(token) = tokens.next() {
        match token {
            // PostgreSQL's text of bytes: the planner would take its characters for them.
            Token::SingleQuotedString(text) if is_hex(&text) && tokens.peek() == Some(&Token::DoubleColon) => {
                is_blank = false;
                tokens.next();
                let bytes = matches!(tokens.peek(), Some(Token::Word(w)) if w.value.eq_ignore_ascii_case("bytea"));
                if bytes {
                    tokens.next();
                }
                current.push_str(&if bytes { format!("X'{}'", &text[2..]) } else { format!("'{text}'::") });
            }
            Token::SemiColon => {
                if !is_blank {
                    let statement = pg_catalog::plannable(std::mem::take(&mut current));
                    statements.push(rewriting::plannable(statement));
                }
                current.clear();
                is_blank = true;
            }
            // With an exponent it is no decimal number to the planner.
            Token::Number(text, _) if text.contains(['e', 'E']) => {
                is_blank = false;
                current.push_str(&format!("cast('{text}' as double precision)"));
            }
            Token::Whitespace(_) => current.push_str(&token.to_string()),
            // Its escapes are read already.
            Token::EscapedStringLiteral(text) => {
                is_blank = false;
                current.push_str(&format!("'{}'", text.replace('\'', "''")));
            }
            _ => {
                is_blank = false;
                current.push_str(&token.to_string());
            }
        }
    }
    statements
}

/// `table AS OF 1700000000000`, `table AS OF TIMESTAMP '2024-01-01 00:00:00'`, the same as `FOR SYSTEM_TIME AS OF ...`, and
/// `FOR SYSTEM_TIME ALL` are a table of another name, under the old one.
fn with_times(tokens: Vec<Token>) -> Vec<Token> {
    let is = |token: &Token, word: &str| matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    let mut changed: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        // Positions of tokens that are no space, from here on.
        let ahead: Vec<usize> =
            (at..tokens.len()).filter(|at| !matches!(tokens[*at], Token::Whitespace(_))).take(7).collect();
        let token = |index: usize| ahead.get(index).map(|at| &tokens[*at]);
        let has = |index: usize, word: &str| token(index).is_some_and(|t| is(t, word));
        let is_here = ahead.first() == Some(&at);
        let with_start = is_here && has(0, "for") && has(1, "system_time");
        let from = if with_start { 2 } else { 0 };
        let is_as_of = is_here && has(from, "as") && has(from + 1, "of");
        let is_all = with_start && has(from, "all");
        let literal = from + 2 + usize::from(has(from + 2, "timestamp"));
        let time = token(literal).filter(|_| is_as_of).and_then(|token| match token {
            Token::Number(text, _) => text.parse::<i64>().ok(),
            Token::SingleQuotedString(text) => string_to_timestamp_nanos(text).ok().map(|ns| ns.div_euclid(1_000_000)),
            _ => None,
        });
        let versions = time.map(|last_ms| Versions::AsOf { last_ms, with_start }).or(is_all.then_some(Versions::All));
        let last = if is_all { from } else { literal };
        let name = changed.iter().rposition(|token| !matches!(token, Token::Whitespace(_)));
        if let (Some(versions), Some(Token::Word(word))) = (versions, name.map(|at| &changed[at])) {
            let (place, called) = (name.unwrap_or_default(), word.clone());
            let plain = if called.quote_style.is_some() { called.value } else { called.value.to_ascii_lowercase() };
            let quoted =
                |value: String| Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
            changed[place] = quoted(name_with(&plain, versions));
            let is_named = |t: &Token| {
                is(t, "as") || matches!(t, Token::Word(w) if w.quote_style.is_some() || w.keyword == Keyword::NoKeyword)
            };
            if !token(last + 1).is_some_and(is_named) {
                changed.push(quoted(plain));
            }
            at = ahead[last] + 1;
            continue;
        }
        changed.push(tokens[at].clone());
        at += 1;
    }
    changed
}

/// Whether a text is bytes in hexadecimal, as PostgreSQL writes them.
fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("\\x").unwrap_or("?");
    digits.len().is_multiple_of(2) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `UPSERT INTO` is `INSERT INTO`, which upserts here.
fn as_insert(statement: &str) -> std::borrow::Cow<'_, str> {
    let start = statement.trim_start();
    match start.get(..6) {
        Some(word) if word.eq_ignore_ascii_case("upsert") => format!("INSERT{}", &start[6..]).into(),
        _ => statement.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_semicolons_and_nowhere_else() {
        let cut = statements("select 'a;b' as \"x;y\"; -- one; two\n ;;insert into t values (E'\\n', $1::int);");
        assert_eq!(cut.len(), 2, "{cut:?}");
        assert_eq!(cut[0], "select 'a;b' as \"x;y\"");
        assert!(cut[1].contains("insert into t values ("), "{cut:?}");
        assert_eq!(statements("select 'open"), ["select 'open"]);
        assert_eq!(statements(" -- nothing\n"), Vec::<String>::new());
        assert_eq!(statements("select 'it''s', E'it\\'s'"), ["select 'it''s', 'it''s'"]);
        assert_eq!(statements("select 1e3, 10"), ["select cast('1e3' as double precision), 10"]);
        assert_eq!(statements("select '\\x00fF'::bytea, '\\x00'::text"), ["select X'00fF', '\\x00'::text"]);
    }

    #[test]
    fn tables_have_times() {
        let one = |text: &str| statements(text).concat();
        assert_eq!(one("select a from t as of 5 where a = 1"), "select a from \"t@5\" \"t\" where a = 1");
        assert_eq!(one("select x.a from s.T AS OF 5 x"), "select x.a from s.\"t@5\"  x");
        let from_text = one("select * from \"T\" as of timestamp '1970-01-01 00:00:01.5' as y");
        assert_eq!(from_text, "select * from \"T@1500\"  as y");
        assert_eq!(one("select a as of, 5 from t"), "select a as of, 5 from t");
        let all = one("select a from t for system_time all where a = 1");
        assert_eq!(all, "select a from \"t@all\" \"t\" where a = 1");
        let of_time = one("select a from t FOR SYSTEM_TIME AS OF timestamp '1970-01-01 00:00:01.5' x");
        assert_eq!(of_time, "select a from \"t@1500+\"  x");
    }

    #[test]
    fn upsert_becomes_insert() {
        assert_eq!(as_insert("  UPSERT INTO t VALUES (1)"), "INSERT INTO t VALUES (1)");
        assert_eq!(as_insert("select 'upsert'"), "select 'upsert'");
    }
}
