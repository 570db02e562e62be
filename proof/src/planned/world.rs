//! A state with its values at hand, while one action changes it.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::lock::ObservedLease;
use dogwatch_core::name::{BootId, NodeName, RunId};
use dogwatch_core::reboot::{self, ObservedNode, RebootConfig, RebootDecision};

use super::coordinator::{CoordinatorView, LocalFacts};
use super::server::ServerWrite;
use super::state::{HostState, PlannedConfig, PlannedState, RemediationStage};
use super::time::Clock;
use super::{PlannedGuard, versions};
use crate::promise::{BrokenPromise, Promise};
use crate::value_pool::{PoolKey, ValuePool};

/// Every value that the search has met, and every decision that it has asked for.
#[derive(Debug, Default)]
pub struct PlannedPools {
    pub nodes: ValuePool<ObservedNode>,
    pub leases: ValuePool<ObservedLease>,
    pub coordinators: ValuePool<CoordinatorView>,
    pub writes: ValuePool<ServerWrite>,
    decisions: RwLock<HashMap<(usize, PoolKey, Clock), Arc<RebootDecision>>>,
}

impl PlannedPools {
    /// The production decision for this view; the same view gets the same decision.
    pub fn decide(
        &self,
        config: &PlannedConfig,
        node: usize,
        key: PoolKey,
        clock: Clock,
    ) -> Arc<RebootDecision> {
        let known = |pools: &Self| {
            let decisions = pools.decisions.read().expect("no holder panics");
            decisions.get(&(node, key, clock)).cloned()
        };
        if let Some(decision) = known(self) {
            return decision;
        }
        let view = self.coordinators.find_value(key);
        let decision = decide_for_view(config, node, &view, clock);
        let decision = Arc::new(RebootDecision {
            report: dogwatch_core::decision::DecisionReport::default(),
            ..decision
        });
        let mut decisions = self.decisions.write().expect("no holder panics");
        decisions.insert((node, key, clock), decision.clone());
        decision
    }
}

pub fn decide_for_view(
    config: &PlannedConfig,
    node: usize,
    view: &CoordinatorView,
    clock: Clock,
) -> RebootDecision {
    let flags = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(config.maxima[node]),
        ..RebootConfig::default()
    };
    reboot::decide(&view.seen, &flags, clock.decision_time())
}

pub struct PlannedWorld<'a> {
    pub config: &'a PlannedConfig,
    pub pools: &'a PlannedPools,
    pub nodes: Vec<Option<Arc<ObservedNode>>>,
    pub leases: Vec<Arc<ObservedLease>>,
    pub coordinators: Vec<Option<Arc<CoordinatorView>>>,
    pub hosts: Vec<HostState>,
    pub late: Vec<Arc<ServerWrite>>,
    pub remediation: RemediationStage,
    pub faults: u8,
    pub crashes: u8,
    pub foreign: u8,
    pub broken: Option<BrokenPromise>,
    pub origin: WorldOrigin,
}

/// The values that a state was unpacked to: what is still the same needs no new key.
#[derive(Default)]
pub struct WorldOrigin {
    nodes: Vec<Option<(Arc<ObservedNode>, PoolKey)>>,
    leases: Vec<(Arc<ObservedLease>, PoolKey)>,
    coordinators: Vec<Option<(Arc<CoordinatorView>, PoolKey)>>,
    local: Vec<LocalFacts>,
}

impl WorldOrigin {
    fn is_settled(&self, node: usize, view: &Arc<CoordinatorView>, local: LocalFacts) -> bool {
        let same = |(known, _): &(Arc<CoordinatorView>, PoolKey)| Arc::ptr_eq(known, view);
        let known = self.coordinators.get(node).and_then(Option::as_ref);
        known.is_some_and(same) && self.local.get(node) == Some(&local)
    }
}

/// The key of a value; the known one, if it is the value that was unpacked.
fn key_of<T: std::fmt::Debug>(
    pool: &ValuePool<T>,
    value: Arc<T>,
    known: Option<&(Arc<T>, PoolKey)>,
) -> PoolKey {
    match known {
        Some((known, key)) if Arc::ptr_eq(known, &value) => *key,
        Some(_) | None => pool.intern_value(value),
    }
}

