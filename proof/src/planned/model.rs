//! The search: what can happen in a state, and what comes of it.

use std::sync::Arc;

use dogwatch_core::lock::ObservedLease;
use dogwatch_core::reboot::{ObservedNode, RebootDecision, RebootObserve};
use stateright::{Model, Property};

use super::coordinator::LocalFacts;
use super::server::ServerWrite;
use super::state::{
    CordonOwner, HostState, PlannedAction, PlannedConfig, PlannedState, RemediationStage,
};
use super::time::Clock;
use super::versions::lease_name;
use super::world::{PlannedPools, PlannedWorld, WorldOrigin, host_boot_id, node_name};
use crate::promise::{Promise, keeps_promise};
use crate::reachability::SearchGraph;
use crate::search::WorldModel;
use crate::value_pool::PoolKey;

pub struct PlannedModel {
    pub config: PlannedConfig,
    pub pools: Arc<PlannedPools>,
    pub graph: Arc<SearchGraph>,
}

impl PlannedModel {
    /// Two searches can share their pools, so that equal states have equal numbers in both.
    pub fn new(config: PlannedConfig, pools: Arc<PlannedPools>, graph: Arc<SearchGraph>) -> Self {
        Self {
            config,
            pools,
            graph,
        }
    }

    fn world(&self, state: &PlannedState) -> PlannedWorld<'_> {
        PlannedWorld::unpack(&self.config, &self.pools, state)
    }

    pub fn is_all_back(&self, state: &PlannedState) -> bool {
        self.world(state).is_all_back()
    }

    pub fn decision(&self, node: usize, key: PoolKey, clock: Clock) -> Arc<RebootDecision> {
        self.pools.decide(&self.config, node, key, clock)
    }

    fn perform(&self, state: &PlannedState, action: PlannedAction) -> PlannedState {
        let mut world = self.world(state);
        match action {
            PlannedAction::SeeNode(node) => world.show_node(node.into()),
            PlannedAction::SeeLeases(node) => world.show_leases(node.into()),
            PlannedAction::ListLeases(node) => world.list_leases_for_count(node.into()),
            PlannedAction::ListNodes(node) => world.list_nodes_for_count(node.into()),
            PlannedAction::LookAtHolder(node) => self.look(&mut world, state, node.into()),
            PlannedAction::Act {
                node,
                clock,
                which,
                fate,
            } => {
                let node = usize::from(node);
                let key = state.coordinators[node].expect("it takes its turn");
                let decision = self.decision(node, key, clock);
                world.take_turn(node, &decision.actions, which.into(), fate);
            }
            PlannedAction::Crash(node) => {
                world.crashes -= 1;
                world.start_run(node.into());
            }
            PlannedAction::Boot(node) => world.boot_host(node.into()),
            PlannedAction::Kubelet(node) => world.post_kubelet_status(node.into()),
            PlannedAction::PodGoes(node) => world.hosts[usize::from(node)].local.pods_left = false,
            PlannedAction::Cordon(node) => {
                world.foreign -= 1;
                world.cordon_by_person(node.into());
            }
            PlannedAction::Uncordon(node) => world.uncordon_by_person(node.into()),
            PlannedAction::Arrive(which) => {
                let write = world.late.remove(which.into());
                world.land_write(&write);
            }
            PlannedAction::Lose(which) => drop(world.late.remove(which.into())),
            PlannedAction::Remediate => world.remediate_further(),
            PlannedAction::BootByHand(node) => {
                world.hosts[usize::from(node)].pending = true;
                world.boot_host(node.into());
            }
            PlannedAction::Heal(slot) => {
                let slot = usize::from(slot);
                let version = world.leases[slot].resource_version.clone();
                world.land_write(&ServerWrite::Free {
                    slot,
                    version,
                    over_budget: false,
                });
            }
        }
        world.pack()
    }

    fn look(&self, world: &mut PlannedWorld<'_>, state: &PlannedState, node: usize) {
        let key = state.coordinators[node].expect("it looks");
        let looks = Clock::ALL.map(|clock| self.decision(node, key, clock));
        let mut looks = looks.iter().flat_map(|decision| &decision.observe);
        let slot = looks.find_map(|look| {
            if let RebootObserve::Holder { lease } = look {
                return usize::try_from(lease.slot).ok();
            }
            None
        });
        if let Some(slot) = slot {
            world.look_at_holder(node, slot);
        }
    }
}

impl Model for PlannedModel {
    type State = PlannedState;
    type Action = PlannedAction;

