//! The search: what can happen in a state, and what comes of it.

use std::sync::Arc;

use stateright::{Model, Property};

use super::state::{
    PowerStage, RemediationWorldAction, RemediationWorldConfig, RemediationWorldState, WatchedKind,
    WriteFate,
};
use super::world::{RemediationPools, RemediationWorld};
use super::writes::name_action;
use crate::promise::{Promise, keeps_promise};
use crate::reachability::SearchGraph;
use crate::search::WorldModel;

pub struct RemediationModel {
    config: RemediationWorldConfig,
    pools: Arc<RemediationPools>,
    graph: Arc<SearchGraph>,
}

impl RemediationModel {
    /// Two searches can share their pools, so that equal states have equal numbers in both.
    pub fn new(
        config: RemediationWorldConfig,
        pools: Arc<RemediationPools>,
        graph: Arc<SearchGraph>,
    ) -> Self {
        Self {
            config,
            pools,
            graph,
        }
    }

    fn world(&self, state: &RemediationWorldState) -> RemediationWorld<'_> {
        RemediationWorld::unpack(&self.config, &self.pools, state)
    }

    fn push_turns(&self, state: &RemediationWorldState, actions: &mut Vec<RemediationWorldAction>) {
        for (place, decided) in self.pools.decide_all(state).iter().enumerate() {
            let remediation = small(place);
            if !decided.decision.observe.is_empty() {
                actions.push(RemediationWorldAction::Observe(remediation));
            }
            for which in 0..decided.decision.actions.len() {
                for fate in WriteFate::ALL {
                    // A turn without a misfortune is the same for each write.
                    if fate.is_affordable(state.left) && (which == 0 || fate != WriteFate::Good) {
                        actions.push(RemediationWorldAction::Act {
                            remediation,
                            which: small(which),
                            fate,
                        });
                    }
                }
            }
        }
    }

    fn push_events(world: &RemediationWorld<'_>, actions: &mut Vec<RemediationWorldAction>) {
        let (left, machine) = (world.left, world.machine);
        let marked = world.stored.machine.need.is_some();
        let kubelet_runs = machine.running && (!marked || machine.boots > 1);
        let all = [
            (left.crashes > 0, RemediationWorldAction::Crash),
            (left.marks > 0 && !marked, RemediationWorldAction::Mark),
            (
                left.withdrawals > 0 && marked,
                RemediationWorldAction::Withdraw,
            ),
            (world.can_switch_off(), RemediationWorldAction::PowerOff),
            (
                world.stored.is_keyed() && machine.power == PowerStage::ReadOff,
                RemediationWorldAction::ProveOff,
            ),
            (world.can_switch_on(), RemediationWorldAction::PowerOn),
            (kubelet_runs, RemediationWorldAction::Kubelet),
        ];
        let possible = all.into_iter().filter(|(possible, _)| *possible);
        actions.extend(possible.map(|(_, action)| action));
    }

    fn perform(
        &self,
        state: &RemediationWorldState,
        action: RemediationWorldAction,
    ) -> RemediationWorldState {
        let mut world = self.world(state);
        match action {
            RemediationWorldAction::Tick => world.pass_tick(),
            RemediationWorldAction::See(kind) => world.show(kind),
            RemediationWorldAction::Observe(which) => {
                let decided = self.pools.decide_all(state);
                world.answer_observations(&decided[usize::from(which)]);
            }
            RemediationWorldAction::Act {
                remediation,
                which,
                fate,
            } => {
                let decided = self.pools.decide_all(state);
                let decision = &decided[usize::from(remediation)].decision;
                world.take_turn(&decision.actions, which.into(), fate);
            }
            RemediationWorldAction::Crash => {
                world.left.crashes -= 1;
                world.crash();
            }
            RemediationWorldAction::Mark => world.mark(),
            RemediationWorldAction::Withdraw => world.withdraw(),
            RemediationWorldAction::PowerOff => world.power_off(),
            RemediationWorldAction::ProveOff => world.prove_off(),
            RemediationWorldAction::PowerOn => world.power_on(),
            RemediationWorldAction::Kubelet => world.post_kubelet_status(),
            RemediationWorldAction::Arrive(which) => {
                let write = world.late.remove(which.into());
                world.land_write(&write);
            }
            RemediationWorldAction::Lose(which) => drop(world.late.remove(which.into())),
        }
        world.pack()
    }
}

