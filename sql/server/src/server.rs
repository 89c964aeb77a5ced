//! The server: a listener, and for each connection the handlers of PostgreSQL's protocol.

use std::sync::Arc;

use datafusion::arrow::array::StringArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::config::Dialect;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_postgres::datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_postgres::datafusion_pg_catalog::pg_catalog::setup_pg_catalog;
use pgwire::api::auth::StartupHandler;
use pgwire::api::cancel::CancelHandler;
use pgwire::api::copy::CopyHandler;
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::{ClientInfo, ErrorHandler, PgWireServerHandlers};
use pgwire::error::PgWireError;
use pgwire::tokio::process_socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::aggregate::PushAggregates;
use crate::auth::{Startup, Users};
use crate::catalog::{Catalog, Provider};
use crate::copy_in::CopyMessages;
use crate::current_setting::CurrentSetting;
use crate::distinct;
use crate::error::with_state;
use crate::information_schema;
use crate::join_order::Planner;
use crate::pg_catalog;
use crate::progress::NoteScans;
use crate::running::{JoinsGiveWay, Runner};
use crate::sequence::{self, Sequences};
use crate::service::{Service, Shared};
use crate::session::{Session, Sessions};
use crate::tls::Certificates;
use crate::top_rows::PushTopRows;

/// The PostgreSQL that clients are told to expect.
pub const VERSION: &str = "15.0";
/// Name of the only database.
pub const DATABASE: &str = "basalt";

/// Keys of one part of a hash join that are handed down to a scan, and their bytes.
const MOST_JOIN_KEYS: usize = 2000;
const MOST_JOIN_KEYS_BYTES: usize = 1 << 20;

/// How a server is to be.
#[derive(Clone)]
pub struct Settings {
    /// Bytes that all queries together may hold before they spill to disk.
    pub memory_bytes: usize,
    /// Regions that one scan reads at a time.
    pub scan_concurrency: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Who may connect; without, everybody on this machine.
    pub users: Option<Arc<Users>>,
    /// Certificate and key, where there is TLS.
    pub tls: Option<Arc<Certificates>>,
    /// Whether connections without TLS are refused.
    pub tls_required: bool,
}

/// The context that plans and runs queries on the tables of a catalog.
///
/// # Errors
/// DataFusion refuses a setting.
pub async fn context(
    catalog: &Arc<Catalog>,
    sessions: &Arc<Sessions>,
    settings: &Settings,
) -> anyhow::Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(DATABASE, "public")
        // As PostgreSQL has it, not as DataFusion.
        .with_information_schema(false)
        .with_target_partitions(settings.scan_concurrency);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    // As PostgreSQL reads numbers with a point.
    options.sql_parser.parse_float_as_decimal = true;
    // A column that were cast to another kind of text could not be compared by the servers.
    options.sql_parser.map_string_types_to_utf8view = false;
    // A scan has as many partitions as its rows are worth: dealing out those of one costs more than it brings, and where memory is short the rows
    // are written to disk on their way.
    options.optimizer.enable_round_robin_repartition = false;
    // Keys of a join become ranges to be jumped between: so many are still less than a table.
    options.optimizer.hash_join_inlist_pushdown_max_distinct_values = MOST_JOIN_KEYS;
    options.optimizer.hash_join_inlist_pushdown_max_size = MOST_JOIN_KEYS_BYTES;
    let runtime =
        RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(settings.memory_bytes))).build_arc()?;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_query_planner(Arc::new(Planner))
        .with_physical_optimizer_rule(Arc::new(PushAggregates))
        .with_physical_optimizer_rule(Arc::new(PushTopRows))
        .with_physical_optimizer_rule(Arc::new(JoinsGiveWay))
        .with_physical_optimizer_rule(Arc::new(NoteScans))
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(DATABASE, Arc::new(Provider(Arc::clone(catalog))));
    setup_pg_catalog(&context, DATABASE, EmptyContextProvider).map_err(|e| anyhow::anyhow!("pg_catalog: {e}"))?;
    pg_catalog::lay_over(&context, catalog, sessions)?;
    information_schema::lay_over(&context, catalog).await?;
    let version = create_udf(
        "version",
        vec![],
        DataType::Utf8,
        Volatility::Stable,
        Arc::new(|_| {
            let text = format!("PostgreSQL {VERSION} (Basalt SQL {})", env!("CARGO_PKG_VERSION"));
            Ok(ColumnarValue::Array(Arc::new(StringArray::from(vec![text]))))
        }),
    );
    context.register_udf(version);
    context.register_udf(ScalarUDF::new_from_impl(CurrentSetting::new()));
    context.register_udaf(distinct::approx_distinct());
    // Clients ask whether a type of an extension is there. There are no extensions.
    let none = Arc::new(|_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Int32(None))));
    context.register_udf(create_udf("to_regtype", vec![DataType::Utf8], DataType::Int32, Volatility::Stable, none));
    sequence::register(&context, &Sequences::new(Arc::clone(catalog)));
    Ok(context)
}

