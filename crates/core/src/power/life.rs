//! Whether the Node that a host carries gives signs of life while its BMC says "off". One of the two is wrong then:
//! nothing is sent, nothing is proved, and it is said. Source: specification §3.2, "The plain rule".

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::annotations::listed;
use super::context::Context;
use super::decide::Look;
use super::reason;
use super::step::Step;
use crate::condition::Status;
use crate::decision::Severity;
use crate::name::NodeName;

/// How often the Leases are read while it is not known whether they move: kubelets renew theirs as often.
const WATCHED_EVERY: Duration = Duration::from_secs(10);

/// A kubelet that lives renews its Lease each quarter of `leaseDurationSeconds`: each 10 s by its default of
/// 40 s. In this time it would have missed two renewals in a row. Source: Kubernetes, the kubelet's node lease.
const SILENCE: Duration = Duration::from_secs(25);
/// Two and a half quarters, where a Lease says that it is renewed less often; in eighths of its duration.
const EIGHTHS: u32 = 5;
/// The kubelet writes its own Lease: nothing that it says there holds anything up for longer.
const LONGEST_SILENCE: Duration = Duration::from_mins(5);

/// How long a kubelet has to be silent until that says by itself that it does not run; its Lease says to last so
/// long. One that is not there is made anew by a kubelet that lives, so that this holds for it as well.
pub(crate) fn silence_of(lease_lasts: Option<Duration>) -> Duration {
    let lasts = lease_lasts.unwrap_or_default();
    let missed = lasts.saturating_mul(EIGHTHS) / 8;
    missed.clamp(SILENCE, LONGEST_SILENCE)
}

/// The Lease of a Node in `kube-node-lease`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeLease {
    /// `spec.renewTime`; only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`: the kubelet renews it four times as often.
    pub lasts: Option<Duration>,
}

/// What was read of the Nodes that a host carries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignsOfLife {
    /// By Node; a Lease that is not there has no time.
    pub leases: BTreeMap<NodeName, NodeLease>,
    /// Why some of it cannot be read by us, for a person.
    pub unread: Option<String>,
}

/// What was read over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeSeen {
    /// When the newest was asked.
    asked: Duration,
    newest: SignsOfLife,
    /// When the first was asked that said what the newest says.
    same_since: Duration,
    /// The newest change: when the answer before it was asked, and which Node's Lease it was.
    moved: Option<(Duration, NodeName)>,
}

impl LifeSeen {
    /// Takes in an answer that was asked then.
    pub(super) fn saw(known: Option<Self>, asked: Duration, signs: SignsOfLife) -> Self {
        let Some(known) = known else {
            return Self {
                asked,
                newest: signs,
                same_since: asked,
                moved: None,
            };
        };
        let moved = moved(&known.newest, &signs);
        let is_same = known.newest.leases == signs.leases;
        Self {
            asked,
            newest: signs,
            same_since: if is_same { known.same_since } else { asked },
            moved: moved.map(|node| (known.asked, node)).or(known.moved),
        }
    }
}

/// The Node whose Lease was renewed between the two. A Lease that came or went was not.
fn moved(old: &SignsOfLife, new: &SignsOfLife) -> Option<NodeName> {
    let renewed = |(node, lease): (&NodeName, &NodeLease)| {
        let before = old.leases.get(node)?.renewed?;
        let is_renewed = lease.renewed.is_some_and(|now| now != before);
        is_renewed.then(|| node.clone())
    };
    new.leases.iter().find_map(renewed)
}

/// What is known of the Nodes, since the level has said off without a break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Life {
    /// It carries no Node that is known, or none that we may ask about.
    NoNode,
    /// Not watched for long enough: to be read again then.
    NotKnown { next: Duration },
    /// Silent for as long as one that lives never is.
    Silent,
    /// This Node renewed its Lease.
    Lives(NodeName),
}

