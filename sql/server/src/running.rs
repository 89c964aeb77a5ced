//! Queries run on threads of their own, and can be stopped there: the connection's task only hands their rows on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::prelude::DataFrame;
use datafusion_postgres::arrow_pg::datatypes::df::encode_dataframe;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use pgwire::api::portal::Format;
use pgwire::api::results::{FieldInfo, QueryResponse};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::data::DataRow;
use pgwire::types::format::FormatOptions;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::error::{SqlError, SqlState, of_datafusion};
use crate::session::Session;

/// Rows that are handed over at a time, and how many such parts wait for a client.
const PART_ROWS: usize = 1024;
const PARTS: usize = 2;

/// Rows on their way, or why there are no more.
type Part = PgWireResult<Vec<DataRow>>;

/// Where queries run.
#[derive(Clone)]
pub struct Runner {
    threads: Handle,
}

/// A task that ends when nobody wants its rows any more.
struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Runner {
    /// On the threads of a runtime.
    pub fn new(threads: Handle) -> Runner {
        Runner { threads }
    }

    /// Plans and begins a query; its rows come as they are asked for.
    ///
    /// # Errors
    /// It cannot be planned or begun, or was interrupted.
    pub async fn rows(
        &self,
        session: &Arc<Session>,
        planning: impl Future<Output = Result<DataFrame>> + Send + 'static,
        format: Format,
        options: Option<Arc<FormatOptions>>,
    ) -> PgWireResult<QueryResponse> {
        let (begun, columns) = oneshot::channel::<PgWireResult<Arc<Vec<FieldInfo>>>>();
        let (parts, coming) = mpsc::channel::<Part>(PARTS);
        let work = async move {
            let begin = async {
                let frame = planning.await.map_err(|e| PgWireError::from(of_datafusion(&e)))?;
                encode_dataframe(frame, &format, options).await
            };
            let mut response = match begin.await {
                Ok(response) => response,
                Err(e) => {
                    let _ = begun.send(Err(e));
                    return;
                }
            };
            let _ = begun.send(Ok(response.row_schema()));
            let mut rows = response.data_rows().ready_chunks(PART_ROWS);
            while let Some(part) = rows.next().await {
                let part: Part = part.into_iter().collect();
                let is_last = part.is_err();
                if parts.send(part).await.is_err() || is_last {
                    return;
                }
            }
        };
        let task = Aborted(self.threads.spawn(session.of_this(work)));
        let ended = || SqlError::new(SqlState::INTERNAL_ERROR, "the query ended without an answer");
        let columns = session.run(columns).await?.map_err(|_| ended())??;
        let session = Arc::clone(session);
        let rows = Rows { session, command: 0, interrupted: None, coming, part: Vec::new().into_iter(), task };
        Ok(QueryResponse::new(columns, rows))
    }

    /// What `work` gives, done there.
    ///
    /// # Errors
    /// It was interrupted.
    pub async fn run<T: Send + 'static>(
        &self,
        session: &Arc<Session>,
        work: impl Future<Output = std::result::Result<T, DataFusionError>> + Send + 'static,
    ) -> std::result::Result<T, SqlError> {
        let (done, answer) = oneshot::channel();
        let _task = Aborted(self.threads.spawn(session.of_this(async move {
            let _ = done.send(work.await);
        })));
        let ended = || SqlError::new(SqlState::INTERNAL_ERROR, "the statement ended without an answer");
        session.run(answer).await?.map_err(|_| ended())?.map_err(|e| of_datafusion(&e))
    }
}

/// A query's rows. Dropped, they end it.
struct Rows {
    session: Arc<Session>,
    /// The command that asks for rows: a cursor's rows are asked for by several.
    command: u64,
    interrupted: Option<BoxFuture<'static, SqlError>>,
    coming: mpsc::Receiver<Part>,
    part: std::vec::IntoIter<DataRow>,
    task: Aborted,
}

impl Stream for Rows {
    type Item = PgWireResult<DataRow>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(row) = self.part.next() {
                return Poll::Ready(Some(Ok(row)));
            }
            match self.coming.poll_recv(cx) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(e))) => return Poll::Ready(Some(Err(e))),
                Poll::Ready(Some(Ok(part))) => self.part = part.into_iter(),
                Poll::Pending => {
                    let command = self.session.command();
                    if self.command != command || self.interrupted.is_none() {
                        self.command = command;
                        self.interrupted = Some(self.session.interrupted().boxed());
                    }
                    let Some(interrupted) = &mut self.interrupted else { return Poll::Pending };
                    let Poll::Ready(why) = interrupted.poll_unpin(cx) else { return Poll::Pending };
                    self.interrupted = None;
                    // No more rows, and nobody who makes them.
                    self.coming.close();
                    self.task.0.abort();
                    return Poll::Ready(Some(Err(why.into())));
                }
            }
        }
    }
}

/// Lets joins give way: they make many rows of few, so that nodes below them, which do, are hardly asked.
#[derive(Debug)]
pub struct JoinsGiveWay;

impl PhysicalOptimizerRule for JoinsGiveWay {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let is_join = node.is::<CrossJoinExec>()
                || node.is::<NestedLoopJoinExec>()
                || node.is::<HashJoinExec>()
                || node.is::<SortMergeJoinExec>()
                || node.is::<SymmetricHashJoinExec>();
            if is_join { Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)))) } else { Ok(Transformed::no(node)) }
        })
        .data()
    }

    fn name(&self) -> &str {
        "joins_give_way"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
