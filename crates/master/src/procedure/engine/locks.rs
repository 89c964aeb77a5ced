//! What a child takes beside what its parents hold.

use crate::locks::{Mode, Resource};
use std::sync::Arc;

/// The locks that a procedure's parents hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited(Arc<Vec<(Resource, Mode)>>);

impl Inherited {
    /// Of `wanted`, what no parent holds.
    pub fn missing(&self, wanted: Vec<(Resource, Mode)>) -> Vec<(Resource, Mode)> {
        let held = |resource: &Resource| self.0.iter().any(|(held, _)| held == resource);
        wanted.into_iter().filter(|(resource, _)| !held(resource)).collect()
    }

    /// These, and what a child of theirs holds itself.
    pub fn with(&self, own: Vec<(Resource, Mode)>) -> Inherited {
        Inherited(Arc::new(self.0.iter().cloned().chain(own).collect()))
    }
}
