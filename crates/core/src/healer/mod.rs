//! The healer: finishes what a coordinator that never came back cannot finish.
//!
//! **For:** [`decide`] looks at the whole cluster and makes one decision for each object that needs
//! the healer: a node whose coordinator gave no sign, a Lease that no process relies on, a replica
//! of the lock API that is gone.
//! **May touch:** nothing.
//! **Promises:**
//! - Whether a process lives is judged only by whether it writes, timed on the healer's own
//!   monotonic clock ([`HealerMemory`]); never by a time that another process wrote. A new leader
//!   begins to watch anew.
//! - **The Node first, then the Lease.** A coordinator may live and only be cut off. Whatever it
//!   may still send relies on the version of its Node. So the healer writes the Node first, which
//!   makes that write fail, and releases the lock only then (S1).
//! - What it writes on a Node is what the Node's own coordinator would write, by the same code
//!   ([`crate::reboot`]). So nothing is undone that Dogwatch did not do (S3), only a new boot id
//!   proves a reboot (S4), and a reboot that may still come keeps cordon and lock.
//! - Each action carries UID and resourceVersion. After a crash between two actions, the next
//!   leader goes on from the state of the cluster (S5).
//!
//! Source: specification §2.2, §2.4, §2.5 ("The healer") and §2.7.

mod escalation;
mod forecast;
mod healing_case;
mod holding;
mod lease;
mod lock_api;
mod memory;
mod node;
mod snapshot;
mod takeover;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use forecast::{ForecastStep, forecast_steps};
pub use healing_case::{HealerAction, HealerObserve, HealingCase, HealingSubject};
pub use memory::HealerMemory;
pub(crate) use memory::last_coordinator_sign;
pub use snapshot::{
    ApiLockRead, EscalationRecord, HealerObservations, HealerSnapshot, HostRef, NodeRead,
    ObservedNodeHost, ObservedPresence, ObservedReturnGates, needs_healing,
};

use crate::Now;
use crate::reboot;

#[derive(Debug, Clone, PartialEq)]
pub struct HealerConfig {
    /// A coordinator that gave no sign for this long counts as dead.
    pub heal_after: Duration,
    /// An abort that its coordinator has not served for this long is served by the healer.
    pub abort_after: Duration,
    /// A process of the lock API that has not renewed its presence for this long is gone.
    pub presence_after: Duration,
    /// A holder that is not a Node is reported after it has held a lock for this long.
    pub lock_stale_after: Duration,
    /// For what neither a node's policy nor its record says.
    pub flags: reboot::RebootConfig,
}

impl Default for HealerConfig {
    fn default() -> Self {
        Self {
            heal_after: Duration::from_mins(15),
            abort_after: Duration::from_secs(30),
            presence_after: Duration::from_mins(1),
            lock_stale_after: Duration::from_hours(24),
            flags: reboot::RebootConfig::default(),
        }
    }
}

/// What to do for each object that needs the healer, and why. Other objects have no case.
pub fn decide(seen: &HealerSnapshot, config: &HealerConfig, now: Now) -> Vec<HealingCase> {
    let ctx = HealerContext { seen, config, now };
    let nodes = seen
        .nodes
        .values()
        .filter_map(|node| node::decide_node_case(&ctx, node));
    let leases = seen
        .leases
        .values()
        .filter_map(|lease| lease::decide_lease_case(&ctx, lease));
    let presences = seen
        .presences
        .values()
        .filter_map(|presence| lock_api::decide_stale_presence(&ctx, presence));
    nodes.chain(leases).chain(presences).collect()
}

/// The input of every rule.
struct HealerContext<'a> {
    seen: &'a HealerSnapshot,
    config: &'a HealerConfig,
    now: Now,
}

impl HealerContext<'_> {
    /// The monotonic time at which `allowed` will have passed since `from`. `None`: it already has.
    fn deadline_after(&self, from: Duration, allowed: Duration) -> Option<Duration> {
        let at = from.saturating_add(allowed);
        (at > self.now.mono).then_some(at)
    }
}
