//! A state with its values at hand, while one action changes it.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use dogwatch_core::remediation::RemediationAction;

use super::RemediationGuard;
use super::normal_form::renumber_versions;
use super::objects::ClusterObjects;
use super::power::PowerViews;
use super::process::{DecidedRemediation, RemediatorView, long_ago};
use super::state::{
    MachineState, MisfortunesLeft, PowerStage, RemediationWorldConfig, RemediationWorldState,
};
use crate::promise::{BrokenPromise, Promise};
use crate::value_pool::{PoolKey, ValuePool};

type DecidedPass = Arc<Vec<DecidedRemediation>>;

/// Every value that the search has met, and every decision that it has asked for.
#[derive(Debug)]
pub struct RemediationPools {
    objects: ValuePool<ClusterObjects>,
    processes: ValuePool<RemediatorView>,
    writes: ValuePool<RemediationAction>,
    decisions: RwLock<HashMap<(PoolKey, PowerStage), DecidedPass>>,
    pub views: PowerViews,
}

impl RemediationPools {
    pub fn new(config: &RemediationWorldConfig) -> Self {
        Self {
            objects: ValuePool::default(),
            processes: ValuePool::default(),
            writes: ValuePool::default(),
            decisions: RwLock::default(),
            views: PowerViews::new(config.wrong_bmc),
        }
    }

    /// The production decisions for this view; the same view gets the same decisions.
    pub fn decide_all(&self, state: &RemediationWorldState) -> DecidedPass {
        let key = (state.process, state.machine.power);
        let known = self.decisions.read().expect("no holder panics");
        if let Some(decided) = known.get(&key) {
            return decided.clone();
        }
        drop(known);
        let view = self.processes.find_value(state.process);
        let decided = Arc::new(view.decide_all(&self.views, state.machine.power));
        let mut known = self.decisions.write().expect("no holder panics");
        known.insert(key, decided.clone());
        decided
    }
}

pub struct RemediationWorld<'a> {
    pub config: &'a RemediationWorldConfig,
    pub pools: &'a RemediationPools,
    pub stored: ClusterObjects,
    pub process: Arc<RemediatorView>,
    pub late: Vec<Arc<RemediationAction>>,
    pub machine: MachineState,
    pub left: MisfortunesLeft,
    pub broken: Option<BrokenPromise>,
}

impl<'a> RemediationWorld<'a> {
    pub fn new(config: &'a RemediationWorldConfig, pools: &'a RemediationPools) -> Self {
        let stored = ClusterObjects::new();
        Self {
            config,
            pools,
            process: Arc::new(RemediatorView::new(stored.clone())),
            stored,
            late: Vec::new(),
            machine: MachineState {
                running: true,
                power: PowerStage::On,
                boots: 1,
                unserved_marks: 1,
                marks_so_far: 1,
            },
            left: MisfortunesLeft {
                faults: config.faults,
                crashes: config.crashes,
                marks: config.marks,
                withdrawals: config.withdrawals,
            },
            broken: None,
        }
    }

    pub fn unpack(
        config: &'a RemediationWorldConfig,
        pools: &'a RemediationPools,
        state: &RemediationWorldState,
    ) -> Self {
        let late = state.late.iter();
        Self {
            config,
            pools,
            stored: ClusterObjects::clone(&pools.objects.find_value(state.stored)),
            process: pools.processes.find_value(state.process),
            late: late.map(|key| pools.writes.find_value(*key)).collect(),
            machine: state.machine,
            left: state.left,
            broken: state.broken.clone(),
        }
    }

    pub fn pack(mut self) -> RemediationWorldState {
        self.record_decisions();
        renumber_versions(&mut self);
        let late = self.late.into_iter();
        let mut late: Vec<_> = late
            .map(|write| self.pools.writes.intern_value(write))
            .collect();
        late.sort_unstable();
        RemediationWorldState {
            stored: self.pools.objects.intern_value(Arc::new(self.stored)),
            process: self.pools.processes.intern_value(self.process),
            late,
            machine: self.machine,
            left: self.left,
            broken: self.broken,
        }
    }

    fn record_decisions(&mut self) {
        let process = Arc::make_mut(&mut self.process);
        process.record_decisions(&self.pools.views, self.machine.power);
        for memory in process.memories.values_mut() {
            if self.config.without == Some(RemediationGuard::KeepUnneededBackup) {
                let since = memory.host_without_key_since;
                memory.host_without_key_since = since.map(|_| long_ago());
            }
            if self.config.without == Some(RemediationGuard::RewriteDoubtfulBackup) {
                memory.doubtful_backup = None;
            }
        }
    }

    pub fn is_without(&self, guard: RemediationGuard) -> bool {
        self.config.without == Some(guard)
    }

    pub fn break_promise(&mut self, promise: Promise, how: &'static str) {
        self.broken.get_or_insert(BrokenPromise { promise, how });
    }

    /// The remediation is over and the Node is back. Where the BMC is another machine's, nothing may
    /// be released, and the mark waits for a person.
    pub fn is_at_good_end(&self) -> bool {
        if self.config.wrong_bmc {
            return self.stored.node.is_some();
        }
        let calm = self.stored.list_leftovers().is_empty();
        calm && self.machine.running && self.machine.power == PowerStage::On
    }
}
