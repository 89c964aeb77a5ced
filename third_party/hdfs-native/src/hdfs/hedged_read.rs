//! Reads at a position that ask another replica when the first takes long: whoever answers first is right. As Java's
//! `DFSInputStream.hedgedFetchBlockByteRange`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt, TryStreamExt};
use log::{debug, warn};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::block_reader::{DeadNodes, ReplicatedBlockStream};
use super::crypto::FileCryptoCodec;
use super::protocol::NamenodeProtocol;
use crate::Result;
use crate::common::config::Configuration;
use crate::proto::hdfs;

/// What reads of a client that asked more than one replica came to, as `DFSHedgedReadMetrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgedReadCounts {
    /// Requests to another replica.
    pub ops: u64,
    /// Those of them that answered first.
    pub wins: u64,
    /// Reads that went on with the first replica alone, as so many requests as there may be were under way.
    pub ops_in_current_thread: u64,
}

/// When a client asks another replica, and how many such requests may be under way.
#[derive(Debug)]
pub(crate) struct HedgedReads {
    threshold: Duration,
    places: Arc<Semaphore>,
    ops: AtomicU64,
    wins: AtomicU64,
    ops_in_current_thread: AtomicU64,
}

/// A part of one block.
#[derive(Clone)]
pub(crate) struct BlockRead {
    pub protocol: Arc<NamenodeProtocol>,
    pub block: hdfs::LocatedBlockProto,
    pub offset: usize,
    pub len: usize,
    pub config: Arc<Configuration>,
    pub handle: Handle,
    pub crypto: Option<Arc<FileCryptoCodec>>,
    pub dead_nodes: Arc<DeadNodes>,
}

impl BlockRead {
    /// Asks these DataNodes, one after the other until one answers. Whether it was another than the first goes with the answer.
    fn ask(
        &self,
        datanodes: Vec<hdfs::DatanodeInfoProto>,
        place: Option<OwnedSemaphorePermit>,
    ) -> BoxFuture<'static, (bool, Result<Bytes>)> {
        let mut block = self.block.clone();
        block.locs = datanodes;
        let stream = ReplicatedBlockStream::new(
            Arc::clone(&self.protocol),
            block,
            self.offset,
            self.len,
            Arc::clone(&self.config),
            self.handle.clone(),
            self.crypto.clone(),
            Arc::clone(&self.dead_nodes),
        );
        let len = self.len;
        async move {
            let gather = |mut all: BytesMut, part: Bytes| async move {
                all.put(part);
                Ok(all)
            };
            let all = stream
                .into_stream()
                .try_fold(BytesMut::with_capacity(len), gather)
                .await;
            (place.is_some(), all.map(BytesMut::freeze))
        }
        .boxed()
    }
}

impl HedgedReads {
    /// `None` where no read asks more than one replica: `dfs.client.hedged.read.threadpool.size` is 0.
    pub(crate) fn from_config(config: &Configuration) -> Option<Arc<HedgedReads>> {
        let most = config.hedged_read_threadpool_size();
        (most > 0).then(|| {
            Arc::new(HedgedReads {
                threshold: config.hedged_read_threshold(),
                places: Arc::new(Semaphore::new(most)),
                ops: AtomicU64::new(0),
                wins: AtomicU64::new(0),
                ops_in_current_thread: AtomicU64::new(0),
            })
        })
    }

    pub(crate) fn counts(&self) -> HedgedReadCounts {
        HedgedReadCounts {
            ops: self.ops.load(Ordering::Relaxed),
            wins: self.wins.load(Ordering::Relaxed),
            ops_in_current_thread: self.ops_in_current_thread.load(Ordering::Relaxed),
        }
    }

    /// Reads; another replica is asked each time that the threshold has passed without an answer. Requests that lose are broken off, and their connections
    /// closed.
    pub(crate) async fn read(&self, read: &BlockRead) -> Result<Bytes> {
        let locs = &read.block.locs;
        let is_live = |datanode: &&hdfs::DatanodeInfoProto| !read.dead_nodes.contains(&datanode.id);
        let mut others: VecDeque<hdfs::DatanodeInfoProto> =
            locs.iter().filter(is_live).skip(1).cloned().collect();
        let mut asked = FuturesUnordered::new();
        asked.push(read.ask(locs.clone(), None));
        loop {
            tokio::select! {
                biased;
                Some((is_hedged, outcome)) = asked.next() => match outcome {
                    Ok(bytes) => {
                        if is_hedged {
                            self.wins.fetch_add(1, Ordering::Relaxed);
                        }
                        return Ok(bytes);
                    }
                    Err(error) if asked.is_empty() => return Err(error),
                    Err(error) => warn!("one of the replicas asked failed: {error:?}"),
                },
                () = tokio::time::sleep(self.threshold), if !others.is_empty() => {
                    match Arc::clone(&self.places).try_acquire_owned() {
                        Ok(place) => {
                            self.ops.fetch_add(1, Ordering::Relaxed);
                            let next: Vec<_> = others.pop_front().into_iter().collect();
                            debug!("no answer after {:?}, asking {next:?}", self.threshold);
                            asked.push(read.ask(next, Some(place)));
                        }
                        Err(_) => {
                            self.ops_in_current_thread.fetch_add(1, Ordering::Relaxed);
                            others.clear();
                        }
                    }
                }
            }
        }
    }
}
