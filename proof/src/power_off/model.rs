//! The search: what can happen in a state, and what comes of it.

use std::sync::Arc;

use dogwatch_core::power::{PowerAction, PowerDecision, PowerObserve};
use stateright::{Model, Property};

use super::PowerGuard;
use super::leader::NEW_ID;
use super::state::{PowerFate, PowerOffAction, PowerOffConfig, PowerOffState};
use super::world::{KEY, PowerOffPools, PowerOffWorld};
use crate::promise::{Promise, keeps_promise};
use crate::reachability::SearchGraph;
use crate::search::WorldModel;

pub struct PowerOffModel {
    config: PowerOffConfig,
    pools: Arc<PowerOffPools>,
    graph: Arc<SearchGraph>,
}

impl PowerOffModel {
    /// Two searches can share their pools, so that equal states have equal numbers in both.
    pub fn new(config: PowerOffConfig, pools: Arc<PowerOffPools>, graph: Arc<SearchGraph>) -> Self {
        Self {
            config,
            pools,
            graph,
        }
    }

    fn world(&self, state: &PowerOffState) -> PowerOffWorld<'_> {
        PowerOffWorld::unpack(&self.config, &self.pools, state)
    }

    fn decision(&self, state: &PowerOffState) -> Arc<PowerDecision> {
        self.pools.decide(&self.config, state.leader)
    }

    fn push_time(&self, state: &PowerOffState, actions: &mut Vec<PowerOffAction>) {
        let decision = self.decision(state);
        let world = self.world(state);
        let has_seen = world.leader.host == world.stored;
        if !has_seen {
            actions.push(PowerOffAction::SeeHost);
        }
        if has_seen && decision.actions.is_empty() && decision.observe.is_empty() {
            actions.push(PowerOffAction::Tick);
        } else if state.left.delays > 0 {
            actions.push(PowerOffAction::SlowTick);
        }
    }

    fn push_observations(&self, state: &PowerOffState, actions: &mut Vec<PowerOffAction>) {
        let decision = self.decision(state);
        if decision.observe.is_empty() {
            return;
        }
        actions.push(PowerOffAction::Observe(PowerFate::Good));
        let is_read = |look: &PowerObserve| matches!(look, PowerObserve::Read { .. });
        if !decision.observe.iter().any(is_read) {
            return;
        }
        if PowerFate::Fails.is_affordable(state.left) {
            actions.push(PowerOffAction::Observe(PowerFate::Fails));
        }
        if state.left.lies > 0 && !state.is_lying {
            actions.push(PowerOffAction::BeginLie);
        }
    }

    fn push_turns(&self, state: &PowerOffState, actions: &mut Vec<PowerOffAction>) {
        let decision = self.decision(state);
        let Some(action) = decision.actions.first() else {
            return;
        };
        let fates: &[PowerFate] = match action {
            PowerAction::WriteStatus(_) => &PowerFate::OF_WRITE,
            PowerAction::Send(_) => &PowerFate::OF_COMMAND,
            PowerAction::RemoveAnnotations(_) => &[PowerFate::Good],
        };
        let affordable = fates.iter().filter(|fate| fate.is_affordable(state.left));
        actions.extend(affordable.map(|fate| PowerOffAction::Act(*fate)));
        if self.config.without == Some(PowerGuard::RecordBeforeSend)
            && let PowerAction::WriteStatus(write) = action
            && let Some(command) = &write.status.power.command
            && command.id == NEW_ID
            && PowerFate::SentFirst.is_affordable(state.left)
        {
            actions.push(PowerOffAction::Act(PowerFate::SentFirst));
        }
    }

    fn perform(&self, state: &PowerOffState, action: PowerOffAction) -> PowerOffState {
        let mut world = self.world(state);
        match action {
            PowerOffAction::Tick => world.pass_tick(),
            PowerOffAction::SlowTick => {
                world.left.delays -= 1;
                world.pass_tick();
            }
            PowerOffAction::SeeHost => {
                let stored = world.stored.clone();
                Arc::make_mut(&mut world.leader).host = stored;
            }
            PowerOffAction::Observe(fate) => world.observe(&self.decision(state).observe, fate),
            PowerOffAction::BeginLie => {
                world.left.lies -= 1;
                world.is_lying = true;
            }
            PowerOffAction::Act(fate) => {
                if let Some(action) = self.decision(state).actions.first() {
                    world.act(action, fate);
                }
            }
            PowerOffAction::TakeOver => {
                world.left.takeovers -= 1;
                world.take_over();
            }
            PowerOffAction::RemoveKey => world.change_key(false),
            PowerOffAction::AddKey => world.change_key(true),
            PowerOffAction::RunLate(which) => world.run_late_command(which.into()),
            PowerOffAction::Arrive(which) => {
                let write = world.late_writes.remove(which.into());
                world.land_write(&write);
            }
            PowerOffAction::Lose(which) => drop(world.late_writes.remove(which.into())),
            PowerOffAction::DeposedSends => world.deposed_sends(),
        }
        world.pack()
    }
}

