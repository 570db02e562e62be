//! The Node's host, as NodeReboots see it, and its power controller.

use std::sync::Arc;

use dogwatch_api::annotation::NODE_REBOOT_PREFIX;

use super::super::*;
use super::kit::*;
use crate::name::BootId;
use crate::power::tests::world::{World as PowerWorld, host};
use crate::power::{CurrentPower, HostSnapshot, PowerOffProof, PowerReason, find_off_proof};
use crate::reboot::RebootPhase;
use crate::remediation::{HostLinkProblem, ObservedPower};
use dogwatch_api::node_reboot::RebootMethod;

#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each test changes some facts of the host"
)]
pub struct HostKit {
    pub is_controlled: bool,
    pub is_identity_required: bool,
    pub host: Option<HostSnapshot>,
    /// Why the links lead to no host, although there is one.
    pub problem: Option<HostLinkProblem>,
    /// The API server answers reads of hosts.
    pub is_readable: bool,
    /// The power controller knows the host.
    pub is_known: bool,
    pub obstacle: Option<(PowerReason, String)>,
    pub bmc_answers: bool,
    pub system_uuid: Option<String>,
    pub is_on: bool,
    pub known_reads: Vec<NodeHostRead>,
    pub reads: usize,
    pub offs: u32,
    /// A key was put on it: it goes off and on, whatever becomes of the key.
    pub is_reboot_owed: bool,
    /// The keys for which off is proved, and the proof.
    pub proof: Option<(Vec<(String, String)>, PowerOffProof)>,
}

impl HostKit {
    pub fn none() -> Self {
        Self {
            is_controlled: true,
            is_identity_required: false,
            host: None,
            problem: None,
            is_readable: true,
            is_known: true,
            obstacle: None,
            bmc_answers: true,
            system_uuid: None,
            is_on: true,
            known_reads: Vec::new(),
            reads: 0,
            offs: 0,
            is_reboot_owed: false,
            proof: None,
        }
    }

    pub fn one() -> Self {
        let mut host = host(&[], true);
        host.status.provisioning = Some("provisioned".into());
        Self {
            host: Some(host),
            ..Self::none()
        }
    }

    pub fn change(&mut self, change: impl FnOnce(&mut HostSnapshot)) {
        if let Some(host) = &mut self.host {
            change(host);
            let version: u32 = host.resource_version.parse().unwrap();
            host.resource_version = (version + 1).to_string();
        }
    }

    /// Our keys on the host.
    pub fn keys(&self) -> Vec<(String, String)> {
        let host = self.host.iter();
        let all = host.flat_map(|host| host.annotations.clone());
        all.filter(|(name, _)| name.starts_with(NODE_REBOOT_PREFIX))
            .collect()
    }

    pub fn view(&self, is_concerned: bool) -> NodeHostView {
        let host = self.host.as_ref().filter(|_| self.is_known && is_concerned);
        NodeHostView {
            is_power_controlled: self.is_controlled,
            is_identity_required: self.is_identity_required,
            reads: self.known_reads.clone(),
            power: host.map(|host| NodeHostPower {
                host: Arc::new(host.clone()),
                obstacle: self.obstacle.clone(),
                observed: self.observed(),
            }),
        }
    }

    fn observed(&self) -> ObservedPower {
        ObservedPower {
            now: match (self.bmc_answers, self.is_on) {
                (false, _) => CurrentPower::Unknown,
                (true, true) => CurrentPower::On,
                (true, false) => CurrentPower::Off,
            },
            proof: self.current_proof(),
            bmc_answers: self.bmc_answers,
            system_uuid: self.system_uuid.clone(),
            off_since: None,
            because: Some("Word: what the power controller says".into()),
        }
    }

    /// A real power controller switches the host off for the keys that are on it, and proves it.
    fn prove_off(&mut self) {
        let keys = self.keys();
        let named: Vec<(&str, &str)> = keys
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut power = PowerWorld::new(&named, true, true);
        let provisioned = Some("provisioned".to_owned());
        power.seen.host_mut().status.provisioning = provisioned;
        for _ in 0..2_000 {
            power.tick();
            let proof = find_off_proof(&power.seen, &power.config, power.now());
            if proof.is_some() {
                self.proof = proof.map(|proof| (keys, proof));
                return;
            }
        }
        panic!("the host is not proved off");
    }

    fn current_proof(&self) -> Option<PowerOffProof> {
        let (_, proof) = self.proof.as_ref()?;
        (!self.is_on && self.bmc_answers).then(|| proof.clone())
    }

    pub fn read_host(&mut self, lookup: &HostLookup, now: crate::Now) {
        self.reads += 1;
        let host = self.host.clone().map(Arc::new);
        let missing = || HostLinkProblem::NoHost("no host".into());
        let found = match (&self.problem, lookup) {
            _ if !self.is_readable => Err("the API server is away".into()),
            (Some(problem), HostLookup::ByLinks) => Ok(Err(problem.clone())),
            (_, HostLookup::ByName(name)) => {
                Ok(host.filter(|host| host.name == *name).ok_or_else(missing))
            }
            (None, HostLookup::ByLinks) => Ok(host.ok_or_else(missing)),
        };
        let read = NodeHostRead {
            lookup: lookup.clone(),
            found,
            taken: now.mono,
        };
        read.replace_in(&mut self.known_reads);
    }

