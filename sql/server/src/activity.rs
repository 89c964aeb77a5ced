//! What connections are doing, for those who look after the server: `pg_stat_activity` as PostgreSQL has it, and `pg_stat_progress_query`, in
//! which a query's scans say how many of their regions they have read. Others' queries are not shown.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::Session as State;
use datafusion::common::ScalarValue;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use crate::pg_catalog::{Row, batch_of, int, long, text};
use crate::session::{Activity, Session, Sessions};

/// In place of what another user runs, as PostgreSQL has it.
const NOT_YOURS: &str = "<insufficient privilege>";

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Activity,
    Progress,
}

impl View {
    /// All.
    pub const ALL: [View; 2] = [View::Activity, View::Progress];

    /// Its name in `pg_catalog`.
    pub fn name(self) -> &'static str {
        match self {
            View::Activity => "pg_stat_activity",
            View::Progress => "pg_stat_progress_query",
        }
    }

    fn schema(self) -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let int = |name: &str| Field::new(name, DataType::Int32, true);
        let long = |name: &str| Field::new(name, DataType::Int64, true);
        let time = |name: &str| Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true);
        Arc::new(Schema::new(match self {
            View::Activity => vec![
                int("datid"),
                text("datname"),
                int("pid"),
                int("leader_pid"),
                int("usesysid"),
                text("usename"),
                text("application_name"),
                text("client_addr"),
                text("client_hostname"),
                int("client_port"),
                time("backend_start"),
                time("xact_start"),
                time("query_start"),
                time("state_change"),
                text("wait_event_type"),
                text("wait_event"),
                text("state"),
                int("backend_xid"),
                int("backend_xmin"),
                long("query_id"),
                text("query"),
                text("backend_type"),
            ],
            View::Progress => vec![
                int("pid"),
                text("datname"),
                text("relname"),
                text("phase"),
                long("regions_total"),
                long("regions_done"),
                long("rows_read"),
                time("query_start"),
                text("query"),
            ],
        }))
    }
}

/// The view over all connections of this server.
#[derive(Debug)]
pub struct OfSessions {
    view: View,
    schema: SchemaRef,
    sessions: Arc<Sessions>,
}

impl OfSessions {
    /// Over the connections that there are whenever it is read.
    pub fn new(view: View, sessions: &Arc<Sessions>) -> OfSessions {
        OfSessions { view, schema: view.schema(), sessions: Arc::clone(sessions) }
    }

    fn rows(&self) -> Vec<Row> {
        let asking = Session::current().map(|session| session.activity().user);
        let mut rows = Vec::new();
        for (pid, session) in self.sessions.all() {
            let activity = session.activity();
            let is_shown = asking.as_ref().is_none_or(|user| *user == activity.user);
            match self.view {
                View::Activity => rows.push(activity_row(pid, &activity, is_shown)),
                View::Progress if is_shown && activity.is_active => rows.extend(progress_rows(pid, &activity)),
                View::Progress => {}
            }
        }
        rows
    }
}

fn time(us: i64) -> ScalarValue {
    ScalarValue::TimestampMicrosecond((us > 0).then_some(us), Some("UTC".into()))
}

fn activity_row(pid: i32, activity: &Activity, is_shown: bool) -> Row {
    let mut row = vec![
        ("datname", text(&*activity.database)),
        ("pid", int(pid)),
        ("usename", text(&*activity.user)),
        ("application_name", text(&*activity.application_name)),
        ("query", text(if is_shown { &*activity.query } else { NOT_YOURS })),
    ];
    if !is_shown {
        return row;
    }
    if let Some(client) = activity.client {
        row.push(("client_addr", text(client.ip().to_string())));
        row.push(("client_port", int(i32::from(client.port()))));
    }
    row.extend([
        ("backend_start", time(activity.connected_us)),
        ("query_start", time(activity.query_start_us)),
        ("state_change", time(activity.state_change_us)),
        ("state", text(if activity.is_active { "active" } else { "idle" })),
        ("backend_type", text("client backend")),
    ]);
    row
}

fn progress_rows(pid: i32, activity: &Activity) -> impl Iterator<Item = Row> {
    activity.scans.iter().map(move |scan| {
        vec![
            ("pid", int(pid)),
            ("datname", text(&*activity.database)),
            ("relname", text(&*scan.relation)),
            ("phase", text(if scan.is_aggregate { "aggregating at the region servers" } else { "scanning" })),
            ("regions_total", long(scan.regions_total as i64)),
            ("regions_done", long(scan.regions_done() as i64)),
            ("rows_read", long(scan.rows() as i64)),
            ("query_start", time(activity.query_start_us)),
            ("query", text(&*activity.query)),
        ]
    })
}

#[async_trait]
impl TableProvider for OfSessions {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn State,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batch = batch_of(&self.schema, &self.rows())?;
        let plan = MemorySourceConfig::try_new_exec(&[vec![batch]], self.schema(), projection.cloned())?;
        Ok(plan)
    }
}