impl<'a> PlannedWorld<'a> {
    pub fn unpack(
        config: &'a PlannedConfig,
        pools: &'a PlannedPools,
        state: &PlannedState,
    ) -> Self {
        let node = |key: &Option<PoolKey>| key.map(|key| (pools.nodes.find_value(key), key));
        let view = |key: &Option<PoolKey>| key.map(|key| (pools.coordinators.find_value(key), key));
        let leases = state.leases.iter();
        let origin = WorldOrigin {
            nodes: state.nodes.iter().map(node).collect(),
            leases: leases
                .map(|key| (pools.leases.find_value(*key), *key))
                .collect(),
            coordinators: state.coordinators.iter().map(view).collect(),
            local: state.hosts.iter().map(|host| host.local).collect(),
        };
        let late = state.late.iter();
        Self {
            config,
            pools,
            nodes: origin
                .nodes
                .iter()
                .map(|it| Some(it.as_ref()?.0.clone()))
                .collect(),
            leases: origin.leases.iter().map(|it| it.0.clone()).collect(),
            coordinators: origin
                .coordinators
                .iter()
                .map(|it| Some(it.as_ref()?.0.clone()))
                .collect(),
            origin,
            hosts: state.hosts.clone(),
            late: late.map(|key| pools.writes.find_value(*key)).collect(),
            remediation: state.remediation,
            faults: state.faults,
            crashes: state.crashes,
            foreign: state.foreign,
            broken: state.broken.clone(),
        }
    }

    pub fn pack(mut self) -> PlannedState {
        for node in 0..self.hosts.len() {
            self.settle_view(node);
        }
        versions::renumber_versions(&mut self);
        self.check_budget();
        let (pools, origin) = (self.pools, self.origin);
        let nodes = self.nodes.into_iter().enumerate().map(|(place, node)| {
            let known = origin.nodes.get(place).and_then(Option::as_ref);
            Some(key_of(&pools.nodes, node?, known))
        });
        let coordinators = self
            .coordinators
            .into_iter()
            .enumerate()
            .map(|(place, view)| {
                let known = origin.coordinators.get(place).and_then(Option::as_ref);
                Some(key_of(&pools.coordinators, view?, known))
            });
        let leases = self.leases.into_iter().enumerate();
        let leases =
            leases.map(|(place, lease)| key_of(&pools.leases, lease, origin.leases.get(place)));
        let late = self.late.into_iter();
        let mut late: Vec<_> = late.map(|write| pools.writes.intern_value(write)).collect();
        late.sort_unstable();
        PlannedState {
            nodes: nodes.collect(),
            leases: leases.collect(),
            coordinators: coordinators.collect(),
            hosts: self.hosts,
            late,
            remediation: self.remediation,
            faults: self.faults,
            crashes: self.crashes,
            foreign: self.foreign,
            broken: self.broken,
        }
    }

    /// Gives the coordinator what it knows of its host, as far as its decision asks for it.
    fn settle_view(&mut self, node: usize) {
        let local = self.hosts[node].local;
        let Some(view) = &mut self.coordinators[node] else {
            return;
        };
        if self.origin.is_settled(node, view, local) {
            return;
        }
        for _ in 0..2 {
            let key = self.pools.coordinators.intern_value(view.clone());
            let decide = |clock| self.pools.decide(self.config, node, key, clock);
            let decisions = Clock::ALL.map(decide);
            let looks: Vec<_> = decisions
                .iter()
                .flat_map(|decision| decision.observe.clone())
                .collect();
            let mut settled = CoordinatorView::clone(view);
            settled.settle_local_facts(local, &looks, self.config.count_list());
            if settled == **view {
                return;
            }
            *view = Arc::new(settled);
        }
    }

    pub fn is_without(&self, guard: PlannedGuard) -> bool {
        self.config.without == Some(guard)
    }

    pub fn break_promise(&mut self, promise: Promise, how: &'static str) {
        self.broken.get_or_insert(BrokenPromise { promise, how });
    }

    /// Starts a new run of the node's coordinator.
    pub fn start_run(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.runs += 1;
        let run = RunId::new(format!("coordinator/n{node}-{}", host.runs)).expect("a valid id");
        let boot = if self.config.without == Some(PlannedGuard::BootId) {
            host_boot_id(node, host.boot.max(host.runs))
        } else {
            host_boot_id(node, host.boot)
        };
        let view = CoordinatorView::new(&node_name(node), run, boot);
        self.coordinators[node] = Some(Arc::new(view));
    }
}

pub fn node_name(node: usize) -> NodeName {
    NodeName::new(format!("n{node}")).expect("a valid name")
}

pub fn host_boot_id(node: usize, boot: u8) -> BootId {
    BootId::new(format!("boot-n{node}-{boot}")).expect("a valid id")
}
