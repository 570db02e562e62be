//! A state with its values at hand, while one action changes it.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use dogwatch_core::power::{
    self, BmcAddress, HostName, HostSnapshot, HostStatus, PowerAction, PowerDecision, PowerDevice,
    PowerLevel, reboot_annotations,
};

use super::PowerGuard;
use super::leader::{LeaderView, NEW_ID, decision_config, state_time};
use super::normal_form::{normalize_world, pass_tick};
use super::state::{CommandAtBmc, MisfortunesLeft, PowerFate, PowerOffConfig, PowerOffState};
use crate::promise::{BrokenPromise, Promise};
use crate::value_pool::{PoolKey, ValuePool};

pub const KEY: &str = "reboot.metal3.io/key";
const KEY_VALUE: &str = r#"{"mode":"hard"}"#;

/// A write of the status that is on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct LateStatusWrite {
    pub version: String,
    pub status: HostStatus,
}

/// Every value that the search has met, and every decision that it has asked for.
#[derive(Debug, Default)]
pub struct PowerOffPools {
    hosts: ValuePool<HostSnapshot>,
    pub leaders: ValuePool<LeaderView>,
    writes: ValuePool<LateStatusWrite>,
    decisions: RwLock<HashMap<PoolKey, Arc<PowerDecision>>>,
}

impl PowerOffPools {
    /// The production decision for this view; the same view gets the same decision.
    pub fn decide(&self, config: &PowerOffConfig, leader: PoolKey) -> Arc<PowerDecision> {
        let known = self.decisions.read().expect("no holder panics");
        if let Some(decision) = known.get(&leader) {
            return decision.clone();
        }
        drop(known);
        let mut flags = decision_config();
        match config.without {
            Some(PowerGuard::Settle) => flags.settle = Duration::ZERO,
            Some(PowerGuard::ConfirmInterval) => flags.confirm = Duration::ZERO,
            Some(_) | None => {}
        }
        let view = self.leaders.find_value(leader);
        let decision = power::decide(&view.snapshot(), &flags, NEW_ID, 0.5, state_time());
        let decision = Arc::new(PowerDecision {
            report: dogwatch_core::decision::DecisionReport::default(),
            ..decision
        });
        let mut known = self.decisions.write().expect("no holder panics");
        known.insert(leader, decision.clone());
        decision
    }
}

pub struct PowerOffWorld<'a> {
    pub config: &'a PowerOffConfig,
    pub pools: &'a PowerOffPools,
    pub stored: Arc<HostSnapshot>,
    pub leader: Arc<LeaderView>,
    pub deposed: Option<Arc<LeaderView>>,
    pub late_writes: Vec<Arc<LateStatusWrite>>,
    pub at_bmc: Vec<CommandAtBmc>,
    pub sent: Vec<String>,
    pub running: bool,
    pub is_lying: bool,
    pub left: MisfortunesLeft,
    pub broken: Option<BrokenPromise>,
}

impl<'a> PowerOffWorld<'a> {
    /// A host that runs, with a key on it that nobody has seen yet.
    pub fn new(config: &'a PowerOffConfig, pools: &'a PowerOffPools) -> Self {
        let stored = Arc::new(keyed_host());
        Self {
            config,
            pools,
            leader: Arc::new(LeaderView::new(stored.clone())),
            stored,
            deposed: None,
            late_writes: Vec::new(),
            at_bmc: Vec::new(),
            sent: Vec::new(),
            running: true,
            is_lying: false,
            left: MisfortunesLeft {
                lies: config.lies,
                faults: config.faults,
                takeovers: config.takeovers,
                key_changes: config.key_changes,
                delays: config.delays,
            },
            broken: None,
        }
    }

    pub fn unpack(
        config: &'a PowerOffConfig,
        pools: &'a PowerOffPools,
        state: &PowerOffState,
    ) -> Self {
        let late = state.late_writes.iter();
        Self {
            config,
            pools,
            stored: pools.hosts.find_value(state.stored),
            leader: pools.leaders.find_value(state.leader),
            deposed: state.deposed.map(|key| pools.leaders.find_value(key)),
            late_writes: late.map(|key| pools.writes.find_value(*key)).collect(),
            at_bmc: state.at_bmc.clone(),
            sent: state.sent.clone(),
            running: state.running,
            is_lying: state.is_lying,
            left: state.left,
            broken: state.broken.clone(),
        }
    }

