//! Switches that clients set and ask for. Kept in memory: each is on after a start, as a fresh HBase has them. Where
//! nothing listens to a switch yet (balancer, normalizer), its state is kept all the same.

use std::sync::atomic::{AtomicBool, Ordering};

macro_rules! switches {
    ($($(#[$meta:meta])* $name:ident / $set:ident = $default:literal;)*) => {
        /// The switches.
        #[derive(Debug)]
        pub struct Switches {
            $($name: AtomicBool,)*
        }

        impl Default for Switches {
            fn default() -> Switches {
                Switches { $($name: AtomicBool::new($default),)* }
            }
        }

        impl Switches {
            $(
                $(#[$meta])*
                pub fn $name(&self) -> bool {
                    self.$name.load(Ordering::SeqCst)
                }

                /// Sets it; answers how it was.
                pub fn $set(&self, on: bool) -> bool {
                    self.$name.swap(on, Ordering::SeqCst)
                }
            )*
        }
    };
}

switches! {
    /// Whether regions may be split.
    split / set_split = true;
    /// Whether regions may be merged.
    merge / set_merge = true;
    /// Whether regions may be moved for balance.
    balancer / set_balancer = true;
    /// Whether regions may be split and merged for even sizes.
    normalizer / set_normalizer = true;
    /// Whether split parents are cleaned away.
    janitor / set_janitor = true;
    /// Whether archived files are cleaned away.
    cleaner / set_cleaner = true;
    /// Whether snapshots past their time are cleaned away.
    snapshot_cleanup / set_snapshot_cleanup = true;
    /// Whether quotas of requests count.
    rpc_throttle / set_rpc_throttle = true;
    /// Whether requests may exceed their quotas while there is room.
    exceed_throttle / set_exceed_throttle = false;
}
