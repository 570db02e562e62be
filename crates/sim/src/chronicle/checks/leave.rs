//! Leave: no reboot begins, and no command is started, that the policy does not allow then.
//!
//! Judged by the policies, labels and true time of that moment. A coordinator may act on what it
//! saw before: what stood within [`Leave::slack`] is forgiven, and so is a clock that is off by as
//! much.

use std::collections::BTreeMap;

use dogwatch_core::policy::{self, Allowance, MinInterval, Policies, Policy, Rule};
use dogwatch_core::reboot::Config;
use jiff::{SignedDuration, Timestamp};

use super::super::object::NodeView;
use super::past::Past;

/// The labels of one node, and when they came.
type Labels = Past<BTreeMap<String, String>>;

#[derive(Debug)]
pub(super) struct Leave {
    flags: Config,
    policies: Past<Policies>,
    labels: BTreeMap<String, Labels>,
    /// How old a coordinator's view may be, and how far its clock off.
    pub(super) slack: SignedDuration,
}

impl Leave {
    pub(super) fn under(flags: Config) -> Self {
        Self {
            flags,
            policies: Past::of(Policies::Known(Vec::new())),
            labels: BTreeMap::new(),
            slack: SignedDuration::ZERO,
        }
    }

    /// As they are now.
    pub(super) fn policies(&self) -> &Policies {
        self.policies.newest()
    }

    /// What holds for a node with these labels now.
    pub(super) fn rule(&self, labels: &BTreeMap<String, String>) -> Rule<'_> {
        policy::rule(self.policies(), labels, &self.flags)
    }

    pub(super) fn saw_policies(&mut self, at: Timestamp, all: Vec<Policy>) {
        self.policies.now_is(at, Policies::Known(all));
    }

    pub(super) fn saw_labels(
        &mut self,
        at: Timestamp,
        node: &str,
        labels: &BTreeMap<String, String>,
    ) {
        match self.labels.get_mut(node) {
            None => {
                let past = Past::of(labels.clone());
                self.labels.insert(node.to_owned(), past);
            }
            Some(past) if past.newest() != labels => past.now_is(at, labels.clone()),
            Some(_) => {}
        }
    }

    /// Why a reboot must not begin at `at`.
    pub(super) fn to_begin(&self, name: &str, node: &NodeView, at: Timestamp) -> Option<String> {
        if node.api_lock {
            return Some("the lock API has it".into());
        }
        let interval = MinInterval::of(node.last.as_ref());
        self.refused(name, at, |policies, rule, at| {
            policy::allowed(
                policies,
                rule.policy,
                rule.config.drain_timeout,
                interval,
                at,
            )
        })
    }

    /// Why the command must not be started at `at`.
    pub(super) fn to_go_on(&self, name: &str, at: Timestamp) -> Option<String> {
        self.refused(name, at, |policies, rule, at| {
            policy::still_allowed(policies, rule.policy, at)
        })
    }

    /// `None` if anything that could have been seen allows it.
    fn refused(
        &self,
        node: &str,
        at: Timestamp,
        ask: impl Fn(&Policies, &Rule<'_>, Timestamp) -> Allowance,
    ) -> Option<String> {
        let labels = self.labels.get(node)?;
        let clocks = [SignedDuration::ZERO, -self.slack, self.slack];
        let times = clocks.map(|off| at.saturating_add(off).unwrap_or(at));
        let mut first = None;
        for labels in labels.stood(at, self.slack) {
            for policies in self.policies.stood(at, self.slack) {
                let rule = policy::rule(policies, labels, &self.flags);
                for time in times {
                    match ask(policies, &rule, time) {
                        Allowance::Yes { .. } => return None,
                        Allowance::No { message, .. } => first = first.or(Some(message)),
                    }
                }
            }
        }
        first
    }
}
