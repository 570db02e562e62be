//! The healer: what a coordinator that never came back cannot finish.
//!
//! **For:** [`decide`] looks at the whole cluster and makes one decision for each object that needs
//! somebody: a node whose coordinator gave no sign, a Lease that nobody stands behind, a replica of
//! the lock API that is gone.
//! **May touch:** nothing.
//! **Promises:**
//! - Whether somebody lives is told by watching whether it writes, on the healer's own monotonic
//!   clock ([`Memory`]); never by a time that somebody else wrote. A new leader begins to watch anew.
//! - **The Node first, then the Lease.** A coordinator may live and only be cut off. Whatever it may
//!   still send relies on the version of its Node; so the Node is written first, which makes that
//!   write fail, and only then its lock is given away (S1).
//! - What it writes on a Node is what the Node's own coordinator would write: the same code
//!   ([`crate::reboot`]), so nothing is undone that we did not do (S3), a reboot is proved by a new
//!   boot id only (S4), and a reboot that may still come keeps cordon and lock.
//! - Each action carries UID and resourceVersion, and can be stopped after any of them: the next
//!   leader goes on from what stands on the cluster (S5).
//!
//! Source: specification §2.2, §2.4, §2.5 ("The healer") and §2.7.

mod api;
mod case;
mod escalate;
mod foresee;
mod instead;
mod lease;
mod memory;
mod node;
pub mod reason;
mod seen;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use case::{Action, Case, Look, Subject};
pub use foresee::{Step, foresee};
pub use memory::Memory;
pub(crate) use memory::last_sign;
pub use seen::{
    ApiRead, Escalated, GatesSeen, HostRef, HostsSeen, Looked, NodeRead, PresenceSeen, Seen,
    concerns,
};

use crate::Now;
use crate::reboot;

/// What the healer was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// A coordinator that gave no sign for so long is taken for dead.
    pub heal_after: Duration,
    /// A person's abort that was not served for so long is served by the healer.
    pub abort_after: Duration,
    /// A process of the lock API that has not renewed its presence for so long is gone.
    pub presence_after: Duration,
    /// A holder that is no Node and holds for so long is reported.
    pub lock_stale_after: Duration,
    /// The coordinators' flags; a node's policy goes before them.
    pub flags: reboot::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heal_after: Duration::from_mins(15),
            abort_after: Duration::from_secs(30),
            presence_after: Duration::from_mins(1),
            lock_stale_after: Duration::from_hours(24),
            flags: reboot::Config::default(),
        }
    }
}

/// What to do for each object that needs somebody, and why. Objects that need nobody have no case.
pub fn decide(seen: &Seen, config: &Config, now: Now) -> Vec<Case> {
    let ctx = Context { seen, config, now };
    let nodes = seen
        .nodes
        .values()
        .filter_map(|node| node::case(&ctx, node));
    let leases = seen
        .leases
        .values()
        .filter_map(|lease| lease::case(&ctx, lease));
    let presences = seen
        .presences
        .values()
        .filter_map(|presence| api::presence(&ctx, presence));
    nodes.chain(leases).chain(presences).collect()
}

/// What every rule is decided from.
struct Context<'a> {
    seen: &'a Seen,
    config: &'a Config,
    now: Now,
}

impl Context<'_> {
    /// When `allowed` will have passed since `from`. `None`: it has.
    fn due(&self, from: Duration, allowed: Duration) -> Option<Duration> {
        let at = from.saturating_add(allowed);
        (at > self.now.mono).then_some(at)
    }
}
