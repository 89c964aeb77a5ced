//! ServerCrashProcedure: what a region server had that crashed is recovered from its logs and opened elsewhere.
//!
//! Always true: no region that the server had is opened before its logs are split. That of hbase:meta comes first, for
//! everything else is written there.

use crate::cluster::TableState;
use crate::host::{BoxFuture, ServerLogs};
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, malformed, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::operations::Operation;
use crate::procedure::region::transit::{self, Transition};
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::procedure::{infos_from_proto, infos_to_proto, server_locks};
use crate::{MasterError, Result};
use convert::{from_proto, to_proto};
use model::{RegionInfo, ServerName};
use proto::pb::ServerCrashState as State;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.ServerCrashProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(ServerCrash::read(data)?)) };

/// A server has crashed.
#[derive(Debug)]
struct ServerCrash {
    server: ServerName,
    carrying_meta: bool,
    should_split_wal: bool,
    /// What it had, once that is known.
    regions: Vec<RegionInfo>,
}

/// A server counts as crashed from now on; answers the id of the procedure that recovers what it had.
///
/// # Errors
/// It is the only server, or the procedure cannot be recorded.
pub(crate) async fn submit(master: &Arc<Master>, server: &ServerName) -> Result<u64> {
    let prepare = async {
        if master.servers.names() == [server.clone()] && !master.servers.are_remote() {
            return Err(MasterError::do_not_retry(format!(
                "region server {server} is the only one online and no other could take its regions; stop it instead"
            )));
        }
        let carrying_meta = master.servers.meta_location().as_ref() == Some(server);
        // From here on nobody opens what it had.
        master.servers.set_crashed(server);
        let crash = ServerCrash { server: server.clone(), carrying_meta, should_split_wal: true, regions: Vec::new() };
        Ok(Box::new(crash) as BoxedProcedure)
    };
    let caller = Caller { user: master.server_name.to_string(), nonce: None };
    master.procedures.submit(master, caller.submission(server_locks(server)), prepare).await
}

/// The server that an unfinished procedure recovers, if it is of this kind.
pub(crate) fn server_of(procedure: &BoxedProcedure) -> Option<ServerName> {
    match &procedure.locks()[..] {
        [(Resource::Server(name), _)] => name.parse().ok(),
        _ => None,
    }
}

/// Whether such a procedure, which a master before has brought to `step`, has split the server's logs already: nothing of them is there any more.
pub(crate) fn has_split_logs(step: Step) -> bool {
    let after = [State::ServerCrashAssign, State::ServerCrashClaimReplicationQueues, State::ServerCrashFinish];
    State::try_from(step).is_ok_and(|step| after.contains(&step))
}

/// Whether a server is being recovered.
pub(crate) fn is_running(master: &Master, server: &ServerName) -> bool {
    let [(lock, _)] = &server_locks(server)[..] else { return false };
    master.procedures.locks.held().iter().any(|(held, _)| held == lock)
}

impl ServerCrash {
    fn read(data: &[Any]) -> Result<ServerCrash> {
        let state: pb::ServerCrashStateData = unpack(data)?;
        Ok(ServerCrash {
            server: from_proto::server_name(&state.server_name)?,
            carrying_meta: state.carrying_meta.unwrap_or(false),
            should_split_wal: state.should_split_wal.unwrap_or(true),
            regions: infos_from_proto(&state.regions_on_crashed_server)?,
        })
    }

    fn regions_on_server(&self, master: &Master) -> Vec<RegionInfo> {
        let cluster = master.cluster.read();
        let nodes = cluster.with_replicas().filter(|node| node.location.as_ref() == Some(&self.server));
        nodes.map(|node| node.info.clone()).filter(|info| !info.table.is_meta() || info.is_replica()).collect()
    }

    async fn split(&self, master: &Master, which: ServerLogs) -> Result<()> {
        Ok(master.log_splitter.split_logs(&self.server, which).await?)
    }

