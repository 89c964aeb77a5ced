//! Traces of calls: which ports have them, and where they go.

use anyhow::{Context as _, Result};
use base::{Clock, Config, Rng};
use otlp::{Exporter, Options};
use std::sync::Arc;
use std::time::Duration;
use trace::Tracer;

/// How long the stop of a process waits for a collector.
const PATIENCE: Duration = Duration::from_secs(2);

/// What traces the calls of a process, if they are traced.
#[derive(Debug, Default)]
pub struct Tracing(Option<(Arc<Exporter>, Arc<Tracer>)>);

impl Tracing {
    /// As the configuration and the environment say. Needs a Tokio runtime.
    ///
    /// # Errors
    /// A sentence that names the setting: the endpoint is none.
    pub fn start(config: &Config, clock: &Arc<dyn Clock>) -> Result<Tracing> {
        let Some(options) = Options::read(config, |name| std::env::var(name).ok()) else { return Ok(Tracing(None)) };
        let instance = format!("{}:{}", rustix::system::uname().nodename().to_string_lossy(), std::process::id());
        let exporter = Exporter::start(&options, &instance, env!("CARGO_PKG_VERSION"))
            .with_context(|| otlp::settings::ENDPOINT.key)?;
        let tracer = exporter.tracer(&options, clock.clone(), Rng::from_system());
        tracing::info!("tracing calls; spans are exported to {}", options.endpoint);
        Ok(Tracing(Some((exporter, tracer))))
    }

    /// Calls to `port` are traced.
    pub fn trace(&self, port: &rpc::Server) {
        if let Some((_, tracer)) = &self.0 {
            port.trace_by(tracer.clone());
        }
    }

    /// What traces work that is no call to a port.
    pub fn tracer(&self) -> Option<Arc<Tracer>> {
        self.0.as_ref().map(|(_, tracer)| tracer.clone())
    }

    /// Sends what there is.
    pub async fn end(&mut self) {
        if let Some((exporter, _)) = self.0.take() {
            // It waits on its thread for the collector.
            drop(tokio::task::spawn_blocking(move || exporter.shutdown(PATIENCE)).await);
        }
    }
}