/// What a connection is served by.
struct Handlers {
    service: Arc<Service>,
    startup: Arc<Startup>,
    sessions: Arc<Sessions>,
    copy: Arc<CopyMessages>,
}

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.service)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.service)
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        Arc::clone(&self.startup)
    }

    fn copy_handler(&self) -> Arc<impl CopyHandler> {
        Arc::clone(&self.copy)
    }

    fn error_handler(&self) -> Arc<impl ErrorHandler> {
        Arc::new(Errors)
    }

    fn cancel_handler(&self) -> Arc<impl CancelHandler> {
        Arc::clone(&self.sessions)
    }
}

/// Gives each error its SQLSTATE.
struct Errors;

impl ErrorHandler for Errors {
    fn on_error<C: ClientInfo>(&self, _client: &C, error: &mut PgWireError) {
        *error = with_state(std::mem::replace(error, PgWireError::QueryCanceled));
        tracing::debug!("{error}");
    }
}

/// Serves connections until the listener fails; queries run on the runner's threads.
///
/// # Errors
/// The context cannot be made.
pub async fn serve(
    listener: TcpListener,
    catalog: Arc<Catalog>,
    settings: Settings,
    runner: Runner,
) -> anyhow::Result<()> {
    let sessions = Sessions::new();
    let context = Arc::new(context(&catalog, &sessions, &settings).await?);
    let shared = Arc::new(Shared::new(catalog, context, runner));
    let room = Arc::new(Semaphore::new(settings.connections));
    loop {
        // At the limit, those who come wait in the listener's queue.
        let permit = Arc::clone(&room).acquire_owned().await?;
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                tracing::warn!("a connection was not accepted: {e}");
                continue;
            }
        };
        let _ = socket.set_nodelay(true);
        let (socket, second) = match with_second_handle(socket) {
            Ok(both) => both,
            Err(e) => {
                tracing::warn!("the connection from {peer} is not served: {e}");
                continue;
            }
        };
        let session = Arc::new(Session::new(Some(second)));
        let (users, sessions) = (settings.users.clone(), Arc::clone(&sessions));
        let startup = Startup::new(users, settings.tls_required, Arc::clone(&sessions), Arc::clone(&session));
        let handlers = Arc::new(Handlers {
            service: Arc::new(Service::new(Arc::clone(&shared), Arc::clone(&session))),
            startup: Arc::new(startup),
            sessions,
            copy: Arc::new(CopyMessages(session)),
        });
        let tls = settings.tls.clone();
        tokio::spawn(async move {
            let tls = match &tls {
                Some(certificates) => Some(certificates.acceptor().await),
                None => None,
            };
            if let Err(e) = process_socket(socket, tls, handlers).await {
                tracing::debug!("the connection from {peer} ended: {e}");
            }
            drop(permit);
        });
    }
}

/// A socket, and a second handle of it to see that its client has left.
fn with_second_handle(socket: TcpStream) -> std::io::Result<(TcpStream, std::net::TcpStream)> {
    let socket = socket.into_std()?;
    let second = socket.try_clone()?;
    Ok((TcpStream::from_std(socket)?, second))
}
