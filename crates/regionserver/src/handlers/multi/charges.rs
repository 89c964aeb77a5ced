//! What a batch takes of quotas: asked before the actions on a region are decoded, charged with what they write and find.

use super::{Action, Work};
use crate::handlers::find_region;
use crate::handlers::mutate::serialized_bytes;
use crate::rpc_quotas::{QuotaCharge, cost_of_actions};
use crate::server::RegionServer;
use proto::pb;
use rpc::Call;
use rpc::exception::Exception;
use std::sync::Arc;

/// The charges of a batch, by region action. Corrected when the last copy is dropped; nothing where no quota bounds any of them.
#[derive(Clone, Default)]
pub(super) struct Charges(Option<Arc<Vec<Option<QuotaCharge>>>>);

impl Charges {
    pub(super) fn new(charges: Vec<Option<QuotaCharge>>) -> Charges {
        Charges(charges.iter().any(Option::is_some).then(|| Arc::new(charges)))
    }

    /// The results of region action `at` have so many bytes of cells.
    pub(super) fn set_result_bytes(&self, at: usize, bytes: usize) {
        if let Some(charge) = self.0.as_ref().and_then(|charges| charges.get(at)?.as_ref()) {
            charge.set_result_bytes(bytes as u64);
        }
    }

    /// Bytes of results that the batch may make; `None`: as many as it likes.
    pub(super) fn max_result_bytes(&self) -> Option<u64> {
        self.0.iter().flat_map(|charges| charges.iter().flatten()).filter_map(QuotaCharge::max_result_bytes).min()
    }
}

/// Takes what the actions on one region are taken for; `None` where nothing bounds them.
///
/// # Errors
/// Their limits are met, or the region is not here.
pub(super) fn charge(
    server: &RegionServer,
    call: &Call,
    action: &pb::RegionAction,
) -> Result<Option<QuotaCharge>, Exception> {
    if !server.quotas.is_on() {
        return Ok(None);
    }
    let region = find_region(server, &action.region)?;
    server.quotas.check_batch(call, &region, cost_of_actions(action), || server.counts.total())
}

/// Bytes of the cells that it writes, as quotas count them.
pub(super) fn written_bytes(work: &Work) -> usize {
    match work {
        Work::Failed(_) => 0,
        Work::Batch(_, actions) => actions
            .iter()
            .map(|(_, action)| if let Action::Write(mutation) = action { serialized_bytes(mutation) } else { 0 })
            .sum(),
        Work::Atomic { mutations, .. } => mutations.iter().map(serialized_bytes).sum(),
    }
}
