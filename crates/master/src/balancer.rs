//! The balancer: looks whether regions are to be moved, and remembers why it moved none.
//!
//! Not here: moves from one server to another. On one server HBase has none to make either, and says so. Follows:
//! `HMaster#balance`, `StochasticLoadBalancer#needsBalance`, `BalancerRejectionQueueService`.

use crate::cluster::{RegionState, TableState};
use crate::master::Master;
use crate::settings;
use base::Config;
use model::TableName;
use parking_lot::Mutex;
use proto::pb;
use std::collections::VecDeque;

/// With fewer servers nothing can be balanced.
const FEWEST_SERVERS: usize = 2;

/// What the balancer remembers.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// Why it did nothing, the oldest first. `None` where that was not to be kept when the master started.
    rejections: Option<Mutex<VecDeque<pb::BalancerRejection>>>,
    most_rejections: usize,
}

impl Balancer {
    pub(crate) fn new(config: &Config) -> Balancer {
        Balancer {
            rejections: config.get(&settings::BALANCER_REJECTION_BUFFER).then(Mutex::default),
            most_rejections: config.get(&settings::BALANCER_REJECTIONS) as usize,
        }
    }

    /// The newest rejections, newest first; all where there is no limit.
    pub(crate) fn rejections(&self, limit: Option<u32>) -> Vec<pb::BalancerRejection> {
        let Some(rejections) = &self.rejections else { return Vec::new() };
        rejections.lock().iter().rev().take(limit.map_or(usize::MAX, |limit| limit as usize)).cloned().collect()
    }

    fn reject(&self, reason: String) {
        let Some(rejections) = &self.rejections else { return };
        let mut rejections = rejections.lock();
        while rejections.len() >= self.most_rejections {
            rejections.pop_front();
        }
        rejections.push_back(pb::BalancerRejection { reason, cost_func_info: Vec::new() });
    }
}

/// Balances: of all tables at once, or of each. Off, it does so only to see what it would do.
pub(crate) fn run(master: &Master, request: pb::BalanceRequest) -> pb::BalanceResponse {
    let mut response = pb::BalanceResponse { balancer_ran: false, moves_calculated: Some(0), moves_executed: Some(0) };
    if !(master.switches.balancer() || request.dry_run()) || !master.is_initialized() || master.is_stopping() {
        return response;
    }
    let (mut in_transition, mut of_meta, mut tables) = (0_u32, 0_u32, 0_usize);
    {
        let cluster = master.cluster.read();
        for (table, _) in cluster.tables().filter(|(_, state)| *state == TableState::Enabled) {
            tables += 1;
            let moves = |state| {
                use RegionState::{Closing, FailedClose, FailedOpen, Merging, Opening, Splitting};
                matches!(state, Opening | Closing | Splitting | Merging | FailedOpen | FailedClose)
            };
            let count =
                cluster.regions_of(&table.name).filter(|node| node.is_live() && moves(node.state)).count() as u32;
            in_transition += count;
            if table.name == TableName::meta() {
                of_meta += count;
            }
        }
    }
    if in_transition > 0 && (!request.ignore_rit() || of_meta > 0) {
        tracing::info!(
            "not running the balancer because {in_transition} regions are in transition; the next period tries again"
        );
        return response;
    }
    response.balancer_ran = true;
    let draining = master.servers.draining();
    let servers = master.servers.all().iter().filter(|host| !draining.contains(&host.server_name())).count();
    if servers < FEWEST_SERVERS && master.settings().keep_rejections {
        let rounds = if master.settings().balance_by_table { tables } else { 1 };
        let reason = format!("The number of RegionServers {servers} < MIN_SERVER_BALANCE({FEWEST_SERVERS})");
        (0..rounds).for_each(|_| master.balancer.reject(reason.clone()));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_rejections_are_kept_and_told_first() {
        let mut config = Config::default();
        config.set("hbase.master.balancer.rejection.queue.size", "2");
        let off = Balancer::new(&config);
        off.reject("lost".to_owned());
        assert_eq!(off.rejections(None), []);
        config.set("hbase.master.balancer.rejection.buffer.enabled", "true");
        let balancer = Balancer::new(&config);
        ["a", "b", "c"].iter().for_each(|reason| balancer.reject((*reason).to_owned()));
        let reasons = |limit| -> Vec<String> {
            balancer.rejections(limit).into_iter().map(|rejection| rejection.reason).collect()
        };
        assert_eq!(reasons(None), ["c", "b"]);
        assert_eq!(reasons(Some(1)), ["c"]);
        assert_eq!(reasons(Some(9)), ["c", "b"]);
    }
}
