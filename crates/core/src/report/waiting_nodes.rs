//! The nodes that wait for their reboot.

use std::collections::BTreeMap;

use dogwatch_api::node_reboot::RebootMethod;
use jiff::Timestamp;

use super::WaitingNodeRow;
use crate::Now;
use crate::explain::{FleetSnapshot, NodeStatusRow, describe_trigger};
use crate::policy::rollout::RolloutPhase;
use crate::policy::{self, MinInterval, Policy, RebootAllowance, RolloutCandidate};
use crate::reboot::{LastReboot, ObservedNode, RebootPhase, RebootRecord};

/// In the order of `rows`, which is that of the queue.
pub(super) fn waiting_nodes(
    fleet: &FleetSnapshot,
    rows: &[NodeStatusRow],
    now: Now,
) -> Vec<WaitingNodeRow> {
    let nodes = fleet.iter_nodes().map(|node| (node.name.as_str(), node));
    let nodes: BTreeMap<&str, &ObservedNode> = nodes.collect();
    let mut earliest = EarliestStarts::default();
    let waiting = rows.iter().filter_map(|row| {
        let node = nodes.get(row.name.as_str())?;
        let record = node.record.get()?;
        (record.phase == RebootPhase::Waiting).then(|| WaitingNodeRow {
            name: row.name.clone(),
            group: row.group.clone(),
            since: record.planned,
            place: row.place,
            asked: describe_trigger(&record.trigger),
            reason: row.reason.clone(),
            message: row.message.clone(),
            not_before: earliest.not_before(fleet, node, record, now),
        })
    });
    waiting.collect()
}

/// When nodes may begin at the earliest. Thousands of nodes wait for the same window, so that each
/// answer is kept for the other nodes that it holds for.
#[derive(Default)]
struct EarliestStarts(BTreeMap<StartQuestion, Option<Timestamp>>);

/// What an answer depends on: policy, method, and last reboot.
type StartQuestion = (Option<String>, bool, Option<Timestamp>);

impl EarliestStarts {
    fn not_before(
        &mut self,
        fleet: &FleetSnapshot,
        node: &ObservedNode,
        record: &RebootRecord,
        now: Now,
    ) -> Option<Timestamp> {
        let rule = fleet.rule_of_node(node);
        let last = node.last_reboot.get();
        let rebooted = last.and_then(LastReboot::last_rebooted_at);
        let is_hold = record.trigger.method == RebootMethod::Hold;
        let has_interval = rule.policy.is_some_and(|it| it.min_interval.is_some());
        let name = rule.policy.map(|policy| policy.name.to_string());
        let question = (name, is_hold, rebooted.filter(|_| has_interval));
        let by_policy = self.0.entry(question).or_insert_with(|| {
            // No time ends a wait for canaries; who is one does not matter here.
            let candidate = if is_hold {
                RolloutCandidate::Hold
            } else {
                RolloutCandidate::LockHost
            };
            let allowance = policy::may_reboot_begin(
                &fleet.policies,
                rule.policy,
                rule.config.longest_drain(),
                MinInterval::since_last_reboot(last),
                candidate,
                now.wall,
            );
            match allowance {
                RebootAllowance::Yes { .. } => None,
                RebootAllowance::No { until, .. } => until,
            }
        });
        let soak = rule.policy.filter(|_| !is_hold).and_then(soak_end);
        let times = [*by_policy, soak, record.retry_after].into_iter().flatten();
        times.filter(|at| *at > now.wall).max()
    }
}

/// When the soak after the policy's canaries is over, if it has begun.
fn soak_end(policy: &Policy) -> Option<Timestamp> {
    let state = policy.rollout.current_state()?;
    let soaks = state.phase == RolloutPhase::Soaking;
    state.soak_ends.filter(|_| soaks)
}
