//! Who may do what.

use proto::methods::Method;
use proto::pb;
use proto::pb::security_capabilities_response::Capability;

use super::Admin;
use crate::Result;

impl Admin {
    /// Which kinds of security the cluster has.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn security_capabilities(&self) -> Result<Vec<Capability>> {
        let reply: pb::SecurityCapabilitiesResponse =
            self.master(Method::MasterGetSecurityCapabilities, &pb::SecurityCapabilitiesRequest {}).await?;
        Ok(reply.capabilities().collect())
    }

    /// Gives a user a permission; `merge` beside those that there are, else instead of them.
    ///
    /// # Errors
    /// The master refuses: authorization is off, or the caller may not.
    pub async fn grant(&self, permission: pb::UserPermission, merge: bool) -> Result<()> {
        let request = pb::GrantRequest { user_permission: permission, merge_existing_permissions: Some(merge) };
        self.master::<pb::GrantResponse>(Method::MasterGrant, &request).await.map(|_| ())
    }

    /// Takes a permission from a user.
    ///
    /// # Errors
    /// As [`Admin::grant`].
    pub async fn revoke(&self, permission: pb::UserPermission) -> Result<()> {
        let request = pb::RevokeRequest { user_permission: permission };
        self.master::<pb::RevokeResponse>(Method::MasterRevoke, &request).await.map(|_| ())
    }

    /// The permissions that the request asks for.
    ///
    /// # Errors
    /// As [`Admin::grant`].
    pub async fn user_permissions(&self, which: &pb::GetUserPermissionsRequest) -> Result<Vec<pb::UserPermission>> {
        let reply: pb::GetUserPermissionsResponse = self.master(Method::MasterGetUserPermissions, which).await?;
        Ok(reply.user_permission)
    }

    /// Whether a user, or the caller, has each of the permissions.
    ///
    /// # Errors
    /// As [`Admin::grant`].
    pub async fn has_user_permissions(
        &self,
        user: Option<&str>,
        permissions: Vec<pb::Permission>,
    ) -> Result<Vec<bool>> {
        let user_name = user.map(|user| bytes::Bytes::copy_from_slice(user.as_bytes()));
        let request = pb::HasUserPermissionsRequest { user_name, permission: permissions };
        let reply: pb::HasUserPermissionsResponse = self.master(Method::MasterHasUserPermissions, &request).await?;
        Ok(reply.has_user_permission)
    }
}
