//! How long other parts leave a node alone while it reboots as planned. Source: specification §4.4.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::config::RebootConfig;
use super::reboot_limits::flags_of_coordinator;
use super::record::RebootPhase;
use super::snapshot::ObservedNode;
use crate::Now;
use crate::name::NodeName;
use crate::policy::{self, ClusterPolicies};

/// The time until which a node in phase `rebooting` does not count as failed: `since` plus its
/// `rebootTimeout`. `since` is when the caller first saw this attempt. Both are on the caller's
/// monotonic clock, because a time written by the node would be on the node's clock. `None`: the
/// node is not in phase `rebooting`.
pub fn rebooting_deadline_since(
    node: &ObservedNode,
    policies: &ClusterPolicies,
    flags: &RebootConfig,
    since: Duration,
) -> Option<Duration> {
    let long = rebooting_timeout(node, policies, flags)?;
    Some(since.saturating_add(long))
}

/// The `rebootTimeout` of a node in phase `rebooting`: its policy's, else the one in its record, else
/// that of `flags`.
fn rebooting_timeout(
    node: &ObservedNode,
    policies: &ClusterPolicies,
    flags: &RebootConfig,
) -> Option<Duration> {
    let record = node.record.get()?;
    if record.phase != RebootPhase::Rebooting {
        return None;
    }
    let flags = flags_of_coordinator(node, flags);
    let rule = policy::resolve_policy(policies, &node.labels, &flags);
    Some(rule.config.reboot_timeout)
}

/// Identifies an attempt: the Node's UID, the phase, its beginning, and the attempt's number.
type RebootAttempt = (String, RebootPhase, Timestamp, u32);

/// Since when each rebooting node has been in its phase and attempt.
///
/// A phase that begins while this process watches is timed by its own clock. One that began earlier
/// is timed from the record on the Node, so that a change of leader grants no extra time. That time
/// is on the node's clock; a time in the future counts as now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WatchedReboots {
    attempts: BTreeMap<NodeName, (RebootAttempt, AttemptStart)>,
    /// All Nodes were seen before, so an attempt that is new now begins now.
    has_looked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct AttemptStart {
    /// When it was first seen, by this process' monotonic clock.
    seen: Duration,
    /// How long it had lasted then.
    before: Duration,
}

impl WatchedReboots {
    /// Takes all Nodes that exist now.
    pub fn observe_nodes<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a ObservedNode>,
        now: Now,
    ) {
        let has_looked = std::mem::replace(&mut self.has_looked, true);
        let mut known = std::mem::take(&mut self.attempts);
        for node in nodes {
            let Some(attempt) = current_attempt(node) else {
                continue;
            };
            let known = known.remove(&node.name);
            let same = known.filter(|(before, _)| *before == attempt);
            let begun = same.map_or_else(
                || attempt_start(&attempt, has_looked, now),
                |(_, begun)| begun,
            );
            self.attempts.insert(node.name.clone(), (attempt, begun));
        }
    }

    /// When the phase and attempt that [`Self::observe_nodes`] saw last will have lasted `long`.
    /// `None`: the command cannot have been started.
    pub fn phase_ends_at(&self, node: &NodeName, long: Duration) -> Option<Duration> {
        let (_, begun) = self.attempts.get(node)?;
        Some(begun.seen.saturating_add(long).saturating_sub(begun.before))
    }

    /// The time until which a node in phase `rebooting` does not count as failed: `rebootTimeout`
    /// after the attempt began. `None`: the node is not in phase `rebooting`, or was not seen in
    /// it.
    pub fn rebooting_deadline(
        &self,
        node: &ObservedNode,
        policies: &ClusterPolicies,
        flags: &RebootConfig,
    ) -> Option<Duration> {
        let long = rebooting_timeout(node, policies, flags)?;
        self.phase_ends_at(&node.name, long)
    }
}

fn attempt_start(attempt: &RebootAttempt, has_looked: bool, now: Now) -> AttemptStart {
    let (_, _, since, _) = attempt;
    let before = if has_looked {
        Duration::ZERO
    } else {
        now.elapsed_since(*since)
    };
    AttemptStart {
        seen: now.mono,
        before,
    }
}

fn current_attempt(node: &ObservedNode) -> Option<RebootAttempt> {
    let record = node.record.get()?;
    let begun = record.phase >= RebootPhase::Rebooting;
    begun.then(|| {
        let uid = node.uid.clone();
        (uid, record.phase, record.since, record.attempts)
    })
}