fn small(place: usize) -> u8 {
    u8::try_from(place).expect("few of them")
}

impl Model for RemediationModel {
    type State = RemediationWorldState;
    type Action = RemediationWorldAction;

    fn init_states(&self) -> Vec<RemediationWorldState> {
        vec![RemediationWorld::new(&self.config, &self.pools).pack()]
    }

    fn actions(&self, state: &RemediationWorldState, actions: &mut Vec<RemediationWorldAction>) {
        if state.broken.is_some() {
            return;
        }
        actions.push(RemediationWorldAction::Tick);
        actions.extend(WatchedKind::ALL.map(RemediationWorldAction::See));
        self.push_turns(state, actions);
        Self::push_events(&self.world(state), actions);
        for which in (0..state.late.len()).map(small) {
            actions.extend([
                RemediationWorldAction::Arrive(which),
                RemediationWorldAction::Lose(which),
            ]);
        }
    }

    fn next_state(
        &self,
        state: &RemediationWorldState,
        action: RemediationWorldAction,
    ) -> Option<RemediationWorldState> {
        let next = self.perform(state, action);
        if next == *state {
            return None;
        }
        if !self.graph.is_noting() {
            return Some(next);
        }
        if !action.is_misfortune() {
            self.graph.add_step(state, &next);
        }
        if next.broken.is_none() {
            self.graph
                .add_state(&next, || self.world(&next).is_at_good_end());
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("S2", |_, state: &RemediationWorldState| {
                keeps_promise(state.broken.as_ref(), Promise::ProofBeforeRelease)
            }),
            Property::always("S3", |_, state: &RemediationWorldState| {
                keeps_promise(state.broken.as_ref(), Promise::NothingForeignUndone)
            }),
            Property::always("S4", |_, state: &RemediationWorldState| {
                keeps_promise(state.broken.as_ref(), Promise::NewBootId)
            }),
            Property::always("S5", |_, state: &RemediationWorldState| {
                keeps_promise(state.broken.as_ref(), Promise::OneReboot)
            }),
            Property::always("stuck", |model: &Self, state| {
                !model.graph.is_wanted_trap(state)
            }),
            Property::sometimes("it is over", |model: &Self, state| {
                model.world(state).is_at_good_end()
            }),
        ]
    }
}

impl WorldModel for RemediationModel {
    fn describe_state(&self, state: &RemediationWorldState) -> String {
        if state.broken.is_some() {
            return state.describe_broken();
        }
        let decided = self.pools.decide_all(state);
        let causes = decided.iter().map(|decided| {
            let cause = &decided.decision.cause;
            let subject = &decided.remediation.subject;
            format!("{subject}: {}: {}", cause.reason, cause.message)
        });
        let causes: Vec<String> = causes.collect();
        let left = self.world(state).stored.list_leftovers().join(", ");
        format!("{:?}; left: {left}; {}", state.machine, causes.join("; "))
    }

    fn describe_step(
        &self,
        before: &RemediationWorldState,
        action: &RemediationWorldAction,
    ) -> String {
        if let RemediationWorldAction::Act { remediation, .. } = action {
            let decided = self.pools.decide_all(before);
            let decision = &decided[usize::from(*remediation)].decision;
            let names: Vec<&str> = decision.actions.iter().map(name_action).collect();
            return format!("{action:?}: {}", names.join(", "));
        }
        format!("{action:?}")
    }
}
