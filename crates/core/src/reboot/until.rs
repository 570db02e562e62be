//! How long others leave a node alone that is being rebooted as planned. Source: specification §4.4.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::record::Phase;
use super::seen::{Config, NodeSeen};
use crate::Now;
use crate::name::NodeName;
use crate::policy::{self, Policies};

/// Until when a node at its `rebooting` is not failed: its `rebootTimeout`, counted from `since`, when
/// the caller first saw this attempt stand there. Both are of the caller's monotonic clock: a time that
/// the node wrote would be that of its clock. `None`: it is not at its `rebooting`.
pub fn is_rebooting_until(
    node: &NodeSeen,
    policies: &Policies,
    flags: &Config,
    since: Duration,
) -> Option<Duration> {
    let long = rebooting_timeout(node, policies, flags)?;
    Some(since.saturating_add(long))
}

/// The `rebootTimeout` of a node at its `rebooting`.
fn rebooting_timeout(node: &NodeSeen, policies: &Policies, flags: &Config) -> Option<Duration> {
    let record = node.record.get()?;
    let rule = policy::rule(policies, &node.labels, flags);
    let rebooting = record.phase == Phase::Rebooting;
    rebooting.then_some(rule.config.reboot_timeout)
}

/// What makes it the same attempt: the Node's UID, the phase, its beginning, and the number.
type Attempt = (String, Phase, Timestamp, u32);

/// Since when each node that reboots is where it is.
///
/// What one process watches begin counts by its own clock. What had begun before it looked counts from the
/// time in the Node's record, so that a change of leader grants no more time. That time is of the node's
/// clock: one that is ahead counts as now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RebootsWatched {
    attempts: BTreeMap<NodeName, (Attempt, Begun)>,
    /// All Nodes were seen before: what is new now begins now.
    has_looked: bool,
}

/// When something began.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Begun {
    /// When it was first seen, by this process' monotonic clock.
    seen: Duration,
    /// How long it had lasted then.
    before: Duration,
}

impl RebootsWatched {
    /// These are all Nodes that there are now.
    pub fn saw<'a>(&mut self, nodes: impl IntoIterator<Item = &'a NodeSeen>, now: Now) {
        let has_looked = std::mem::replace(&mut self.has_looked, true);
        let mut known = std::mem::take(&mut self.attempts);
        for node in nodes {
            let Some(attempt) = attempt(node) else {
                continue;
            };
            let known = known.remove(&node.name);
            let same = known.filter(|(before, _)| *before == attempt);
            let begun = same.map_or_else(|| begun(&attempt, has_looked, now), |(_, begun)| begun);
            self.attempts.insert(node.name.clone(), (attempt, begun));
        }
    }

    /// When it will have been for `long` at the phase and attempt that [`Self::saw`] saw last. `None`: the
    /// command cannot have been started.
    pub fn ends(&self, node: &NodeName, long: Duration) -> Option<Duration> {
        let (_, begun) = self.attempts.get(node)?;
        Some(begun.seen.saturating_add(long).saturating_sub(begun.before))
    }

    /// Until when a node at its `rebooting` is not failed: its `rebootTimeout`, since that attempt began.
    /// `None`: it is not at its `rebooting`, or was not seen there.
    pub fn until(&self, node: &NodeSeen, policies: &Policies, flags: &Config) -> Option<Duration> {
        let long = rebooting_timeout(node, policies, flags)?;
        self.ends(&node.name, long)
    }
}

fn begun(attempt: &Attempt, has_looked: bool, now: Now) -> Begun {
    let (_, _, since, _) = attempt;
    let before = if has_looked {
        Duration::ZERO
    } else {
        now.since(*since)
    };
    Begun {
        seen: now.mono,
        before,
    }
}

fn attempt(node: &NodeSeen) -> Option<Attempt> {
    let record = node.record.get()?;
    let begun = record.phase >= Phase::Rebooting;
    begun.then(|| {
        let uid = node.uid.clone();
        (uid, record.phase, record.since, record.attempts)
    })
}
