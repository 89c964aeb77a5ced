//! PostgreSQL's two ways to send statements. What defines tables is done here, all else by `datafusion-postgres` with our hook.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion_postgres::DfSessionService;
use datafusion_postgres::arrow_pg::datatypes::arrow_schema_to_pg_fields;
use datafusion_postgres::hooks::cursor::CursorStatementHook;
use datafusion_postgres::hooks::set_show::SetShowHook;
use datafusion_postgres::hooks::transactions::TransactionStatementHook;
use futures::{Sink, SinkExt};
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{DescribePortalResponse, FieldInfo, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::NoticeResponse;

use crate::answer::{as_postgres, fields};
use crate::catalog::Catalog;
use crate::ddl;
use crate::error::{SqlError, of_datafusion};
use crate::hook::Statements;

/// How old what is known of the tables may be when a statement is planned.
const CATALOG_LASTS: Duration = Duration::from_secs(2);

/// A statement's text, and what it was parsed to.
type Parsed = (String, Option<(Statement, LogicalPlan)>);

/// Both handlers of one server.
pub struct Service {
    catalog: Arc<Catalog>,
    context: Arc<SessionContext>,
    inner: Arc<DfSessionService>,
    parser: Arc<Parser>,
}

impl Service {
    /// Over a catalog and the context that plans with it.
    pub fn new(catalog: Arc<Catalog>, context: Arc<SessionContext>) -> Service {
        let hooks: Vec<Arc<dyn datafusion_postgres::QueryHook>> = vec![
            Arc::new(Statements),
            Arc::new(CursorStatementHook),
            Arc::new(SetShowHook),
            Arc::new(TransactionStatementHook),
        ];
        let inner = Arc::new(DfSessionService::new_with_hooks(Arc::clone(&context), hooks));
        let parser = Arc::new(Parser { catalog: Arc::clone(&catalog), inner: inner.query_parser() });
        Service { catalog, context, inner, parser }
    }

    /// Runs a statement that defines tables.
    async fn define<C>(&self, client: &mut C, ddl: ddl::Ddl) -> PgWireResult<Response>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let tag = ddl.tag();
        self.catalog.refresh(CATALOG_LASTS).await?;
        for text in ddl::run(&self.catalog, ddl).await? {
            let info = ErrorInfo::new("NOTICE".into(), "00000".into(), text);
            client.send(PgWireBackendMessage::NoticeResponse(NoticeResponse::from(info))).await?;
        }
        Ok(Response::Execution(Tag::new(tag)))
    }
}

#[async_trait]
impl SimpleQueryHandler for Service {
    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut responses = Vec::new();
        for statement in statements(query) {
            if let Some(ddl) = ddl::parse(&statement)? {
                responses.push(self.define(client, ddl).await?);
                continue;
            }
            self.catalog.refresh(CATALOG_LASTS).await?;
            let statement = as_insert(&statement);
            let answers = SimpleQueryHandler::do_query(&*self.inner, client, &statement).await?;
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
        Arc::clone(&self.parser)
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
        let format = &portal.result_column_format;
        let (text, parsed) = &portal.statement.statement;
        if parsed.is_some() || ddl::parse(text)?.is_some() {
            let columns = self.parser.get_result_schema(&portal.statement.statement, Some(format))?;
            return Ok(DescribePortalResponse::new(columns));
        }
        let plan = self.context.state().create_logical_plan(text).await.map_err(|e| of_datafusion(&e))?;
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
        if portal.statement.statement.1.is_none()
            && let Some(ddl) = ddl::parse(&portal.statement.statement.0)?
        {
            return self.define(client, ddl).await;
        }
        ExtendedQueryHandler::do_query(&*self.inner, client, portal, max_rows).await.map(as_postgres)
    }
}

/// Parses for the extended protocol.
pub struct Parser {
    catalog: Arc<Catalog>,
    inner: Arc<datafusion_postgres::Parser>,
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = Parsed;

    async fn parse_sql<C>(&self, client: &C, sql: &str, types: &[Option<Type>]) -> PgWireResult<Option<Parsed>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        if ddl::parse(sql)?.is_some() {
            return Ok(Some((sql.to_owned(), None)));
        }
        self.catalog.refresh(CATALOG_LASTS).await?;
        let mut cut = statements(sql);
        if cut.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(crate::error::SqlState::SYNTAX_ERROR, message).into());
        }
        let Some(statement) = cut.pop() else { return Ok(None) };
        self.inner.parse_sql(client, &as_insert(&statement), types).await
    }

    fn get_parameter_types(&self, statement: &Parsed) -> PgWireResult<Vec<Type>> {
        self.inner.get_parameter_types(statement)
    }

    fn get_result_schema(&self, statement: &Parsed, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        Ok(fields(&self.inner.get_result_schema(statement, format)?))
    }
}

/// The statements of a text, cut at its semicolons.
fn statements(text: &str) -> Vec<String> {
    // What cannot be cut is for the parser to complain about.
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize() else { return vec![text.to_owned()] };
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
                    statements.push(std::mem::take(&mut current));
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
            _ => {
                is_blank = false;
                current.push_str(&token.to_string());
            }
        }
    }
    statements
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
        assert_eq!(statements("select 1e3, 10"), ["select cast('1e3' as double precision), 10"]);
        assert_eq!(statements("select '\\x00fF'::bytea, '\\x00'::text"), ["select X'00fF', '\\x00'::text"]);
    }

    #[test]
    fn upsert_becomes_insert() {
        assert_eq!(as_insert("  UPSERT INTO t VALUES (1)"), "INSERT INTO t VALUES (1)");
        assert_eq!(as_insert("select 'upsert'"), "select 'upsert'");
    }
}
