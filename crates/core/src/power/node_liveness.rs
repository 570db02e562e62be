//! Checks whether a host's Node is alive while the BMC says "off". One of the two is wrong then:
//! nothing is sent, nothing is proved, and the contradiction is reported. Source: specification
//! §3.2, "The plain rule".

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::PowerReason;
use super::annotations::format_names;
use super::context::PowerContext;
use super::decide::PowerObserve;
use super::step::PowerStep;
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;
use crate::name::NodeName;

/// How often the Leases are read while it is unknown whether kubelets renew them: as often as
/// kubelets do.
const LEASE_READ_INTERVAL: Duration = Duration::from_secs(10);

/// A live kubelet renews its Lease every quarter of `leaseDurationSeconds`: every 10 s with the
/// default of 40 s. In 25 s it would miss two renewals in a row. Source: Kubernetes, the kubelet's
/// node lease.
const MIN_SILENCE: Duration = Duration::from_secs(25);
/// Two and a half quarters of the Lease's duration, in eighths: for Leases that last longer.
const SILENCE_EIGHTHS_OF_LEASE: u32 = 5;
/// A kubelet with the default Lease renews it every 10 s, with a jitter of 4 %.
const MIN_MISSED_RENEWAL: Duration = Duration::from_secs(12);
/// The kubelet writes its own Lease: whatever duration it writes delays Dogwatch no longer than
/// this.
const MAX_SILENCE: Duration = Duration::from_mins(5);

/// How long a kubelet whose Lease lasts `lease_lasts` must be silent before the silence alone shows
/// that it does not run. This holds for a missing Lease too: a live kubelet creates it anew.
pub(crate) fn required_silence(lease_lasts: Option<Duration>) -> Duration {
    let lasts = lease_lasts.unwrap_or_default();
    let missed = lasts.saturating_mul(SILENCE_EIGHTHS_OF_LEASE) / 8;
    missed.clamp(MIN_SILENCE, MAX_SILENCE)
}

/// How long a kubelet whose Lease lasts `lease_lasts` must be silent to have missed one renewal:
/// a quarter of the Lease's duration, and a fifth of that for its jitter and the API server.
pub(crate) fn missed_renewal(lease_lasts: Option<Duration>) -> Duration {
    let interval = lease_lasts.unwrap_or_default() / 4;
    (interval * 6 / 5).clamp(MIN_MISSED_RENEWAL, MAX_SILENCE)
}

/// A Node's Lease in `kube-node-lease`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KubeletLease {
    /// `spec.renewTime`; only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`: the kubelet renews the Lease four times in this time.
    pub lasts: Option<Duration>,
}

/// One read of the kubelet Leases of a host's Nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KubeletLeases {
    /// By Node. A missing Lease has no time.
    pub leases: BTreeMap<NodeName, KubeletLease>,
    /// Why Dogwatch could not read some of them, for a person.
    pub unread: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeletLeaseHistory {
    /// When the newest read was requested.
    asked: Duration,
    newest: KubeletLeases,
    /// When the first read was requested that showed the same as the newest.
    same_since: Duration,
    /// The newest renewal: when the read before it was requested, and of which Node.
    moved: Option<(Duration, NodeName)>,
}

impl KubeletLeaseHistory {
    /// Adds a read that was requested at `asked`.
    pub(super) fn updated_with(known: Option<Self>, asked: Duration, signs: KubeletLeases) -> Self {
        let Some(known) = known else {
            return Self {
                asked,
                newest: signs,
                same_since: asked,
                moved: None,
            };
        };
        let moved = find_renewed_node(&known.newest, &signs);
        let is_same = known.newest.leases == signs.leases;
        Self {
            asked,
            newest: signs,
            same_since: if is_same { known.same_since } else { asked },
            moved: moved.map(|node| (known.asked, node)).or(known.moved),
        }
    }
}

/// The Node whose Lease was renewed between the reads. A Lease that appeared or vanished is no
/// renewal.
fn find_renewed_node(old: &KubeletLeases, new: &KubeletLeases) -> Option<NodeName> {
    let renewed = |(node, lease): (&NodeName, &KubeletLease)| {
        let before = old.leases.get(node)?.renewed?;
        let is_renewed = lease.renewed.is_some_and(|now| now != before);
        is_renewed.then(|| node.clone())
    };
    new.leases.iter().find_map(renewed)
}

/// The state of the host's Nodes since the level began to say off without a break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeLiveness {
    /// No Node of the host is known, or none whose Lease Dogwatch may read.
    NoNode,
    /// Not watched for long enough; read again at `next`.
    NotKnown { next: Duration },
    /// Silent for longer than a live kubelet ever is.
    Silent,
    /// This Node renewed its Lease.
    Lives(NodeName),
}

