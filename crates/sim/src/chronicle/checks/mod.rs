//! Whether the promises held: judged by what stood on the objects, at every change.

mod leave;
mod out;
mod past;
mod remediated;

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::policy::Policy;
use dogwatch_core::reboot::{Config, Phase};
use jiff::{SignedDuration, Timestamp};

use self::leave::Leave;
use self::out::Out;
use super::object::{NodeView, budget_shortage};
use super::observer::{Change, Kind, Observer};

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation(pub String);

/// What is counted and judged from the first change to the last.
#[derive(Debug)]
pub struct Checks {
    /// Whether pods may fall below their budgets: where a drain deletes.
    pub budgets_may_break: bool,
    leave: Leave,
    out: Out,
    boots: BTreeMap<String, BTreeSet<String>>,
    foreign_cordons: BTreeSet<String>,
    violations: Vec<Violation>,
}

impl Checks {
    /// Of coordinators with these flags.
    pub fn new(flags: Config) -> Self {
        Self {
            budgets_may_break: false,
            leave: Leave::under(flags),
            out: Out::default(),
            boots: BTreeMap::new(),
            foreign_cordons: BTreeSet::new(),
            violations: Vec::new(),
        }
    }

    /// How old a coordinator's view of policies and labels may be, and how far its clock off, before
    /// what it does is held against them. Zero until it is set.
    pub fn forgive(&mut self, slack: SignedDuration) {
        self.leave.slack = slack;
    }

    /// Judges one change that came at `at`; `now` is the cluster after it, and perhaps after later
    /// ones.
    pub fn saw(&mut self, change: &Change, now: &Observer, at: Timestamp) -> Vec<Violation> {
        let before = self.violations.len();
        match change.kind {
            Kind::Node => self.node(change, now, at),
            Kind::Budget => self.budget(change),
            Kind::Policy => self.policies(now, at),
            Kind::Lease => {
                let (before, after) = (change.before.as_ref(), change.after.as_ref());
                self.out.saw_lease(&change.name, before, after);
                self.count(now);
            }
            // What hosts promise beside this is held against their machines: `crate::metal`.
            Kind::Host => self.count(now),
            Kind::Pod | Kind::Event | Kind::Definition => {}
        }
        self.violations[before..].to_vec()
    }

    /// Judges the start of a node's reboot command at `at`.
    pub fn command(&mut self, node: &str, at: Timestamp) -> Option<Violation> {
        let why = self.leave.to_go_on(node, at)?;
        self.broken(format!("{node}'s reboot command was started: {why}"));
        self.violations.last().cloned()
    }

    /// The policies that stand now.
    pub fn policies_now(&self) -> &dogwatch_core::policy::Policies {
        self.leave.policies()
    }

    /// How many boots of a node were seen after its first.
    pub fn boots(&self, node: &str) -> usize {
        self.boots
            .get(node)
            .map_or(0, |boots| boots.len().saturating_sub(1))
    }

    /// Every group in which a node was out, with how many at most.
    pub fn groups(&self) -> impl Iterator<Item = (&str, usize)> {
        self.out.most()
    }

    /// Everything that was broken.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn broken(&mut self, text: String) {
        self.violations.push(Violation(text));
    }

    fn node(&mut self, change: &Change, now: &Observer, at: Timestamp) {
        let before = change.before.as_ref().map(NodeView::of);
        let after = change.after.as_ref().map(NodeView::of);
        self.cordon(&change.name, before.as_ref(), after.as_ref());
        if let Some(after) = &after {
            self.leave.saw_labels(at, &change.name, &after.labels);
            self.boot(&change.name, before.as_ref(), after);
            self.begin(&change.name, before.as_ref(), after, at);
        }
        self.count(now);
    }

    fn policies(&mut self, now: &Observer, at: Timestamp) {
        let all = now.all(Kind::Policy);
        let all: Vec<Policy> = all
            .map(|(name, policy)| dogwatch_k8s::policy::convert(name, &policy["spec"]))
            .collect();
        self.leave.saw_policies(at, all);
        self.count(now);
    }

    /// S1, over the whole cluster.
    fn count(&mut self, now: &Observer) {
        for text in self.out.look(now, &self.leave) {
            self.broken(text);
        }
    }

    /// Nothing begins that the policy does not allow.
    fn begin(&mut self, name: &str, before: Option<&NodeView>, after: &NodeView, at: Timestamp) {
        let phase = |node: &NodeView| node.record.as_ref().map(|record| record.phase);
        let drains = |node: &NodeView| phase(node) == Some(Phase::Draining);
        let Some(before) = before.filter(|before| drains(after) && !drains(before)) else {
            return;
        };
        if let Some(why) = self.leave.to_begin(name, before, at) {
            self.broken(format!("{name} began: {why}"));
        }
    }

    /// S3: a cordon that somebody else made is not ours to undo.
    fn cordon(&mut self, name: &str, before: Option<&NodeView>, after: Option<&NodeView>) {
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
                self.broken(format!(
                    "{name} was uncordoned by Dogwatch, and the cordon was not Dogwatch's"
                ));
            }
        }
    }

    /// A boot that Dogwatch makes has its intention on the Node before it.
    fn boot(&mut self, name: &str, before: Option<&NodeView>, after: &NodeView) {
        if after.boot.is_empty() {
            return;
        }
        self.boots
            .entry(name.to_owned())
            .or_default()
            .insert(after.boot.clone());
        let phase = |node: &NodeView| node.record.as_ref().map(|record| record.phase);
        let Some(before) = before else { return };
        let begins =
            phase(after) == Some(Phase::Returning) && phase(before) != Some(Phase::Returning);
        if begins && phase(before) != Some(Phase::Rebooting) {
            // A crash of the machine while it drained is a boot, too; then no command was due.
            let attempts = before.record.as_ref().map_or(0, |record| record.attempts);
            if attempts > 0 {
                self.broken(format!(
                    "{name} counts {attempts} attempts of a reboot that it never announced"
                ));
            }
        }
    }

    fn budget(&mut self, change: &Change) {
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
            self.broken(format!(
                "budget {} has {healthy} healthy pods, and wants {desired}",
                change.name
            ));
        }
    }
}
