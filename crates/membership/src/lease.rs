//! Extending the lease under which a member serves. The ensemble ends a session no sooner than its timeout after it has last heard of it; until
//! then nobody else has the server's regions.

use crate::nodes::ClusterNodes;
use model::ServerName;
use regionserver::ServeLease;
use std::time::Duration;

/// So many looks at the own node fit in a session's timeout.
const LOOKS: u32 = 6;
/// Clocks may run apart, and an answer takes its time at the client.
const MARGIN: Duration = Duration::from_secs(2);

/// For how long an answer of the ensemble lets a process act as what its node says, from when it was asked.
pub fn lease_term(session_timeout: Duration) -> Duration {
    // Where a session is as short as the margin, half of it.
    session_timeout.saturating_sub(MARGIN).max(session_timeout / 2)
}

/// Extends `lease` for as long as the server's node is there, as the ensemble's leader knows it: a server of the ensemble that is cut off from its
/// leader still answers reads while the others end the session. Ends, with a sentence, when it is not, or the session is over: the server is no
/// member any more.
pub async fn keep_lease(
    nodes: &ClusterNodes,
    server: &ServerName,
    session_timeout: Duration,
    lease: &ServeLease,
) -> String {
    let path = nodes.path(&format!("rs/{server}"));
    let term_us = u64::try_from(lease_term(session_timeout).as_micros()).unwrap_or(u64::MAX);
    loop {
        let asked_us = lease.clock().monotonic_us();
        match nodes.coordinator().latest_value(&path).await {
            Ok(Some(_)) => lease.extend(asked_us.saturating_add(term_us)),
            Ok(None) => return format!("the node of {server} is gone from ZooKeeper"),
            Err(over) => return over.to_string(),
        }
        tokio::time::sleep(session_timeout / LOOKS).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_is_shorter_than_the_session() {
        assert_eq!(lease_term(Duration::from_secs(90)), Duration::from_secs(88));
        assert_eq!(lease_term(Duration::from_secs(2)), Duration::from_secs(1));
    }
}