impl Model for PowerOffModel {
    type State = PowerOffState;
    type Action = PowerOffAction;

    fn init_states(&self) -> Vec<PowerOffState> {
        vec![PowerOffWorld::new(&self.config, &self.pools).pack()]
    }

    fn actions(&self, state: &PowerOffState, actions: &mut Vec<PowerOffAction>) {
        if state.broken.is_some() {
            return;
        }
        self.push_time(state, actions);
        self.push_observations(state, actions);
        self.push_turns(state, actions);
        if state.left.takeovers > 0 {
            actions.push(PowerOffAction::TakeOver);
        }
        if state.left.key_changes > 0 {
            let keyed = self.world(state).stored.annotations.contains_key(KEY);
            actions.push(if keyed {
                PowerOffAction::RemoveKey
            } else {
                PowerOffAction::AddKey
            });
        }
        let number = |which: usize| u8::try_from(which).expect("few of them");
        let late = (0..state.at_bmc.len()).map(|which| PowerOffAction::RunLate(number(which)));
        actions.extend(late);
        for which in (0..state.late_writes.len()).map(number) {
            actions.extend([PowerOffAction::Arrive(which), PowerOffAction::Lose(which)]);
        }
        if state.deposed.is_some() && self.config.without == Some(PowerGuard::LeaderSends) {
            actions.push(PowerOffAction::DeposedSends);
        }
    }

    fn next_state(&self, state: &PowerOffState, action: PowerOffAction) -> Option<PowerOffState> {
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
                .add_state(&next, || self.world(&next).is_as_wanted());
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("S2", |_, state: &PowerOffState| {
                keeps_promise(state.broken.as_ref(), Promise::ProofBeforeRelease)
            }),
            Property::always("S5", |_, state: &PowerOffState| {
                keeps_promise(state.broken.as_ref(), Promise::OneReboot)
            }),
            Property::always("stuck", |model: &Self, state| {
                !model.graph.is_wanted_trap(state)
            }),
            Property::sometimes("off is proved", |model: &Self, state| {
                model.world(state).is_proved_off()
            }),
        ]
    }
}

impl WorldModel for PowerOffModel {
    fn describe_state(&self, state: &PowerOffState) -> String {
        if state.broken.is_some() {
            return state.describe_broken();
        }
        let decision = self.decision(state);
        let keyed = self.world(state).stored.annotations.contains_key(KEY);
        format!(
            "the host runs: {}; key: {keyed}; {}: {}",
            state.running, decision.cause.reason, decision.cause.message
        )
    }

    fn describe_step(&self, before: &PowerOffState, action: &PowerOffAction) -> String {
        if let PowerOffAction::Act(_) = action {
            let cause = self.decision(before).cause.reason;
            return format!("{action:?}: {cause}");
        }
        format!("{action:?}")
    }
}
