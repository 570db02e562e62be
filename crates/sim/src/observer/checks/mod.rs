//! Judges at every change whether Dogwatch keeps its promises, from the objects alone.

mod budget_check;
mod pod_counts;
mod policy_check;
mod remediated;
mod value_history;

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::policy::Policy;
use dogwatch_core::reboot::{RebootConfig, RebootPhase};
use jiff::{SignedDuration, Timestamp};

use self::budget_check::BudgetCheck;
use self::pod_counts::PodCounts;
use self::policy_check::PolicyCheck;
use super::cluster_observer::{ClusterObserver, ObservedChange, ObservedKind};
use super::object_views::{NodeView, budget_shortage};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PromiseViolation(pub String);

/// The counts and judgements from the first change to the last.
#[derive(Debug)]
pub struct PromiseChecks {
    /// Whether pods may fall below their PodDisruptionBudgets: if a drain deletes pods.
    pub budgets_may_break: bool,
    leave: PolicyCheck,
    out: BudgetCheck,
    pods: PodCounts,
    boots: BTreeMap<String, BTreeSet<String>>,
    foreign_cordons: BTreeSet<String>,
    violations: Vec<PromiseViolation>,
}

impl PromiseChecks {
    /// Checks coordinators that run with these flags.
    pub fn new(flags: RebootConfig) -> Self {
        Self {
            budgets_may_break: false,
            leave: PolicyCheck::with_flags(flags),
            out: BudgetCheck::default(),
            pods: PodCounts::default(),
            boots: BTreeMap::new(),
            foreign_cordons: BTreeSet::new(),
            violations: Vec::new(),
        }
    }

    /// Sets how old a coordinator's view of policies and labels may be, and how wrong its clock,
    /// before a violation counts. Zero until it is set.
    pub fn set_slack(&mut self, slack: SignedDuration) {
        self.leave.slack = slack;
    }

    /// Judges one change that came at `at`. `now` is the cluster after this change.
    pub fn judge_change(
        &mut self,
        change: &ObservedChange,
        now: &ClusterObserver,
        at: Timestamp,
    ) -> Vec<PromiseViolation> {
        let before = self.violations.len();
        match change.kind {
            ObservedKind::Node => self.check_node(change, now, at),
            ObservedKind::Budget => self.check_disruption_budget(change),
            ObservedKind::Policy => self.check_policies(now, at),
            ObservedKind::Lease => {
                let (before, after) = (change.before.as_ref(), change.after.as_ref());
                self.out.record_lease(&change.name, before, after);
                self.check_budgets_of_groups(now);
            }
            // `crate::bare_metal` compares the other promises about hosts with the machines.
            ObservedKind::Host => self.check_budgets_of_groups(now),
            ObservedKind::Pod => self.pods.record_pod(&change.name, change.after.as_ref()),
            ObservedKind::Event | ObservedKind::NodeReboot | ObservedKind::Definition => {}
        }
        self.violations[before..].to_vec()
    }

    /// Judges the start of a node's reboot command at `at`.
    pub fn judge_reboot_command(&mut self, node: &str, at: Timestamp) -> Option<PromiseViolation> {
        let why = self.leave.command_refusal(node, at)?;
        self.record_violation(format!("{node}'s reboot command was started: {why}"));
        self.violations.last().cloned()
    }

    /// Counts the boots of a node after its first.
    pub fn count_boots(&self, node: &str) -> usize {
        self.boots
            .get(node)
            .map_or(0, |boots| boots.len().saturating_sub(1))
    }

    /// Returns every group that had unavailable nodes, with the highest count.
    pub fn groups_with_most_out(&self) -> impl Iterator<Item = (&str, usize)> {
        self.out.most_out_by_group()
    }

    /// The fewest ready pods of an application since its first one was ready.
    pub fn fewest_ready_pods(&self, app: &str) -> usize {
        self.pods.fewest_ready(app)
    }

    /// How many pod templates the pods of an application have had.
    pub fn count_pod_templates(&self, app: &str) -> usize {
        self.pods.count_templates(app)
    }

    pub fn violations(&self) -> &[PromiseViolation] {
        &self.violations
    }

    fn record_violation(&mut self, text: String) {
        self.violations.push(PromiseViolation(text));
    }

