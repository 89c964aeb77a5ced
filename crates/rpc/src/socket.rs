//! Options of a connection's socket, alike at both ends.

use std::time::Duration;

use tokio::net::TcpStream;

/// Quiet connections are looked at by the kernel this often.
const KEEPALIVE: Duration = Duration::from_secs(120);

/// Calls and replies leave at once, and a peer that vanished is noticed by the kernel. Between two processes of one machine nothing is paced:
/// there is no network that could be congested. Failing here costs only that.
pub fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let socket = socket2::SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(KEEPALIVE));
    #[cfg(target_os = "linux")]
    if is_within_machine(stream) {
        // What every kernel has; docs/decisions/0016.
        let _ = socket.set_tcp_congestion(b"reno");
    }
}

/// Whether both ends have the same address, which the kernel then reaches without a network.
#[cfg(target_os = "linux")]
fn is_within_machine(stream: &TcpStream) -> bool {
    let (Ok(here), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return false };
    here.ip() == peer.ip()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_within_the_machine_is_not_paced() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        for stream in [client.expect("connected"), accepted.expect("accepted").0] {
            prepare(&stream);
            let used = socket2::SockRef::from(&stream).tcp_congestion().expect("readable");
            assert_eq!(used.split(|byte| *byte == 0).next(), Some(&b"reno"[..]));
            assert!(stream.nodelay().expect("readable"));
        }
    }
}
