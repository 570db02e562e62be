//! From the times of all runs to an estimate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::report::{FleetEstimate, FleetView, GroupEstimate, NodeEstimate};
use jiff::Timestamp;

use super::group_run::GroupTimes;
use super::live_group::LiveGroup;

/// The times of all runs.
#[derive(Default)]
pub(super) struct RunTimes {
    /// By group and index of the node.
    starts: BTreeMap<(String, usize), Vec<Duration>>,
    finishes: BTreeMap<(String, usize), Vec<Duration>>,
    /// By group: when its last node is back, in each run.
    group_ends: BTreeMap<String, Vec<Duration>>,
    /// The end of each run.
    ends: Vec<Duration>,
    /// The last finish of the run under way.
    last: Duration,
}

impl RunTimes {
    pub(super) fn add_group_run(&mut self, times: GroupTimes) {
        let end = times.finishes.values().copied().max().unwrap_or_default();
        self.last = self.last.max(end);
        let ends = self.group_ends.entry(times.name.clone()).or_default();
        ends.push(end);
        for (node, at) in times.starts {
            self.starts
                .entry((times.name.clone(), node))
                .or_default()
                .push(at);
        }
        for (node, at) in times.finishes {
            self.finishes
                .entry((times.name.clone(), node))
                .or_default()
                .push(at);
        }
    }

    pub(super) fn end_run(&mut self) {
        self.ends.push(std::mem::take(&mut self.last));
    }

    pub(super) fn into_estimate(
        mut self,
        view: &FleetView,
        groups: &[LiveGroup],
        left_out: Vec<String>,
        now: Now,
    ) -> FleetEstimate {
        let nodes = self.node_estimates(groups, now);
        let holds = list_holds(groups);
        let endless: BTreeSet<&str> = view
            .waiting
            .iter()
            .filter(|it| !nodes.contains_key(&it.name) && !holds.contains(it.name.as_str()))
            .map(|it| it.group.as_str())
            .collect();
        let is_any = endless.is_empty() && !nodes.is_empty();
        let ends = is_any.then(|| Percentiles::of_times(&mut self.ends));
        FleetEstimate {
            at: now.wall,
            finish: ends.as_ref().map(|ends| now.wall_after(ends.median)),
            latest_finish: ends.map(|ends| now.wall_after(ends.ninetieth)),
            groups: self.group_estimates(&endless, now),
            nodes,
            left_out,
        }
    }

    /// Of the groups in which somebody is back in every run, and nobody waits for ever.
    fn group_estimates(
        &mut self,
        endless: &BTreeSet<&str>,
        now: Now,
    ) -> BTreeMap<String, GroupEstimate> {
        let mut groups = BTreeMap::new();
        for (name, ends) in &mut self.group_ends {
            if endless.contains(name.as_str()) || ends.contains(&Duration::ZERO) {
                continue;
            }
            let [finish, latest_finish] = Percentiles::of_times(ends).to_moments(now);
            let times = GroupEstimate {
                finish,
                latest_finish,
            };
            groups.insert(name.clone(), times);
        }
        groups
    }

    /// Of the nodes that are back in every run.
    fn node_estimates(&mut self, groups: &[LiveGroup], now: Now) -> BTreeMap<String, NodeEstimate> {
        let runs = self.ends.len();
        let mut nodes = BTreeMap::new();
        for group in groups {
            let began: BTreeMap<usize, Timestamp> =
                group.out.iter().map(|out| (out.node, out.began)).collect();
            for (index, node) in group.nodes.iter().enumerate() {
                let key = (group.name.clone(), index);
                let finishes = self.finishes.get_mut(&key).filter(|all| all.len() == runs);
                let Some(finish) = finishes.map(|all| Percentiles::of_times(all)) else {
                    continue;
                };
                let starts = self
                    .starts
                    .get_mut(&key)
                    .map(|all| Percentiles::of_times(all));
                let start = match (began.get(&index), starts) {
                    (Some(began), _) => [*began, *began],
                    (None, Some(start)) => start.to_moments(now),
                    (None, None) => continue,
                };
                let finish = finish.to_moments(now);
                let times = NodeEstimate {
                    start: start[0],
                    latest_start: start[1],
                    finish: finish[0],
                    latest_finish: finish[1],
                };
                nodes.insert(node.name.to_string(), times);
            }
        }
        nodes
    }
}

struct Percentiles {
    median: Duration,
    ninetieth: Duration,
}

impl Percentiles {
    /// Sorts the times; there is at least one.
    fn of_times(times: &mut [Duration]) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let index = (times.len() * share).div_ceil(100).saturating_sub(1);
            times.get(index).copied().unwrap_or_default()
        };
        Self {
            median: at(50),
            ninetieth: at(90),
        }
    }

    fn to_moments(&self, now: Now) -> [Timestamp; 2] {
        [now.wall_after(self.median), now.wall_after(self.ninetieth)]
    }
}

/// The nodes that wait for a hold, which is never over.
fn list_holds(groups: &[LiveGroup]) -> BTreeSet<&str> {
    let waiting = groups.iter().flat_map(|group| {
        let waiting = group.waiting.iter().filter(|waiter| waiter.is_hold);
        waiting.filter_map(|waiter| Some(group.nodes[waiter.node?].name.as_str()))
    });
    waiting.collect()
}
