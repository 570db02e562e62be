//! What a node, its coordinator and its machine can do next.

use std::sync::Arc;

use dogwatch_core::reboot::{RebootAction, RebootDecision, RebootObserve, RebootReason};

use super::coordinator::CountList;
use super::model::PlannedModel;
use super::state::{Fate, PlannedAction, PlannedState};
use super::time::Clock;
use super::world::host_boot_id;
use crate::value_pool::PoolKey;

impl PlannedModel {
    /// What the coordinator may be shown.
    pub fn push_observations(&self, node: usize, key: PoolKey, actions: &mut Vec<PlannedAction>) {
        let number = u8::try_from(node).expect("few nodes");
        let decisions = Clock::ALL.map(|clock| self.decision(node, key, clock));
        let asks = |wanted: fn(&RebootObserve) -> bool| {
            decisions
                .iter()
                .any(|decision| decision.observe.iter().any(wanted))
        };
        let view = self.pools.coordinators.find_value(key);
        actions.push(PlannedAction::SeeNode(number));
        if asks(|look| matches!(look, RebootObserve::Locks { .. })) {
            actions.push(PlannedAction::SeeLeases(number));
        }
        let counts = asks(|look| matches!(look, RebootObserve::Count { .. }));
        let early = self.config.count_list() == CountList::AnyTime
            && asks(|look| matches!(look, RebootObserve::Locks { .. }));
        if view.listed.is_none() && (counts || early) {
            actions.push(PlannedAction::ListLeases(number));
        }
        if view.listed.is_some() && counts {
            actions.push(PlannedAction::ListNodes(number));
        }
        if asks(|look| matches!(look, RebootObserve::Holder { .. })) {
            actions.push(PlannedAction::LookAtHolder(number));
        }
    }

    /// The turns that differ: a later clock only where it decides otherwise.
    pub fn push_turns(
        &self,
        state: &PlannedState,
        node: usize,
        key: PoolKey,
        actions: &mut Vec<PlannedAction>,
    ) {
        let mut known: Vec<Arc<RebootDecision>> = Vec::new();
        for clock in Clock::ALL {
            let decision = self.decision(node, key, clock);
            let same = |other: &Arc<RebootDecision>| {
                other.cause.reason == decision.cause.reason
                    && same_actions(&other.actions, &decision.actions)
            };
            if decision.actions.is_empty() || known.iter().any(same) {
                continue;
            }
            let number = u8::try_from(node).expect("few nodes");
            let mut push = |which: usize, fate| {
                let which = u8::try_from(which).expect("few actions");
                actions.push(PlannedAction::Act {
                    node: number,
                    clock,
                    which,
                    fate,
                });
            };
            push(0, Fate::Good);
            for (which, action) in decision.actions.iter().enumerate() {
                let command = matches!(action, RebootAction::Reboot { .. });
                for fate in Fate::FAULTS {
                    if is_affordable(state, fate) && (!command || fate == Fate::CrashAfter) {
                        push(which, fate);
                    }
                }
            }
            known.push(decision);
        }
    }

    pub fn push_host_events(
        &self,
        state: &PlannedState,
        node: usize,
        actions: &mut Vec<PlannedAction>,
    ) {
        let number = u8::try_from(node).expect("few nodes");
        let host = &state.hosts[node];
        let Some(there) = state.nodes[node].map(|key| self.pools.nodes.find_value(key)) else {
            return;
        };
        let runs = state.coordinators[node].is_some();
        if host.pending && runs {
            actions.push(PlannedAction::Boot(number));
        }
        let failed = |key| {
            let decision = self.decision(node, key, Clock::Late);
            decision.cause.reason == RebootReason::RebootFailed
        };
        if state.coordinators[node].is_some_and(failed) {
            actions.push(PlannedAction::BootByHand(number));
        }
        if runs && (!there.ready || there.boot_id != Some(host_boot_id(node, host.boot))) {
            actions.push(PlannedAction::Kubelet(number));
        }
        if there.unschedulable && host.local.pods_left && runs {
            actions.push(PlannedAction::PodGoes(number));
        }
        if state.crashes > 0 && runs {
            actions.push(PlannedAction::Crash(number));
        }
        if state.foreign > 0 {
            let recorded = there
                .record
                .get()
                .is_some_and(|record| record.cordoned_by_us);
            if there.unschedulable {
                actions.push(PlannedAction::Uncordon(number));
            } else if !recorded {
                actions.push(PlannedAction::Cordon(number));
            }
        }
    }
}

/// Whether two decisions do the same, but for times.
fn same_actions(one: &[RebootAction], other: &[RebootAction]) -> bool {
    let kinds = |actions: &[RebootAction]| -> Vec<RebootAction> {
        let mut actions = actions.to_vec();
        for action in &mut actions {
            match action {
                RebootAction::PatchNode(patch) => super::time::forget_patch_times(patch),
                RebootAction::Bid { record, .. } => super::time::forget_lock_times(record),
                RebootAction::Release { .. }
                | RebootAction::Break { .. }
                | RebootAction::Reboot { .. }
                | RebootAction::Stop { .. } => {}
            }
        }
        actions
    };
    kinds(one) == kinds(other)
}

fn is_affordable(state: &PlannedState, fate: Fate) -> bool {
    match fate {
        Fate::Good => true,
        Fate::AnswerLost | Fate::Delayed | Fate::Doubled => state.faults > 0,
        Fate::CrashAfter => state.crashes > 0,
        Fate::CrashDelayed => state.crashes > 0 && state.faults > 0,
    }
}
