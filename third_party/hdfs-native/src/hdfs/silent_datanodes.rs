//! DataNodes that give no sign of life: found while a pipeline stands still, and left out of new blocks until they answer again. Java's
//! `DFSClient` waits for them until its socket's timeout, and each of its files finds the same DataNode dead anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use log::{info, warn};
use tokio::runtime::Handle;

use super::connection::{DatanodeConnection, Op};
use super::protocol::NamenodeProtocol;
use crate::common::config::Configuration;
use crate::proto::hdfs;
use crate::{HdfsError, Result};

/// A pipeline that has not acknowledged a packet for so long has its DataNodes asked.
const STANDS_STILL_AFTER: Duration = Duration::from_secs(1);
/// One that says nothing for so long is silent.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// Where all answer, or none does, they are asked again after this.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// The NameNode gives out no DataNode that it has not heard of for ten and a half minutes; then it need not be left out.
const LEFT_OUT_FOR: Duration = Duration::from_secs(15 * 60);

/// The silent DataNodes that a client knows of.
#[derive(Debug, Default)]
pub(crate) struct SilentDatanodes(Mutex<HashMap<String, hdfs::DatanodeInfoProto>>);

impl SilentDatanodes {
    pub(crate) fn all(&self) -> Vec<hdfs::DatanodeInfoProto> {
        self.0.lock().unwrap().values().cloned().collect()
    }

    fn insert(&self, node: &hdfs::DatanodeInfoProto) -> bool {
        let uuid = node.id.datanode_uuid.clone();
        self.0.lock().unwrap().insert(uuid, node.clone()).is_none()
    }

    fn remove(&self, node: &hdfs::DatanodeInfoProto) {
        self.0.lock().unwrap().remove(&node.id.datanode_uuid);
    }
}

/// Asks the DataNodes of a block whether they are there.
#[derive(Clone)]
pub(crate) struct Probe {
    pub protocol: Arc<NamenodeProtocol>,
    pub block: hdfs::LocatedBlockProto,
    pub config: Arc<Configuration>,
    pub handle: Handle,
}

impl Probe {
    /// Asks the block's DataNodes until some of them, not all, are silent: which. They are left out of new blocks from then on. For ever, where
    /// all answer: then it is work that takes long.
    async fn silent(&self) -> Vec<usize> {
        loop {
            let answers = join_all(self.block.locs.iter().map(|node| self.answers(node))).await;
            let silent: Vec<usize> = (0..answers.len()).filter(|at| !answers[*at]).collect();
            if !silent.is_empty() && silent.len() < answers.len() {
                silent
                    .iter()
                    .for_each(|at| self.leave_out(&self.block.locs[*at]));
                return silent;
            }
            sleep(ASK_AGAIN_AFTER, &self.handle).await;
        }
    }

    /// A writer's connection to this DataNode failed: it is left out of new blocks if it is silent, too.
    pub(crate) fn suspect(&self, node: hdfs::DatanodeInfoProto) {
        let probe = self.clone();
        self.handle.spawn(async move {
            if !probe.answers(&node).await {
                probe.leave_out(&node);
            }
        });
    }

    fn leave_out(&self, node: &hdfs::DatanodeInfoProto) {
        if !self.protocol.silent_datanodes.insert(node) {
            return;
        }
        let (name, port) = (&node.id.ip_addr, node.id.xfer_port);
        warn!(
            "DataNode {name}:{port} does not answer: new blocks are written without it until it does"
        );
        let (probe, node) = (self.clone(), node.clone());
        self.handle.spawn(async move {
            let has_answered = probe.wait_for(&node).await;
            probe.protocol.silent_datanodes.remove(&node);
            if has_answered {
                let (name, port) = (&node.id.ip_addr, node.id.xfer_port);
                info!("DataNode {name}:{port} answers again: new blocks are written to it");
            }
        });
    }

    /// Until the DataNode answers, or the NameNode knows itself that it does not.
    async fn wait_for(&self, node: &hdfs::DatanodeInfoProto) -> bool {
        let answer = async {
            loop {
                sleep(ASK_AGAIN_AFTER, &self.handle).await;
                if self.answers(node).await {
                    return;
                }
            }
        };
        tokio::time::timeout(LEFT_OUT_FOR, answer).await.is_ok()
    }

    /// Whether the DataNode says anything, be it that it does not have the block.
    async fn answers(&self, node: &hdfs::DatanodeInfoProto) -> bool {
        // Without the key nothing can be found out.
        let Ok(key) = self.protocol.get_cached_data_encryption_key().await else {
            return true;
        };
        let asked = {
            let _runtime = self.handle.enter();
            tokio::time::timeout(ANSWERS_WITHIN, self.ask(node, key))
        };
        !matches!(asked.await, Err(_) | Ok(Err(HdfsError::IOError(_))))
    }

    async fn ask(
        &self,
        node: &hdfs::DatanodeInfoProto,
        key: Option<hdfs::DataEncryptionKeyProto>,
    ) -> Result<()> {
        let token = &self.block.block_token;
        let mut connection =
            DatanodeConnection::connect(&node.id, token, key, &self.config, &self.handle).await?;
        let message = hdfs::OpReadBlockProto {
            header: connection.build_header(&self.block.b, Some(token.clone())),
            offset: 0,
            len: 0,
            send_checksums: Some(false),
            ..Default::default()
        };
        connection.send(Op::ReadBlock, &message).await?;
        Ok(())
    }
}

/// Which DataNodes of a pipeline that has work to do are silent, once it stands still. `probe` is made only then.
pub(crate) async fn silent_in(handle: &Handle, probe: impl FnOnce() -> Probe) -> Vec<usize> {
    sleep(STANDS_STILL_AFTER, handle).await;
    probe().silent().await
}

async fn sleep(duration: Duration, handle: &Handle) {
    // In the runtime provided, in case we are not called from one.
    let sleep = {
        let _runtime = handle.enter();
        tokio::time::sleep(duration)
    };
    sleep.await;
}