impl PowerContext<'_> {
    pub(super) fn node_liveness(&self) -> NodeLiveness {
        let off_since = self.seen.memory.off_since.get(self.level_in_use()).copied();
        let next = self.now.mono;
        let (Some(off_since), Some(seen)) = (off_since, &self.seen.memory.kubelet_leases) else {
            return NodeLiveness::NotKnown { next };
        };
        if seen.asked < off_since {
            return NodeLiveness::NotKnown { next };
        }
        if seen.newest.leases.is_empty() {
            return NodeLiveness::NoNode;
        }
        let silent_at = off_since.max(seen.same_since) + longest_required_silence(&seen.newest);
        match &seen.moved {
            _ if seen.asked >= silent_at => NodeLiveness::Silent,
            Some((after, node)) if *after >= off_since => NodeLiveness::Lives(node.clone()),
            Some(_) | None => NodeLiveness::NotKnown {
                next: silent_at.min(seen.asked + self.config.poll.min(LEASE_READ_INTERVAL)),
            },
        }
    }

    /// A Node of the host that is alive although the level in use says off.
    pub(super) fn living_node(&self) -> Option<NodeName> {
        let newest = self.newest_reading(self.level_in_use())?;
        match self.node_liveness() {
            NodeLiveness::Lives(node) if newest.is_off() => Some(node),
            NodeLiveness::Lives(_)
            | NodeLiveness::NoNode
            | NodeLiveness::NotKnown { .. }
            | NodeLiveness::Silent => None,
        }
    }

    /// Why it is unknown whether the host's Nodes live, if Dogwatch may not read their Leases.
    pub(super) fn unread_leases_reason(&self) -> Option<&str> {
        let seen = self.seen.memory.kubelet_leases.as_ref()?;
        seen.newest.unread.as_deref()
    }
}

/// The largest [`required_silence`] of these kubelets.
fn longest_required_silence(signs: &KubeletLeases) -> Duration {
    let of = |lease: &KubeletLease| required_silence(lease.lasts);
    signs.leases.values().map(of).max().unwrap_or_default()
}

/// Reads the Leases: often while it is unknown whether they are renewed, otherwise at each poll.
pub(super) fn observe_liveness(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let asked = ctx
        .seen
        .memory
        .kubelet_leases
        .as_ref()
        .map(|seen| seen.asked);
    let at_poll = asked.map_or(ctx.now.mono, |asked| asked + ctx.config.poll);
    let due = match ctx.node_liveness() {
        NodeLiveness::NotKnown { next } => next,
        NodeLiveness::NoNode | NodeLiveness::Silent => at_poll,
        NodeLiveness::Lives(_) => at_poll.min(asked.unwrap_or_default() + LEASE_READ_INTERVAL * 3),
    };
    request_lease_read(ctx, step, due);
}

fn request_lease_read(ctx: &PowerContext<'_>, step: &mut PowerStep, due: Duration) {
    if due > ctx.now.mono {
        return step.wake_at(due, "the next look at the Node's heartbeats");
    }
    if !step.observe.contains(&PowerObserve::KubeletLeases) {
        step.observe.push(PowerObserve::KubeletLeases);
    }
}

/// Reads the Leases of a host that Dogwatch holds off: only at polls, because nobody waits for it.
pub(super) fn observe_liveness_at_polls(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let asked = ctx
        .seen
        .memory
        .kubelet_leases
        .as_ref()
        .map(|seen| seen.asked);
    let off_since = ctx.seen.memory.off_since.get(ctx.level_in_use()).copied();
    if let Some(newest) = asked.max(off_since) {
        request_lease_read(ctx, step, newest + ctx.config.poll);
    }
}

/// Reports that the BMC and the Node contradict each other.
pub(super) fn report_contradiction(ctx: &PowerContext<'_>, step: &mut PowerStep, node: &NodeName) {
    let text = contradiction_message(node);
    step.add_event(
        EventSeverity::Warning,
        PowerReason::PowerContradicted,
        text.clone(),
    );
    step.set_cause(
        ConditionStatus::Unknown,
        PowerReason::PowerContradicted,
        text,
    );
    observe_liveness(ctx, step);
}

/// The sentence tells a person what to do.
pub(super) fn contradiction_message(node: &NodeName) -> String {
    format!(
        "its BMC reports off, but node {node}, which runs on it, has renewed its Lease since then; Dogwatch sends no \
         command and releases nothing: correct the host's BMC address or its link to the Node, or reset the BMC"
    )
}

/// The names of the Nodes that the host waits for, for a sentence.
pub(super) fn format_node_names(ctx: &PowerContext<'_>) -> String {
    let seen = ctx.seen.memory.kubelet_leases.iter();
    let nodes: Vec<&str> = seen
        .flat_map(|seen| seen.newest.leases.keys())
        .map(NodeName::as_str)
        .collect();
    format_names(&nodes)
}
