//! What a cluster does by itself, switched on and off. Each switch gives back how it stood before.

use proto::methods::Method;
use proto::pb;

use super::Admin;
use crate::Result;

impl Admin {
    /// Lets the balancer run or not; `drain` waits until a run that is under way has ended.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_balancer(&self, on: bool, drain: bool) -> Result<bool> {
        let request = pb::SetBalancerRunningRequest { on, synchronous: Some(drain) };
        let reply: pb::SetBalancerRunningResponse = self.master(Method::MasterSetBalancerRunning, &request).await?;
        Ok(reply.prev_balance_value())
    }

    /// Whether the balancer may run.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_balancer_enabled(&self) -> Result<bool> {
        let reply: pb::IsBalancerEnabledResponse =
            self.master(Method::MasterIsBalancerEnabled, &pb::IsBalancerEnabledRequest {}).await?;
        Ok(reply.enabled)
    }

    /// Lets the normalizer run or not.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_normalizer(&self, on: bool) -> Result<bool> {
        let request = pb::SetNormalizerRunningRequest { on };
        let reply: pb::SetNormalizerRunningResponse = self.master(Method::MasterSetNormalizerRunning, &request).await?;
        Ok(reply.prev_normalizer_value())
    }

    /// Whether the normalizer may run.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_normalizer_enabled(&self) -> Result<bool> {
        let reply: pb::IsNormalizerEnabledResponse =
            self.master(Method::MasterIsNormalizerEnabled, &pb::IsNormalizerEnabledRequest {}).await?;
        Ok(reply.enabled)
    }

    /// Lets regions be split or not; `drain` waits for those that are being split.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_split(&self, on: bool, drain: bool) -> Result<bool> {
        self.set_split_or_merge(pb::MasterSwitchType::Split, on, drain).await
    }

    /// Lets regions be merged or not; `drain` waits for those that are being merged.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_merge(&self, on: bool, drain: bool) -> Result<bool> {
        self.set_split_or_merge(pb::MasterSwitchType::Merge, on, drain).await
    }

    async fn set_split_or_merge(&self, which: pb::MasterSwitchType, enabled: bool, drain: bool) -> Result<bool> {
        let request =
            pb::SetSplitOrMergeEnabledRequest { enabled, synchronous: Some(drain), switch_types: vec![which.into()] };
        let reply: pb::SetSplitOrMergeEnabledResponse =
            self.master(Method::MasterSetSplitOrMergeEnabled, &request).await?;
        Ok(reply.prev_value.first().copied().unwrap_or(false))
    }

    /// Whether regions may be split.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_split_enabled(&self) -> Result<bool> {
        self.is_split_or_merge_enabled(pb::MasterSwitchType::Split).await
    }

    /// Whether regions may be merged.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_merge_enabled(&self) -> Result<bool> {
        self.is_split_or_merge_enabled(pb::MasterSwitchType::Merge).await
    }

    async fn is_split_or_merge_enabled(&self, which: pb::MasterSwitchType) -> Result<bool> {
        let request = pb::IsSplitOrMergeEnabledRequest { switch_type: which.into() };
        let reply: pb::IsSplitOrMergeEnabledResponse =
            self.master(Method::MasterIsSplitOrMergeEnabled, &request).await?;
        Ok(reply.enabled)
    }

    /// Lets the catalog janitor run or not.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_catalog_janitor(&self, enable: bool) -> Result<bool> {
        let request = pb::EnableCatalogJanitorRequest { enable };
        let reply: pb::EnableCatalogJanitorResponse = self.master(Method::MasterEnableCatalogJanitor, &request).await?;
        Ok(reply.prev_value())
    }

    /// Whether the catalog janitor may run.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_catalog_janitor_enabled(&self) -> Result<bool> {
        let reply: pb::IsCatalogJanitorEnabledResponse =
            self.master(Method::MasterIsCatalogJanitorEnabled, &pb::IsCatalogJanitorEnabledRequest {}).await?;
        Ok(reply.value)
    }

    /// Lets the cleaners of old logs and files run or not.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_cleaner_chore(&self, on: bool) -> Result<bool> {
        let request = pb::SetCleanerChoreRunningRequest { on };
        let reply: pb::SetCleanerChoreRunningResponse =
            self.master(Method::MasterSetCleanerChoreRunning, &request).await?;
        Ok(reply.prev_value())
    }

    /// Whether the cleaners may run.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_cleaner_chore_enabled(&self) -> Result<bool> {
        let reply: pb::IsCleanerChoreEnabledResponse =
            self.master(Method::MasterIsCleanerChoreEnabled, &pb::IsCleanerChoreEnabledRequest {}).await?;
        Ok(reply.value)
    }

    /// Lets expired snapshots be deleted or not; `drain` waits for a run that is under way.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn set_snapshot_cleanup(&self, enabled: bool, drain: bool) -> Result<bool> {
        let request = pb::SetSnapshotCleanupRequest { enabled, synchronous: Some(drain) };
        let reply: pb::SetSnapshotCleanupResponse = self.master(Method::MasterSwitchSnapshotCleanup, &request).await?;
        Ok(reply.prev_snapshot_cleanup)
    }

    /// Whether expired snapshots are deleted.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn is_snapshot_cleanup_enabled(&self) -> Result<bool> {
        let reply: pb::IsSnapshotCleanupEnabledResponse =
            self.master(Method::MasterIsSnapshotCleanupEnabled, &pb::IsSnapshotCleanupEnabledRequest {}).await?;
        Ok(reply.enabled)
    }

    /// Has quotas of requests hold or not.
    ///
    /// # Errors
    /// The master refuses: quotas are off.
    pub async fn set_rpc_throttle(&self, on: bool) -> Result<bool> {
        let request = pb::SwitchRpcThrottleRequest { rpc_throttle_enabled: on };
        let reply: pb::SwitchRpcThrottleResponse = self.master(Method::MasterSwitchRpcThrottle, &request).await?;
        Ok(reply.previous_rpc_throttle_enabled)
    }

    /// Whether quotas of requests hold.
    ///
    /// # Errors
    /// The master refuses: quotas are off.
    pub async fn is_rpc_throttle_enabled(&self) -> Result<bool> {
        let reply: pb::IsRpcThrottleEnabledResponse =
            self.master(Method::MasterIsRpcThrottleEnabled, &pb::IsRpcThrottleEnabledRequest {}).await?;
        Ok(reply.rpc_throttle_enabled)
    }

    /// Lets users go past their quotas while a region server has room, or not.
    ///
    /// # Errors
    /// The master refuses: quotas are off, or no region server has any.
    pub async fn set_exceed_throttle_quota(&self, on: bool) -> Result<bool> {
        let request = pb::SwitchExceedThrottleQuotaRequest { exceed_throttle_quota_enabled: on };
        let reply: pb::SwitchExceedThrottleQuotaResponse =
            self.master(Method::MasterSwitchExceedThrottleQuota, &request).await?;
        Ok(reply.previous_exceed_throttle_quota_enabled)
    }
}
