//! Checks that no reboot begins, and no reboot command starts, against the policy of that moment.
//!
//! Policies, labels and true time of that moment count. A coordinator may act on an older view: it
//! is enough that the policy allowed it within [`PolicyCheck::slack`], which also covers a clock
//! that is wrong by that much.

use std::collections::BTreeMap;

use dogwatch_core::policy::{
    self, ClusterPolicies, EffectivePolicy, MinInterval, Policy, RebootAllowance,
};
use dogwatch_core::reboot::RebootConfig;
use jiff::{SignedDuration, Timestamp};

use super::super::object_views::NodeView;
use super::value_history::ValueHistory;

/// The labels of one node, with the times of their changes.
type LabelHistory = ValueHistory<BTreeMap<String, String>>;

#[derive(Debug)]
pub(super) struct PolicyCheck {
    flags: RebootConfig,
    policies: ValueHistory<ClusterPolicies>,
    labels: BTreeMap<String, LabelHistory>,
    /// How old a coordinator's view may be, and how wrong its clock.
    pub(super) slack: SignedDuration,
}

impl PolicyCheck {
    pub(super) fn with_flags(flags: RebootConfig) -> Self {
        Self {
            flags,
            policies: ValueHistory::starting_with(ClusterPolicies::Known(Vec::new())),
            labels: BTreeMap::new(),
            slack: SignedDuration::ZERO,
        }
    }

    pub(super) fn current_policies(&self) -> &ClusterPolicies {
        self.policies.newest_value()
    }

    /// The rule for a node with these labels now.
    pub(super) fn current_rule(&self, labels: &BTreeMap<String, String>) -> EffectivePolicy<'_> {
        policy::resolve_policy(self.current_policies(), labels, &self.flags)
    }

    pub(super) fn record_policies(&mut self, at: Timestamp, all: Vec<Policy>) {
        self.policies.record_value(at, ClusterPolicies::Known(all));
    }

    pub(super) fn record_labels(
        &mut self,
        at: Timestamp,
        node: &str,
        labels: &BTreeMap<String, String>,
    ) {
        match self.labels.get_mut(node) {
            None => {
                let past = ValueHistory::starting_with(labels.clone());
                self.labels.insert(node.to_owned(), past);
            }
            Some(past) if past.newest_value() != labels => past.record_value(at, labels.clone()),
            Some(_) => {}
        }
    }

    /// Returns why a reboot must not begin at `at`.
    pub(super) fn begin_refusal(
        &self,
        name: &str,
        node: &NodeView,
        at: Timestamp,
    ) -> Option<String> {
        if node.api_lock {
            return Some("the lock API has locked it".into());
        }
        let interval = MinInterval::since_last_reboot(node.last.as_ref());
        self.find_refusal(name, at, |policies, rule, at| {
            policy::may_reboot_begin(
                policies,
                rule.policy,
                rule.config.longest_drain(),
                interval,
                node.rollout_candidate(name),
                at,
            )
        })
    }

    /// Returns why the command must not start at `at`.
    pub(super) fn command_refusal(&self, name: &str, at: Timestamp) -> Option<String> {
        self.find_refusal(name, at, |policies, rule, at| {
            policy::may_reboot_continue(policies, rule.policy, at)
        })
    }

    /// `None` if any state within the slack allows it.
    fn find_refusal(
        &self,
        node: &str,
        at: Timestamp,
        ask: impl Fn(&ClusterPolicies, &EffectivePolicy<'_>, Timestamp) -> RebootAllowance,
    ) -> Option<String> {
        let labels = self.labels.get(node)?;
        let clocks = [SignedDuration::ZERO, -self.slack, self.slack];
        let times = clocks.map(|off| at.saturating_add(off).unwrap_or(at));
        let mut first = None;
        for labels in labels.values_within(at, self.slack) {
            for policies in self.policies.values_within(at, self.slack) {
                let rule = policy::resolve_policy(policies, labels, &self.flags);
                for time in times {
                    match ask(policies, &rule, time) {
                        RebootAllowance::Yes { .. } => return None,
                        RebootAllowance::No { message, .. } => first = first.or(Some(message)),
                    }
                }
            }
        }
        first
    }
}
