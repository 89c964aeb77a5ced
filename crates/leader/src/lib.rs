//! What a master has beside `master` when its region servers are other processes: it is elected, lets servers in, hears their reports, sends
//! them its orders, learns of their deaths from the coordination nodes, has their logs split, and knows in which racks they stand.
//!
//! Always true:
//!  1. Nothing on the volume and no server is touched before the node `master` is this process's, nor when the lease on it has run out.
//!  2. An order has one of three ends: the server reports it, the server says that it has not taken it, or the server is dead. Silence is none:
//!     a region is given to nobody else for it.
//!  3. A server is let open a region for clients only if the master has it there. One that the master takes for dead is told so, whatever it
//!     reports.
//!  4. A dead server's logs are out of its reach before the first of them is read.
//!
//! Must not know: sockets that listen, signals, how a region server is made. Follows: `ServerManager`, `RegionServerTracker`,
//! `RSProcedureDispatcher`, `MasterRpcServices`, `ActiveMasterManager`, `SplitWALManager`, `RackManager`.

mod election;
mod files;
mod group_script;
mod lead;
mod lease;
mod link;
mod logs;
mod orders;
mod port;
mod racks;
mod remote;
mod roll;
mod rows;
mod script;
pub mod settings;
mod status;
mod volume;

pub use election::{ElectionError, become_active, wait_for_active};
pub use lead::{LeadError, Leader, LeaderParts};
pub use port::LeaderPort;
