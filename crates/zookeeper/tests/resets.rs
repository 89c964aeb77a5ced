//! Over the embedded ensemble, behind a road that breaks.

use basalt_zookeeper::{Claim, Ensemble, Options, Security};
use base::{Config, Rng, SystemClock};
use coordination::{Endpoint, EndpointOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Carries what clients and the ensemble say, until it is told to reset every connection.
async fn carry(listener: TcpListener, to: SocketAddr, resets: watch::Receiver<u32>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let mut resets = resets.clone();
        resets.mark_unchanged();
        tokio::spawn(async move {
            let Ok(mut server) = TcpStream::connect(to).await else { return };
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                _ = resets.changed() => {}
            }
            // With a reset, not with an orderly end: as when the process of a ZooKeeper server is killed.
            let _ = client.set_zero_linger();
        });
    }
}

/// Region servers and masters ended by themselves when the ZooKeeper server was killed that they were connected to, though their sessions lived.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_reset_is_no_end_of_a_session() {
    let options = EndpointOptions::from_config(&Config::default());
    let endpoint = Endpoint::bind(anywhere(), options, Arc::new(SystemClock::new()), Arc::new(Rng::seeded(1)));
    let endpoint = endpoint.await.expect("bound");
    let ensemble = endpoint.local_addr().expect("its address");
    let serving = tokio::spawn(endpoint.run(std::future::pending()));
    let listener = TcpListener::bind(anywhere()).await.expect("bound");
    let connect = listener.local_addr().expect("its address").to_string();
    let (reset, resets) = watch::channel(0);
    let carrying = tokio::spawn(carry(listener, ensemble, resets));

    let session =
        Ensemble::connect(Options { connect, session_timeout: Duration::from_secs(20), security: Security::default() })
            .await;
    let session = Arc::new(session.expect("a session"));
    assert_eq!(session.claim("/own", b"1").await.expect("an answer"), Claim::Ours);
    for n in 1..12 {
        let asking = tokio::spawn({
            let session = session.clone();
            async move {
                for _ in 0..20 {
                    let seen = session.latest_value("/own").await.expect("the session lives");
                    assert_eq!(seen.as_deref(), Some(&b"1"[..]));
                }
            }
        });
        // In the midst of it.
        session.latest_value("/own").await.expect("the session lives");
        reset.send_replace(n);
        asking.await.expect("no panic");
    }
    carrying.abort();
    serving.abort();
}