    pub fn pack(mut self) -> PowerOffState {
        for leader in [Some(&mut self.leader), self.deposed.as_mut()] {
            let Some(leader) = leader.map(Arc::make_mut) else {
                continue;
            };
            let host = leader.host.clone();
            leader.memory.observe_host(&host, state_time());
        }
        normalize_world(&mut self);
        self.check_proofs();
        let late = self.late_writes.into_iter();
        let mut late: Vec<_> = late
            .map(|write| self.pools.writes.intern_value(write))
            .collect();
        late.sort_unstable();
        PowerOffState {
            stored: self.pools.hosts.intern_value(self.stored),
            leader: self.pools.leaders.intern_value(self.leader),
            deposed: self
                .deposed
                .map(|leader| self.pools.leaders.intern_value(leader)),
            late_writes: late,
            at_bmc: self.at_bmc,
            sent: self.sent,
            running: self.running,
            is_lying: self.is_lying,
            left: self.left,
            broken: self.broken,
        }
    }

    pub fn is_without(&self, guard: PowerGuard) -> bool {
        self.config.without == Some(guard)
    }

    pub fn break_promise(&mut self, promise: Promise, how: &'static str) {
        self.broken.get_or_insert(BrokenPromise { promise, how });
    }

    /// S2: whoever holds a proof for the key that is on the host may release at any moment, so the
    /// machine is off as long as there is one.
    fn check_proofs(&mut self) {
        if self.running && self.is_proved_off() {
            let how = "off is proved for the key on the host, and the machine runs";
            self.break_promise(Promise::ProofBeforeRelease, how);
        }
    }

    /// Whether somebody holds a proof for the key on the stored host.
    pub fn is_proved_off(&self) -> bool {
        let annotations = reboot_annotations(&self.stored);
        let Some(key) = annotations.iter().find(|annotation| annotation.name == KEY) else {
            return false;
        };
        let mut flags = decision_config();
        if self.is_without(PowerGuard::ConfirmInterval) {
            flags.confirm = Duration::ZERO;
        }
        if self.is_without(PowerGuard::Settle) {
            flags.settle = Duration::ZERO;
        }
        let mut leaders = [Some(&self.leader), self.deposed.as_ref()].into_iter();
        leaders.any(|leader| {
            let proof = leader
                .and_then(|leader| power::find_off_proof(&leader.snapshot(), &flags, state_time()));
            proof.is_some_and(|proof| proof.covers_annotation(key))
        })
    }

    pub fn pass_tick(&mut self) {
        self.is_lying = false;
        for leader in [Some(&mut self.leader), self.deposed.as_mut()] {
            if let Some(leader) = leader {
                pass_tick(&mut Arc::make_mut(leader).memory);
            }
        }
        self.at_bmc.retain_mut(|command| {
            command.ticks_left -= 1;
            command.ticks_left > 0
        });
    }

    /// A process that knows nothing leads from now on.
    pub fn take_over(&mut self) {
        let next = Arc::new(LeaderView::new(self.stored.clone()));
        let before = std::mem::replace(&mut self.leader, next);
        let kept =
            self.is_without(PowerGuard::LeaderSends) || self.is_without(PowerGuard::LeaderReleases);
        self.deposed = kept.then_some(before);
    }

    pub fn change_key(&mut self, present: bool) {
        self.left.key_changes -= 1;
        change_host(&mut self.stored, |host| {
            if present {
                host.annotations.insert(KEY.into(), KEY_VALUE.into());
            } else {
                host.annotations.remove(KEY);
            }
        });
    }

