//! Whether the promises held: judged by what stood on the objects, at every change.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::reboot::Phase;

use super::object::{NodeView, budget_shortage};
use super::observer::{Change, Kind, Observer};

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation(pub String);

/// What is counted and judged from the first change to the last.
#[derive(Debug)]
pub struct Checks {
    max_out: usize,
    /// Whether pods may fall below their budgets: where a drain deletes.
    pub budgets_may_break: bool,
    most_out: BTreeMap<&'static str, usize>,
    boots: BTreeMap<String, BTreeSet<String>>,
    foreign_cordons: BTreeSet<String>,
    violations: Vec<Violation>,
}

impl Checks {
    /// At most so many nodes of a group may be out on Dogwatch's account.
    pub fn new(max_out: usize) -> Self {
        Self {
            max_out,
            budgets_may_break: false,
            most_out: BTreeMap::new(),
            boots: BTreeMap::new(),
            foreign_cordons: BTreeSet::new(),
            violations: Vec::new(),
        }
    }

    /// Another limit from now on.
    pub fn allow(&mut self, max_out: usize) {
        self.max_out = max_out;
    }

    /// Judges one change; `now` is the cluster after it, and perhaps after later ones.
    pub fn saw(&mut self, change: &Change, now: &Observer) -> Vec<Violation> {
        let before = self.violations.len();
        match change.kind {
            Kind::Node => self.node(change, now),
            Kind::Budget => self.budget(change),
            Kind::Pod | Kind::Lease | Kind::Event => {}
        }
        self.violations[before..].to_vec()
    }

    /// How many boots of a node were seen after its first.
    pub fn boots(&self, node: &str) -> usize {
        self.boots
            .get(node)
            .map_or(0, |boots| boots.len().saturating_sub(1))
    }

    /// How many nodes of a group were out at the same time, at most.
    pub fn most_out(&self, group: &str) -> usize {
        self.most_out.get(group).copied().unwrap_or(0)
    }

    /// Every group in which a node was out, with how many at most.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.most_out.iter().map(|(group, most)| (*group, *most))
    }

    /// Everything that was broken.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn broken(&mut self, text: String) {
        self.violations.push(Violation(text));
    }

    fn node(&mut self, change: &Change, now: &Observer) {
        let before = change.before.as_ref().map(NodeView::of);
        let after = change.after.as_ref().map(NodeView::of);
        self.cordon(&change.name, before.as_ref(), after.as_ref());
        if let Some(after) = &after {
            self.boot(&change.name, before.as_ref(), after);
        }
        self.out(now);
    }

    /// S1, over the whole cluster.
    fn out(&mut self, now: &Observer) {
        let mut out: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
        for (name, node) in now.all(Kind::Node) {
            let node = NodeView::of(node);
            if node.is_out_by_us() {
                out.entry(node.group()).or_default().push(name);
            }
        }
        for (group, nodes) in out {
            let most = self.most_out.entry(group).or_default();
            let more = nodes.len() > *most;
            *most = nodes.len().max(*most);
            let max = if group == "control-plane" {
                1
            } else {
                self.max_out
            };
            if more && nodes.len() > max {
                self.broken(format!(
                    "{} are out of service at the same time, {max} may be",
                    nodes.join(" and ")
                ));
            }
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
