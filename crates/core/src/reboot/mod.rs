//! The planned reboot of one node: trigger → lock → drain → reboot → return.
//!
//! Source: specification §2.1 to §2.5. [`decide`] starts from facts: the record on the Node, the
//! host's boot id, the Leases, the drain. It remembers nothing between calls.

mod abort;
mod action;
mod draining;
mod fenced;
mod gates;
mod group;
mod holders;
mod idle;
mod instead;
mod memory;
pub mod reason;
mod rebooting;
mod record;
mod report;
mod returning;
mod seen;
mod step;
#[cfg(test)]
mod tests;
mod triggers;
mod undo;
mod until;
mod waiting;

pub use action::{Action, Look, NodePatch, RecordChange};
pub use draining::{dropped as drain_dropped, left as drain_left};
pub use group::{group_of_lease, lock_group};
pub(crate) use instead::{Instead, decide_instead};
pub use memory::{HeldBack, is_scheduled};
pub use rebooting::permitted_for;
pub use record::{
    Abort, Fingerprint, LastReboot, Outcome, Parsed, Phase, Record, Request, Trigger,
};
pub use report::WAITS_FOR_LOCK;
pub use seen::{
    CommandEnd, CommandSeen, Config, CountSeen, DrainSeen, HolderSeen, HostSeen, LockSeen,
    NodeFact, NodeSeen, OnGateTimeout, OnTimeout, Permit, PhaseSeen, RunSeen, Seen, StartGatesSeen,
    TriggerSeen, TriggerState, Wanted,
};
pub use triggers::{served_source, wanted};
pub use until::{RebootsWatched, is_rebooting_until};

use std::time::Duration;

use crate::Now;
use crate::name::BootId;
use crate::policy::{self, Policies};
use step::Step;

/// The decision about one node's reboot.
pub type Decision = crate::Decision<Action, Look>;

/// What to do about this node's reboot, and why.
pub fn decide(seen: &Seen, flags: &Config, now: Now) -> Decision {
    let node = match &seen.node {
        NodeFact::NotYet => {
            return Step::new(reason::NODE_NOT_SEEN, "our Node was not seen yet").bare();
        }
        NodeFact::Gone => {
            let text = format!(
                "Node of {} does not exist; was it deleted?",
                seen.run.holder
            );
            return Step::new(reason::NODE_GONE, text).bare();
        }
        NodeFact::There(node) => node,
    };
    let boot = match &seen.host.boot_id {
        Ok(boot) => boot,
        Err(why) => return report::boot_id_unreadable(why),
    };
    let rule = policy::rule(&seen.policies, &node.labels, flags);
    let ctx = Context {
        seen,
        node,
        boot,
        config: &rule.config,
        rule: &rule,
        now,
    };
    undo::no_late_write(&ctx, step_of(&ctx)).finish(&ctx)
}

/// What every phase's decision is made from.
struct Context<'a> {
    seen: &'a Seen,
    node: &'a NodeSeen,
    boot: &'a BootId,
    /// What holds for this node: the flags, and over them the policy.
    config: &'a Config,
    rule: &'a policy::Rule<'a>,
    now: Now,
}

impl Context<'_> {
    /// How long the record's phase lasts.
    fn passed(&self, record: &Record) -> Duration {
        match self.seen.run.phase {
            Some(phase) if phase.since == record.since => {
                phase.before + self.now.mono.saturating_sub(phase.seen)
            }
            Some(_) | None => self.now.since(record.since),
        }
    }

    /// When the phase will have lasted so long. `None`: it has.
    fn due(&self, record: &Record, allowed: Duration) -> Option<Duration> {
        let left = allowed.saturating_sub(self.passed(record));
        (!left.is_zero()).then(|| self.now.mono + left)
    }
}

fn step_of(ctx: &Context<'_>) -> Step {
    let record = match &ctx.node.record {
        Parsed::Absent => return idle::step(ctx),
        Parsed::Bad { why } => {
            let text = format!(
                "annotation dogwatch.dev/reboot cannot be read ({why}); nothing is done until it is mended or removed"
            );
            return Step::new(reason::RECORD_UNREADABLE, text).warn();
        }
        Parsed::Is(record) => record,
    };
    if record.run != ctx.seen.run.id {
        return adopt(ctx, record);
    }
    if record.phase < Phase::Returning && record.boot_id != *ctx.boot {
        return returning::begin(ctx, record);
    }
    if matches!(ctx.seen.policies, Policies::NotYet) {
        // They say which group's lock this is, and how long everything may take.
        return Step::new(reason::LOOKING_AT_POLICIES, "looking at the RebootPolicies");
    }
    if ctx.node.abort != Parsed::Absent {
        return abort::step(ctx, record);
    }
    if let Some(step) = fenced::hold(ctx, record) {
        return step;
    }
    match record.phase {
        Phase::Waiting => waiting::step(ctx, record),
        Phase::Draining => draining::step(ctx, record),
        Phase::Rebooting => rebooting::step(ctx, record),
        Phase::Returning => returning::step(ctx, record),
    }
}

/// Another run owns the record: an older one, unless we have owned it ourselves.
fn adopt(ctx: &Context<'_>, record: &Record) -> Step {
    let by = record.run.to_string();
    if ctx.seen.run.owned.is_some() {
        let text = format!("run {by} of this node's coordinator has taken over");
        return Step::new(reason::SUPERSEDED, text).act(Action::Stop { by });
    }
    let record = Record {
        run: ctx.seen.run.id.clone(),
        ..record.clone()
    };
    Step::new(
        reason::ADOPTING,
        format!("taking over phase {} from run {by}", record.phase.as_str()),
    )
    .patch(ctx, record)
}