    fn check_node(&mut self, change: &ObservedChange, now: &ClusterObserver, at: Timestamp) {
        let before = change.before.as_ref().map(NodeView::from_object);
        let after = change.after.as_ref().map(NodeView::from_object);
        self.check_cordon(&change.name, before.as_ref(), after.as_ref());
        if let Some(after) = &after {
            self.leave.record_labels(at, &change.name, &after.labels);
            self.check_boot(&change.name, before.as_ref(), after);
            self.check_reboot_begin(&change.name, before.as_ref(), after, at);
        }
        self.check_budgets_of_groups(now);
    }

    fn check_policies(&mut self, now: &ClusterObserver, at: Timestamp) {
        let all = now.list_objects(ObservedKind::Policy);
        let all: Vec<Policy> = all
            .filter_map(|(_, policy)| serde_json::from_value(policy.clone()).ok())
            .map(|object| dogwatch_k8s::policy::convert_policy_object(&object))
            .collect();
        self.leave.record_policies(at, all);
        self.check_budgets_of_groups(now);
    }

    /// S1, for all groups.
    fn check_budgets_of_groups(&mut self, now: &ClusterObserver) {
        for text in self.out.judge_groups(now, &self.leave) {
            self.record_violation(text);
        }
    }

    /// A reboot begins only if the policy allows it.
    fn check_reboot_begin(
        &mut self,
        name: &str,
        before: Option<&NodeView>,
        after: &NodeView,
        at: Timestamp,
    ) {
        let phase = |node: &NodeView| node.record.as_ref().map(|record| record.phase);
        let drains = |node: &NodeView| phase(node) == Some(RebootPhase::Draining);
        let Some(before) = before.filter(|before| drains(after) && !drains(before)) else {
            return;
        };
        if let Some(why) = self.leave.begin_refusal(name, before, at) {
            self.record_violation(format!("{name} began: {why}"));
        }
    }

    /// S3: Dogwatch does not undo cordons that somebody else set.
    fn check_cordon(&mut self, name: &str, before: Option<&NodeView>, after: Option<&NodeView>) {
        let was = before.is_some_and(|node| node.cordoned);
        let Some(after) = after else {
            self.foreign_cordons.remove(name);
            return;
        };
        let by_us = before.is_none_or(|before| before.record != after.record);
        if after.cordoned && !was && !by_us {
            self.foreign_cordons.insert(name.to_owned());
        }
        if !after.cordoned && was {
            let foreign = self.foreign_cordons.remove(name);
            let not_ours = before
                .and_then(|before| before.record.as_ref())
                .is_none_or(|record| !record.cordoned_by_us);
            if by_us && (foreign || not_ours) {
                self.record_violation(format!(
                    "{name} was uncordoned by Dogwatch, and the cordon was not Dogwatch's"
                ));
            }
        }
    }

    /// Before a boot that Dogwatch causes, the Node's record announces it.
    fn check_boot(&mut self, name: &str, before: Option<&NodeView>, after: &NodeView) {
        if after.boot.is_empty() {
            return;
        }
        self.boots
            .entry(name.to_owned())
            .or_default()
            .insert(after.boot.clone());
        let phase = |node: &NodeView| node.record.as_ref().map(|record| record.phase);
        let Some(before) = before else { return };
        let begins = phase(after) == Some(RebootPhase::Returning)
            && phase(before) != Some(RebootPhase::Returning);
        let announced = [RebootPhase::Rebooting, RebootPhase::Holding].map(Some);
        if begins && !announced.contains(&phase(before)) {
            // A machine that crashes during a drain boots too; then no command was due.
            let attempts = before.record.as_ref().map_or(0, |record| record.attempts);
            if attempts > 0 {
                self.record_violation(format!(
                    "{name} counts {attempts} attempts of a reboot that it never announced"
                ));
            }
        }
    }

    fn check_disruption_budget(&mut self, change: &ObservedChange) {
        let (Some(after), false) = (&change.after, self.budgets_may_break) else {
            return;
        };
        let was_short = change
            .before
            .as_ref()
            .is_none_or(|before| budget_shortage(before).is_some());
        let same_rule = change
            .before
            .as_ref()
            .is_some_and(|before| before["spec"] == after["spec"]);
        let recounted = change.before.as_ref().is_some_and(|before| {
            before["status"]["desiredHealthy"] == after["status"]["desiredHealthy"]
        });
        if let (Some((healthy, desired)), false, true, true) =
            (budget_shortage(after), was_short, same_rule, recounted)
        {
            self.record_violation(format!(
                "budget {} has {healthy} healthy pods, and wants {desired}",
                change.name
            ));
        }
    }
}