    /// Whether the patch was accepted.
    pub fn patch(&mut self, patch: &HostKeyPatch) -> bool {
        let same = |host: &HostSnapshot| {
            host.uid == patch.uid && host.resource_version == patch.resource_version
        };
        self.known_reads.clear();
        if !self.host.as_ref().is_some_and(same) {
            return false;
        }
        self.is_reboot_owed |= puts_key(patch);
        self.change(|host| {
            match &patch.value {
                Some(value) => host.annotations.insert(patch.key.clone(), value.clone()),
                None => host.annotations.remove(&patch.key),
            };
        });
        true
    }
}

/// Whether the power controller obeys what the patch writes.
pub fn puts_key(patch: &HostKeyPatch) -> bool {
    patch.value.is_some() && patch.key.starts_with(NODE_REBOOT_PREFIX)
}

impl World {
    pub fn with_host(name: &str, plan: NodeRebootPlan) -> Self {
        let mut world = Self::with_reboot(name, plan);
        world.host = HostKit::one();
        world
    }

    /// The next step of the power controller and the machine.
    pub fn switch_host(&mut self) {
        if !self.host.bmc_answers || self.host.host.is_none() {
            return;
        }
        let keys = self.host.keys();
        let is_held = !keys.is_empty();
        if self.host.is_on && self.host.is_reboot_owed {
            self.host.is_on = false;
            self.host.offs += 1;
            self.change_node(|node| node.ready = false);
        } else if !self.host.is_on && !is_held {
            self.host.is_on = true;
            self.host.is_reboot_owed = false;
            self.host.proof = None;
            self.boot_node();
        }
        let proved = self.host.proof.as_ref().map(|(keys, _)| keys);
        if is_held && proved != Some(&keys) {
            self.host.prove_off();
        }
    }

    pub fn boot_node(&mut self) {
        self.boots += 1;
        let boot = BootId::new(format!("boot-{}", self.boots)).unwrap();
        self.change_node(|node| {
            node.ready = true;
            node.boot_id = Some(boot);
        });
    }

    /// A key is put only on the host of a drained, cordoned node.
    pub fn assert_drained(&self) {
        let node = self.node.as_ref().unwrap();
        let record = self.record().expect("a record");
        assert_eq!(record.phase, RebootPhase::Rebooting);
        assert_eq!(record.trigger.method, RebootMethod::PowerCycle);
        assert_eq!(node.boot_id.as_ref(), Some(&record.boot_id));
        assert!(node.unschedulable);
    }

    /// The coordinator until the node is drained.
    pub fn drain_node(&mut self) {
        for _ in 0..3 {
            self.coordinate();
            self.settle();
        }
    }

    /// The attempt's `power`, in short.
    pub fn power_steps(&self, name: &str) -> (bool, bool, bool) {
        let attempt = self.reboots[name].status.attempts.last();
        let power = attempt.and_then(|attempt| attempt.power.as_ref());
        let is_off = power.is_some_and(|power| power.off_at.is_some());
        let is_released = power.is_some_and(|power| power.released_at.is_some());
        (power.is_some(), is_off, is_released)
    }

    /// The reason of condition Progressing.
    pub fn reason(&self, name: &str) -> String {
        let mut all = self.reboots[name].status.conditions.iter();
        let found = all.find(|one| one.kind == "Progressing");
        found.map_or_else(String::new, |one| one.reason.clone())
    }

    /// The leader removes keys that no NodeReboot answers for.
    pub fn release_orphan_keys(&mut self) -> bool {
        let Some(host) = self.host.host.clone() else {
            return false;
        };
        let mut owners = host_keys(&host).map(str::to_owned).collect::<Vec<_>>();
        owners.retain(|owner| {
            let mut all = self.reboots.values();
            let own = all.find(|own| own.uid == *owner);
            !own.is_some_and(|own| is_power_cycle_open(own, &host))
        });
        let Some(owner) = owners.pop() else {
            return false;
        };
        let mut seen = HostKeySnapshot {
            host: Arc::new(host),
            owner,
            read: None,
        };
        let before = decide_host_key(&seen, self.now());
        assert!(before.actions.is_empty(), "the watch proves nothing");
        seen.read = Some(KeyOwnerRead {
            is_owned: Ok(false),
            taken: self.now().mono,
        });
        let decision = decide_host_key(&seen, self.now());
        let [NodeRebootAction::PatchHost(patch)] = decision.actions.as_slice() else {
            panic!("{decision:?}");
        };
        assert_eq!(patch.value, None);
        self.host.patch(patch)
    }
}
