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
    let record = node.record.get()?;
    let rule = policy::rule(policies, &node.labels, flags);
    let rebooting = record.phase == Phase::Rebooting;
    rebooting.then(|| since.saturating_add(rule.config.reboot_timeout))
}

/// What makes it the same attempt: the Node's UID, the phase, its beginning, and the number.
type Attempt = (String, Phase, Timestamp, u32);

/// Since when each node that reboots is where it is, as one process has watched it. Whoever leads next
/// begins anew, and so waits longer at the most.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RebootsWatched {
    attempts: BTreeMap<NodeName, (Attempt, Duration)>,
}

impl RebootsWatched {
    /// These are all Nodes that there are now.
    pub fn saw<'a>(&mut self, nodes: impl IntoIterator<Item = &'a NodeSeen>, now: Now) {
        let mut known = std::mem::take(&mut self.attempts);
        for node in nodes {
            let Some(attempt) = attempt(node) else {
                continue;
            };
            let before = known.remove(&node.name);
            let same = before.filter(|(before, _)| *before == attempt);
            let since = same.map_or(now.mono, |(_, since)| since);
            self.attempts.insert(node.name.clone(), (attempt, since));
        }
    }

    /// Since when it is at the phase and attempt that [`Self::saw`] saw last. `None`: the command
    /// cannot have been started.
    pub fn since(&self, node: &NodeName) -> Option<Duration> {
        self.attempts.get(node).map(|(_, since)| *since)
    }

    /// [`is_rebooting_until`], by what was watched.
    pub fn until(&self, node: &NodeSeen, policies: &Policies, flags: &Config) -> Option<Duration> {
        is_rebooting_until(node, policies, flags, self.since(&node.name)?)
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