    fn init_states(&self) -> Vec<PlannedState> {
        let nodes = self.config.maxima.len();
        let host = |node: usize| HostState {
            boot: 1,
            runs: 0,
            local: LocalFacts {
                sentinel: self.config.wanting[node],
                pods_left: true,
            },
            pending: false,
            commands: Vec::new(),
            served: false,
            cordon: CordonOwner::Nobody,
            won_beside_remediation: false,
        };
        let there = |node: usize| {
            let (name, uid) = (node_name(node), format!("uid-n{node}-1"));
            Some(Arc::new(ObservedNode::ready_node(
                name,
                uid,
                host_boot_id(node, 1),
            )))
        };
        let mut world = PlannedWorld {
            config: &self.config,
            pools: &self.pools,
            nodes: (0..nodes).map(there).collect(),
            leases: (0..self.config.slots)
                .map(|slot| Arc::new(free_slot(slot)))
                .collect(),
            coordinators: vec![None; nodes],
            hosts: (0..nodes).map(host).collect(),
            late: Vec::new(),
            remediation: RemediationStage::None,
            faults: self.config.faults,
            crashes: self.config.crashes,
            foreign: self.config.foreign,
            broken: None,
            origin: WorldOrigin::default(),
        };
        for node in 0..nodes {
            world.start_run(node);
        }
        if self.config.last_is_cordoned {
            world.cordon_by_person(nodes - 1);
        }
        vec![world.pack()]
    }

    fn actions(&self, state: &PlannedState, actions: &mut Vec<PlannedAction>) {
        if state.broken.is_some() {
            return;
        }
        for node in 0..state.hosts.len() {
            if let Some(key) = state.coordinators[node] {
                if !self.pools.coordinators.find_value(key).stopped {
                    self.push_observations(node, key, actions);
                    self.push_turns(state, node, key, actions);
                }
            }
            self.push_host_events(state, node, actions);
        }
        for which in 0..state.late.len() {
            let which = u8::try_from(which).expect("few writes");
            actions.extend([PlannedAction::Arrive(which), PlannedAction::Lose(which)]);
        }
        let world = self.world(state);
        for slot in 0..state.leases.len() {
            if world.is_left_behind(slot) {
                actions.push(PlannedAction::Heal(u8::try_from(slot).expect("few slots")));
            }
        }
        if self.config.remediation && state.remediation < RemediationStage::Done {
            actions.push(PlannedAction::Remediate);
        }
    }

    fn next_state(&self, state: &PlannedState, action: PlannedAction) -> Option<PlannedState> {
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
            self.graph.add_state(&next, || self.is_all_back(&next));
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn keeps(state: &PlannedState, promise: Promise) -> bool {
            keeps_promise(state.broken.as_ref(), promise)
        }
        vec![
            Property::always("S1", |_, state| keeps(state, Promise::MutualExclusion)),
            Property::always("S3", |_, state| keeps(state, Promise::NothingForeignUndone)),
            Property::always("S4", |_, state| keeps(state, Promise::NewBootId)),
            Property::always("S5", |_, state| keeps(state, Promise::OneReboot)),
            Property::always("S6", |_, state| keeps(state, Promise::NobodyLeftBehind)),
            Property::always("stuck", |model: &Self, state| {
                !model.graph.is_wanted_trap(state)
            }),
            Property::sometimes("every node is back", |model: &Self, state| {
                model.is_all_back(state)
            }),
        ]
    }
}

fn free_slot(slot: u32) -> ObservedLease {
    ObservedLease {
        name: lease_name(usize::try_from(slot).expect("few slots")),
        slot,
        uid: format!("uid-slot-{slot}"),
        resource_version: "1".into(),
        holder: None,
        record: None,
        next_waiters: Vec::new(),
        yield_count: 0,
        leftover: false,
        freed_at: None,
        room_since: None,
    }
}

impl WorldModel for PlannedModel {
    fn describe_state(&self, state: &PlannedState) -> String {
        if state.broken.is_some() {
            return state.describe_broken();
        }
        let views = state.coordinators.iter().enumerate();
        let causes = views.map(|(node, key)| {
            let Some(key) = key else {
                return format!("n{node}: no coordinator");
            };
            let causes = Clock::ALL.map(|clock| {
                let cause = self.decision(node, *key, clock).cause.clone();
                format!("{}: {}", cause.reason, cause.message)
            });
            format!("n{node}: {}", causes.join(" / "))
        });
        causes.collect::<Vec<_>>().join("; ")
    }

    fn describe_step(&self, before: &PlannedState, action: &PlannedAction) -> String {
        if let PlannedAction::Act { node, clock, .. } = action
            && let Some(key) = before.coordinators[usize::from(*node)]
        {
            let cause = self.decision((*node).into(), key, *clock).cause.reason;
            return format!("{action:?}: {cause}");
        }
        format!("{action:?}")
    }
}