    pub fn act(&mut self, action: &PowerAction, fate: PowerFate) {
        self.pay(fate);
        match action {
            PowerAction::WriteStatus(write) => self.write_status(write.status.clone(), fate),
            PowerAction::RemoveAnnotations(names) => {
                if self.stored.resource_version == self.leader.host.resource_version {
                    change_host(&mut self.stored, |host| {
                        host.annotations.retain(|name, _| !names.contains(name));
                    });
                }
                let stored = self.stored.clone();
                Arc::make_mut(&mut self.leader).host = stored;
            }
            PowerAction::Send(command) => self.send_command(command, fate),
        }
    }

    pub fn pay(&mut self, fate: PowerFate) {
        let (faults, takeovers) = fate.cost();
        self.left.faults -= faults;
        self.left.takeovers -= takeovers;
    }

    fn write_status(&mut self, mut status: HostStatus, fate: PowerFate) {
        let mut written = None;
        if let Some(command) = status.power.command.as_mut().filter(|it| it.id == NEW_ID) {
            // No other command has it: all others are c1, c2, …
            command.id = "c0".into();
            written = Some(command.clone());
        }
        let id = written.as_ref().map(|command| command.id.clone());
        if let Some(id) = &id {
            Arc::make_mut(&mut self.leader)
                .memory
                .record_write_begun(id);
        }
        let write = LateStatusWrite {
            version: self.leader.host.resource_version.clone(),
            status,
        };
        match fate {
            PowerFate::Good | PowerFate::Fails | PowerFate::NoTask => {
                let landed = self.land_write(&write);
                let stored = self.stored.clone();
                let leader = Arc::make_mut(&mut self.leader);
                if !landed {
                    return leader.apply_fresh_read(&stored);
                }
                if let Some(id) = id {
                    leader.memory.record_write_done(id, state_time().mono);
                }
                leader.host = stored;
            }
            PowerFate::AnswerLost => {
                self.land_write(&write);
                self.read_fresh();
            }
            PowerFate::Late => {
                self.late_writes.push(Arc::new(write));
                self.read_fresh();
            }
            PowerFate::Dies => {
                self.land_write(&write);
                self.take_over();
            }
            PowerFate::DiesLate => {
                self.late_writes.push(Arc::new(write));
                self.take_over();
            }
            PowerFate::SentFirst => {
                if let Some(command) = written {
                    self.check_command(&command);
                    self.queue_command(&command);
                }
                self.take_over();
            }
        }
    }

    fn read_fresh(&mut self) {
        let stored = self.stored.clone();
        Arc::make_mut(&mut self.leader).apply_fresh_read(&stored);
    }

    /// Whether the write was accepted.
    pub fn land_write(&mut self, write: &LateStatusWrite) -> bool {
        let same = self.stored.resource_version == write.version;
        if !same && !self.is_without(PowerGuard::StatusVersion) {
            return false;
        }
        let status = write.status.clone();
        change_host(&mut self.stored, |host| host.status = status);
        true
    }

    /// As spec and key want it: proved off with the key, running without one.
    pub fn is_as_wanted(&self) -> bool {
        if self.stored.annotations.contains_key(KEY) {
            return self.is_proved_off();
        }
        self.running && self.stored.status.power.command.is_none()
    }
}

fn change_host(host: &mut Arc<HostSnapshot>, change: impl FnOnce(&mut HostSnapshot)) {
    let host = Arc::make_mut(host);
    change(host);
    let version: u64 = host.resource_version.parse().expect("a number");
    host.resource_version = (version + 1).to_string();
}

fn keyed_host() -> HostSnapshot {
    let address = BmcAddress::parse("redfish://192.0.2.1/redfish/v1/Systems/1");
    HostSnapshot {
        name: HostName::new("hosts", "h0"),
        uid: "uid-h0".into(),
        created: None,
        resource_version: "1".into(),
        deleting: false,
        annotations: [(KEY.to_owned(), KEY_VALUE.to_owned())].into(),
        online: true,
        externally_provisioned: None,
        disable_power_off: false,
        consumer: None,
        levels: vec![PowerLevel {
            devices: vec![PowerDevice {
                address,
                credentials: "bmc".into(),
                verify: true,
            }],
        }],
        status: HostStatus::default(),
    }
}
