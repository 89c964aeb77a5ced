//! Four-letter words: what monitoring asks of a ZooKeeper, four bare bytes instead of a frame.

use crate::state::State;
use std::fmt::Write;

/// The version that clients and monitors are told; the protocol spoken is that of ZooKeeper 3.8.
const VERSION: &str = concat!("3.8.4-basalt-", env!("CARGO_PKG_VERSION"));

/// Whether the first four bytes of a connection are a word rather than a length (which could not be that large).
pub(crate) fn is_word(first: [u8; 4]) -> bool {
    first.iter().all(u8::is_ascii_lowercase)
}

/// The answer to `word`; the connection closes behind it.
pub(crate) fn answer(word: [u8; 4], state: &State) -> String {
    match &word {
        b"ruok" => "imok".to_owned(),
        b"isro" => "rw".to_owned(),
        b"srvr" => server(state, false),
        b"stat" => server(state, true),
        b"mntr" => monitor(state),
        _ => format!("{} is not executed because it is not in the whitelist.\n", String::from_utf8_lossy(&word)),
    }
}

fn server(state: &State, with_clients: bool) -> String {
    let mut out = format!("Zookeeper version: {VERSION}\n");
    if with_clients {
        out.push_str("Clients:\n");
        for peer in state.peers() {
            writeln!(out, " /{peer}[1](queued=0,recved=0,sent=0)").expect("writing to a string");
        }
        out.push('\n');
    }
    write!(
        out,
        "Latency min/avg/max: 0/0.0/0\nReceived: {}\nSent: {}\nConnections: {}\nOutstanding: 0\nZxid: {:#x}\nMode: standalone\nNode count: {}\n",
        state.received,
        state.sent,
        state.connection_count(),
        state.zxid(),
        state.tree.node_count()
    )
    .expect("writing to a string");
    out
}

fn monitor(state: &State) -> String {
    let rows: [(&str, String); 11] = [
        ("version", VERSION.to_owned()),
        ("server_state", "standalone".to_owned()),
        ("packets_received", state.received.to_string()),
        ("packets_sent", state.sent.to_string()),
        ("num_alive_connections", state.connection_count().to_string()),
        ("outstanding_requests", "0".to_owned()),
        ("znode_count", state.tree.node_count().to_string()),
        ("watch_count", state.watch_count().to_string()),
        ("ephemerals_count", state.tree.ephemeral_count().to_string()),
        ("approximate_data_size", state.tree.byte_count().to_string()),
        ("global_sessions", state.sessions.len().to_string()),
    ];
    rows.iter().fold(String::new(), |mut out, (name, value)| {
        writeln!(out, "zk_{name}\t{value}").expect("writing to a string");
        out
    })
}
