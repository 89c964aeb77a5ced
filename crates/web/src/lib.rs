//! The status pages: an HTTP port that shows what the process is doing, to people (`/master-status`), to monitoring
//! (`/jmx`, `/prometheus`), and to whoever asks whether it lives (`/healthz`).
//!
//! Always true:
//!  1. The pages only read. The one thing that can be changed is which parts log from which level on, by a POST that brings along what a
//!     page of this process has in it; every other method but GET and HEAD is refused.
//!  2. Text that comes from outside (table names, keys, settings) is escaped by the type that writes it.
//!  3. A slow or hostile peer costs one bounded connection for a bounded time.
//!
//! Must not know: where the numbers come from. It sees a [`StatusSource`], the plain values of [`status`], and samples of metrics that are
//! registered where they arise ([`base::metrics`]). What takes a moment to find out comes from its [`Details`].
//! Follows: `InfoServer`, `JMXJsonServlet`, `PrometheusHadoopServlet`, `ConfServlet`.

mod beans;
mod conf;
pub mod details;
mod jmx;
mod markup;
mod object_name;
mod page;
mod prometheus;
mod query;
mod rates;
mod server;
pub mod settings;
mod site;
pub mod status;

pub use details::Details;
pub use server::Server;
pub use status::{Status, StatusSource};
