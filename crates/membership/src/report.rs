//! The reports by which a master knows that a server lives, and what it holds. Follows: `HRegionServer#tryRegionServerReport`.

use crate::link::{LinkError, MasterLink};
use coordination::SessionOver;
use model::ServerName;
use proto::methods::Method;
use proto::pb;
use std::time::Duration;

/// Why a server is a member no longer. It must serve nothing any more.
#[derive(Debug, thiserror::Error)]
pub enum Expelled {
    /// The master is bringing its regions to others already.
    #[error("{0}: another server gets its regions")]
    Dead(LinkError),
    /// The ensemble has ended the session.
    #[error(transparent)]
    Over(#[from] SessionOver),
}

/// Reports at once and then every `interval`, until the server is expelled. A master that does not answer, or is not ready, is asked again at the
/// next turn: another may be active by then.
pub async fn keep_reporting(
    link: &MasterLink,
    server: &ServerName,
    interval: Duration,
    load: impl Fn() -> pb::ServerLoad,
) -> Expelled {
    let mut over = link.nodes().coordinator().over();
    loop {
        let report = async {
            let request =
                pb::RegionServerReportRequest { server: convert::to_proto::server_name(server), load: Some(load()) };
            link.call::<pb::RegionServerReportResponse>(Method::RegionServerStatusRegionServerReport, &request).await
        };
        let reported = tokio::select! {
            biased;
            reported = report => reported,
            over = &mut over => return Expelled::Over(over),
        };
        match reported {
            Ok(_) => {}
            Err(LinkError::Over(over)) => return Expelled::Over(over),
            Err(error) if error.is("YouAreDeadException") => return Expelled::Dead(error),
            Err(error) => tracing::warn!("the load was not reported: {error}"),
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(interval) => {}
            over = &mut over => return Expelled::Over(over),
        }
    }
}