impl Context<'_> {
    pub(super) fn node_life(&self) -> Life {
        let off_since = self.seen.memory.off_since.get(self.level()).copied();
        let next = self.now.mono;
        let (Some(off_since), Some(seen)) = (off_since, &self.seen.memory.life) else {
            return Life::NotKnown { next };
        };
        if seen.asked < off_since {
            return Life::NotKnown { next };
        }
        if seen.newest.leases.is_empty() {
            return Life::NoNode;
        }
        let silent_at = off_since.max(seen.same_since) + silence(&seen.newest);
        match &seen.moved {
            _ if seen.asked >= silent_at => Life::Silent,
            Some((after, node)) if *after >= off_since => Life::Lives(node.clone()),
            Some(_) | None => Life::NotKnown {
                next: silent_at.min(seen.asked + self.config.poll.min(WATCHED_EVERY)),
            },
        }
    }

    /// The level in use says off, and a Node that the host carries lives.
    pub(super) fn living_node(&self) -> Option<NodeName> {
        let newest = self.newest(self.level())?;
        match self.node_life() {
            Life::Lives(node) if newest.is_off() => Some(node),
            Life::Lives(_) | Life::NoNode | Life::NotKnown { .. } | Life::Silent => None,
        }
    }

    /// Why it is not known whether its Nodes live, if we may not read that.
    pub(super) fn unread_life(&self) -> Option<&str> {
        let seen = self.seen.memory.life.as_ref()?;
        seen.newest.unread.as_deref()
    }
}

/// The longest that one of these kubelets is silent while it lives.
fn silence(signs: &SignsOfLife) -> Duration {
    let of = |lease: &NodeLease| silence_of(lease.lasts);
    signs.leases.values().map(of).max().unwrap_or_default()
}

/// Reads the Leases, soon while it is not known whether they move, else at each poll.
pub(super) fn look(ctx: &Context<'_>, step: &mut Step) {
    let asked = ctx.seen.memory.life.as_ref().map(|seen| seen.asked);
    let at_poll = asked.map_or(ctx.now.mono, |asked| asked + ctx.config.poll);
    let due = match ctx.node_life() {
        Life::NotKnown { next } => next,
        Life::NoNode | Life::Silent => at_poll,
        Life::Lives(_) => at_poll.min(asked.unwrap_or_default() + WATCHED_EVERY * 3),
    };
    ask(ctx, step, due);
}

fn ask(ctx: &Context<'_>, step: &mut Step, due: Duration) {
    if due > ctx.now.mono {
        return step.wake(due, "the next look at the Node's signs of life");
    }
    if !step.looks.contains(&Look::SignsOfLife) {
        step.looks.push(Look::SignsOfLife);
    }
}

/// The same of a host that is held off by our own command: at polls, for nobody waits for it.
pub(super) fn look_at_polls(ctx: &Context<'_>, step: &mut Step) {
    let asked = ctx.seen.memory.life.as_ref().map(|seen| seen.asked);
    let off_since = ctx.seen.memory.off_since.get(ctx.level()).copied();
    if let Some(newest) = asked.max(off_since) {
        ask(ctx, step, newest + ctx.config.poll);
    }
}

/// Says that the BMC and the Node contradict each other.
pub(super) fn contradicted(ctx: &Context<'_>, step: &mut Step, node: &NodeName) {
    let text = contradiction(node);
    step.event(Severity::Warning, reason::POWER_CONTRADICTED, text.clone());
    step.because(Status::Unknown, reason::POWER_CONTRADICTED, text);
    look(ctx, step);
}

/// A sentence, with what a person does.
pub(super) fn contradiction(node: &NodeName) -> String {
    format!(
        "its BMC says off, and node {node}, which it carries, has renewed its Lease since; nothing is sent and nothing is released: correct the host's BMC address or its link to the Node, or reset the BMC"
    )
}

/// Whom a host is waited for, in a sentence.
pub(super) fn names(ctx: &Context<'_>) -> String {
    let seen = ctx.seen.memory.life.iter();
    let nodes: Vec<&str> = seen
        .flat_map(|seen| seen.newest.leases.keys())
        .map(NodeName::as_str)
        .collect();
    listed(&nodes)
}