    /// Those that are still where the server left them, and are to serve.
    fn assignments(&self, master: &Master) -> Vec<BoxedProcedure> {
        let cluster = master.cluster.read();
        let serves = |info: &&RegionInfo| {
            let left =
                |node: &crate::cluster::RegionNode| node.is_live() && node.location.as_ref() == Some(&self.server);
            cluster.region(info.encoded_name()).is_some_and(left)
                && matches!(cluster.state(&info.table), Some(TableState::Enabled | TableState::Enabling))
        };
        let regions = self.regions.iter().filter(serves).cloned();
        regions.map(|info| transit::new(info, Transition::Assign, None)).collect()
    }

    async fn step(&mut self, step: State, master: &Arc<Master>) -> Result<Next> {
        let go_on = |state: State| Ok(Next::Step(state as Step));
        match step {
            State::ServerCrashStart => {
                tracing::warn!(server = %self.server, meta = self.carrying_meta, "a region server has crashed");
                master.procedures.dispatcher.server_died(&self.server);
                go_on(if self.carrying_meta { State::ServerCrashSplitMetaLogs } else { State::ServerCrashGetRegions })
            }
            State::ServerCrashSplitMetaLogs => {
                self.split(master, ServerLogs::Meta).await?;
                go_on(State::ServerCrashAssignMeta)
            }
            State::ServerCrashAssignMeta => {
                if master.servers.are_remote() {
                    // A master that starts brings hbase:meta up itself; two who open it would give it to two servers.
                    master.lifetime.unless_stopped(master.meta_loaded.wait()).await?;
                    if master.servers.meta_host().is_ok() {
                        return go_on(State::ServerCrashGetRegions);
                    }
                }
                let meta = transit::new(RegionInfo::meta(), Transition::Assign, None);
                Ok(Next::Children(vec![meta], State::ServerCrashGetRegions as Step))
            }
            State::ServerCrashGetRegions => {
                // While the master starts: what the server had is known when hbase:meta was read.
                master.lifetime.unless_stopped(master.meta_loaded.wait()).await?;
                self.regions = self.regions_on_server(master);
                go_on(if self.should_split_wal { State::ServerCrashSplitLogs } else { State::ServerCrashAssign })
            }
            State::ServerCrashSplitLogs => {
                self.split(master, ServerLogs::Others).await?;
                go_on(State::ServerCrashDeleteSplitWalsDir)
            }
            State::ServerCrashDeleteSplitWalsDir => {
                master.servers.set_recovered(&self.server);
                Ok(Next::Unsaved(State::ServerCrashAssign as Step))
            }
            // Queues of replication to claim are made by what ships, which is not here.
            State::ServerCrashAssign => Ok(Next::Children(self.assignments(master), State::ServerCrashFinish as Step)),
            State::ServerCrashFinish => {
                tracing::info!(server = %self.server, regions = self.regions.len(), "a crashed region server is recovered");
                Ok(Next::Done(None))
            }
            other => Err(malformed(format!("a crash has no step {other:?}"))),
        }
    }
}

impl Procedure<Master> for ServerCrash {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn operation(&self) -> Option<Operation> {
        Some(Operation::ServerCrash)
    }

    // HBase's master sees by itself who has crashed.
    fn for_hbase(&self) -> Form {
        Form::None
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::ServerCrashStateData {
            server_name: to_proto::server_name(&self.server),
            regions_on_crashed_server: infos_to_proto(&self.regions),
            carrying_meta: Some(self.carrying_meta),
            should_split_wal: Some(self.should_split_wal),
            ..Default::default()
        };
        vec![any("ServerCrashStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        server_locks(&self.server)
    }

    fn first_step(&self) -> Step {
        State::ServerCrashStart as Step
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let step = State::try_from(step).map_err(malformed)?;
            self.step(step, &context.env).await
        })
    }
}
