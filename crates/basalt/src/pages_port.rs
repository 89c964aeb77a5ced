//! The port of status pages of a process that does one thing: a gateway, a master, a region server.

use crate::ports::port_error;
use anyhow::Result;
use base::{Clock, Config};
use std::net::SocketAddr;
use std::sync::Arc;
use web::StatusSource;
use web::settings::MetricsPages;

/// What the pages are of, in words, and the key of their port.
pub type Of = (&'static str, &'static str);

/// Opens it; `None` where none are wanted (`number` is none of a port), or the configuration does not name the port and it is another's.
///
/// # Errors
/// A port that is asked for cannot be had.
pub fn bind(
    config: &Config,
    (what, key): Of,
    number: i32,
    address_of: impl FnOnce(u16) -> Result<SocketAddr>,
    source: Arc<dyn StatusSource>,
    clock: Arc<dyn Clock>,
) -> Result<Option<web::Server>> {
    let Ok(number) = u16::try_from(number) else { return Ok(None) };
    let address = address_of(number)?;
    match web::Server::bind_with(address, source, clock, MetricsPages::from_config(config)) {
        Ok(server) => Ok(Some(server)),
        Err(error) if !config.is_set(key) => {
            tracing::info!(
                "no status pages: cannot listen on {address}: {error}; set {key} to another port, or to -1 for none"
            );
            Ok(None)
        }
        Err(error) => Err(port_error(what, key, address, &error)),
    }
}
