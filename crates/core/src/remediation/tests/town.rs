//! A simulated town of machines: hosts with BMCs and the real power decision, kubelets, Nodes, and
//! a shell that performs the remediator's decisions, with its own clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::Now;
use crate::name::{BootId, NodeName};
use crate::power::tests::model::Dice;
use crate::power::tests::world::World as Power;
use crate::power::{HostName, HostSnapshot};
use crate::reboot::ObservedNode;

const BEAT: u64 = 10_000;
/// How long a Node stays Ready without heartbeats, in milliseconds.
const GRACE: u64 = 40_000;

/// One machine, its host, and its kubelet.
pub(super) struct Site {
    pub(super) name: String,
    pub(super) power: Power,
    /// Whether the kubelet reaches the API server. Its processes write to their volumes in any
    /// case.
    pub(super) is_connected: bool,
    pub(super) boots: u32,
    /// When the kubelet of this boot registers; `None`: the machine is off.
    registers_at: Option<u64>,
    last_beat: u64,
}

/// A whole Node object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) seen: ObservedNode,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) taints: Vec<NodeTaint>,
}

pub(super) struct Town {
    pub(super) config: RemediationConfig,
    pub(super) sites: Vec<Site>,
    pub(super) machines: BTreeMap<MachineName, ObservedMachine>,
    pub(super) nodes: BTreeMap<NodeName, Object>,
    pub(super) leases: BTreeMap<NodeName, String>,
    /// The Leases of control-plane nodes that were taken beside another one.
    not_alone: BTreeSet<NodeName>,
    /// Stored backups, by the UID of the host.
    pub(super) backups: BTreeMap<String, StoredBackup>,
    pub(super) known: BTreeMap<RemediationSubject, RemediationMemory>,
    /// How many steps the shell has done; it crashes before the step of a given number.
    pub(super) steps: u32,
    pub(super) dies_at: Option<u32>,
    /// The writes in order, such as `AddKey h-a`.
    pub(super) written: Vec<String>,
    /// The reasons of the decisions, without repetitions in a row.
    pub(super) reasons: Vec<(RemediationSubject, RemediationReason)>,
    pub(super) events: BTreeSet<String>,
    /// How often the shell decides, in milliseconds.
    pub(super) every: u64,
    /// How long a machine takes from power-on until its kubelet registers, in milliseconds.
    pub(super) boot: u64,
    /// The faults between the shell and the API server.
    pub(super) faults: Option<Faults>,
    /// How often a key was added to each host.
    pub(super) keys: BTreeMap<HostName, usize>,
    pub(super) desk: super::request::desk::Desk,
    uids: u32,
    version: u64,
    is_dead: bool,
}

/// Watches that are behind, writes that fail, and answers that are lost.
pub(super) struct Faults {
    pub(super) dice: Dice,
    older: Option<RemediationSnapshot>,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let dice = Dice::new(seed);
        Self { dice, older: None }
    }

    /// What the watches show.
    fn shows(&mut self, now: RemediationSnapshot) -> RemediationSnapshot {
        match self.older.take() {
            Some(older) if self.dice.one_in(3) => {
                self.older = Some(older.clone());
                older
            }
            Some(_) | None => {
                self.older = Some(now.clone());
                now
            }
        }
    }
}

impl Town {
    /// Machines with these names, each on its host, with its Node.
    pub(super) fn new(names: &[&str]) -> Self {
        let mut town = Self {
            config: RemediationConfig::default(),
            sites: Vec::new(),
            machines: BTreeMap::new(),
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            not_alone: BTreeSet::new(),
            backups: BTreeMap::new(),
            known: BTreeMap::new(),
            steps: 0,
            dies_at: None,
            written: Vec::new(),
            reasons: Vec::new(),
            events: BTreeSet::new(),
            every: 200,
            boot: 60_000,
            faults: None,
            keys: BTreeMap::new(),
            desk: super::request::desk::Desk::default(),
            uids: 0,
            version: 1,
            is_dead: false,
        };
        for name in names {
            town.sites.push(Site {
                name: (*name).to_owned(),
                power: power_of(&host(name), true),
                is_connected: true,
                boots: 0,
                registers_at: Some(0),
                last_beat: 0,
            });
            let machine = machine(name);
            town.machines.insert(machine.name.clone(), machine);
        }
        town.run(20);
        town
    }

    pub(super) fn now(&self) -> Now {
        self.sites[0].power.now()
    }

    pub(super) fn mono(&self) -> Duration {
        self.now().mono
    }

    pub(super) fn site(&mut self, name: &str) -> &mut Site {
        let mut sites = self.sites.iter_mut();
        sites.find(|site| site.name == name).unwrap()
    }

    pub(super) fn host(&self, name: &str) -> &HostSnapshot {
        let mut sites = self.sites.iter();
        &sites
            .find(|site| site.name == name)
            .unwrap()
            .power
            .seen
            .host
    }

    pub(super) fn machine(&mut self, name: &str) -> &mut ObservedMachine {
        self.version += 1;
        let machine = self.machines.get_mut(&machine_name(name)).unwrap();
        machine.resource_version = self.version.to_string();
        machine
    }

    pub(super) fn mark(&mut self, name: &str) {
        self.machine(name).need = Some(String::new());
    }

    pub(super) fn node(&self, name: &str) -> Option<&Object> {
        self.nodes.get(&node_name(name))
    }

    /// Whether a backup of its Node is stored.
    pub(super) fn keeps(&self, name: &str) -> bool {
        self.backups.contains_key(&self.host(name).uid)
    }

    pub(super) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 20 {
            self.tick();
        }
    }

    /// Runs until the condition holds, for ten minutes at most.
    pub(super) fn until(&mut self, what: &str, holds: impl Fn(&Town) -> bool) {
        for _ in 0..12_000 {
            if holds(self) {
                return;
            }
            self.tick();
        }
        panic!(
            "not {what}: {:?}\n{:?}\n{:?}",
            self.written, self.reasons, self.events
        );
    }

    pub(super) fn tick(&mut self) {
        for at in 0..self.sites.len() {
            self.sites[at].power.tick();
            self.kubelet(at);
        }
        let time = self.sites[0].power.time;
        self.is_dead = time < self.sites[0].power.down_until;
        if !self.is_dead && time.is_multiple_of(self.every) {
            self.pass();
        }
    }

    fn kubelet(&mut self, at: usize) {
        let site = &mut self.sites[at];
        let time = site.power.time;
        match (site.power.is_on(), site.registers_at) {
            (false, _) => site.registers_at = None,
            (true, None) => {
                site.boots += 1;
                site.registers_at = Some(time + self.boot);
            }
            (true, Some(registers)) => {
                let is_due = time >= registers && time >= site.last_beat + BEAT;
                if is_due && site.is_connected {
                    site.last_beat = time;
                    self.posts(at);
                }
            }
        }
        let site = &self.sites[at];
        let is_late = time >= site.last_beat + GRACE;
        if let Some(node) = self.nodes.get_mut(&node_name(&site.name)) {
            node.seen.ready &= !is_late;
        }
    }

    /// The kubelet posts its state, and creates its Node if there is none.
    fn posts(&mut self, at: usize) {
        self.version += 1;
        let version = self.version.to_string();
        let site = &self.sites[at];
        let boot = BootId::new(format!("boot-{}", site.boots)).unwrap();
        if !self.nodes.contains_key(&node_name(&site.name)) {
            self.uids += 1;
        }
        let uid = format!("uid-{}-{}", site.name, self.uids);
        let new = || Object {
            seen: ObservedNode {
                uid,
                ..node(&site.name)
            },
            annotations: BTreeMap::new(),
            taints: Vec::new(),
        };
        let node = self.nodes.entry(node_name(&site.name)).or_insert_with(new);
        node.seen.ready = true;
        node.seen.boot_id = Some(boot);
        node.seen.resource_version = version;
    }

    pub(super) fn world(&self) -> RemediationSnapshot {
        let hosts = self.sites.iter().map(|site| {
            let mut host = site.power.seen.host.as_ref().clone();
            host.resource_version = site.power.version.to_string();
            host
        });
        let nodes = self.nodes.values().map(|node| node.seen.clone());
        let mut world = world(self.machines.values().cloned(), hosts, nodes);
        let lease = |(name, subject): (&NodeName, &String)| {
            let lease = HeldRemediationLease {
                subject: Some(subject.clone()),
                resource_version: "1".to_owned(),
                alone: !self.not_alone.contains(name),
                may_be_freed: false,
            };
            (name.clone(), lease)
        };
        world.leases = self.leases.iter().map(lease).collect();
        let backups = self.backups.iter();
        let backups = backups.map(|(host, kept)| (host.clone(), Arc::new(kept.clone())));
        world.backups = backups.collect();
        world.requests = self.desk.objects();
        world
    }

    fn power(&self, host: &HostName) -> ObservedPower {
        let mut sites = self.sites.iter();
        let site = sites.find(|site| site.power.seen.host.name == *host);
        power_seen(&site.unwrap().power)
    }

    /// One pass over all remediations.
    pub(super) fn pass(&mut self) {
        let mut world = self.world();
        if let Some(faults) = &mut self.faults {
            world = faults.shows(world);
        }
        let cases = discover_remediations(&world);
        let mut around =
            ConcurrentRemediations::from_remediations(&cases, |host| self.power(host).bmc_answers);
        let there: BTreeSet<&RemediationSubject> = cases.iter().map(|case| &case.subject).collect();
        assert_eq!(there.len(), cases.len(), "a subject twice");
        self.known.retain(|subject, _| there.contains(subject));
        for case in &cases {
            if self.is_dead {
                return;
            }
            self.handle(case, &mut around);
        }
    }

    fn handle(&mut self, case: &Remediation, around: &mut ConcurrentRemediations) {
        let now = self.now();
        let power = case.host.as_ref().ok().map(|host| self.power(&host.name));
        let answers = power.as_ref().is_some_and(|power| power.bmc_answers);
        let known = self.known.entry(case.subject.clone()).or_default();
        known.power = power;
        let decision = decide(case, known, around, &self.config, now);
        known.record_decision(case, &decision, now.mono);
        around.admit_decided(case, &decision, answers);
        self.note(case, &decision);
        self.tell(case, &decision.report);
        for look in &decision.observe {
            self.look(case, look);
        }
        for action in decision.actions {
            if self.dies() {
                break;
            }
            if !self.act(&action) {
                // As the loop does: earlier reads are outdated.
                if let Some(known) = self.known.get_mut(&case.subject) {
                    known.fresh = None;
                }
                break;
            }
            if self.dies() {
                break;
            }
        }
    }

    fn note(&mut self, case: &Remediation, decision: &RemediationDecision) {
        let reason = decision.cause.reason;
        let last = self
            .reasons
            .iter()
            .rev()
            .find(|(of, _)| *of == case.subject);
        if last.is_none_or(|(_, last)| *last != reason) {
            self.reasons.push((case.subject.clone(), reason));
        }
        for event in &decision.report.events {
            let text = format!("{}: {}", event.reason, event.message);
            self.events.insert(text);
        }
    }

    /// One step of the shell; returns whether it crashes.
    fn dies(&mut self) -> bool {
        self.steps += 1;
        if self.dies_at == Some(self.steps) {
            self.crash(12_000);
        }
        self.is_dead
    }

    /// The process crashes; another one leads after `pause` milliseconds.
    pub(super) fn crash(&mut self, pause: u64) {
        self.known.clear();
        for site in &mut self.sites {
            site.power.crash(pause);
        }
        self.is_dead = true;
    }

    fn beat(&self, node: &NodeName) -> NodeHeartbeat {
        let object = self.nodes.get(node).map(|node| Arc::new(node.seen.clone()));
        let mut sites = self.sites.iter();
        let site = sites.find(|site| node_name(&site.name) == *node);
        let ahead = site.map_or(0, |site| site.power.wall_ahead);
        let last = site.map_or(0, |site| site.last_beat);
        beat(
            object.as_ref(),
            (ahead + i64::try_from(last).unwrap()) / 1_000,
        )
    }

    fn look(&mut self, case: &Remediation, look: &RemediationObserve) {
        let mono = self.mono();
        let nobody = NodeName::new("nobody").unwrap();
        let name = case.node_name.clone().unwrap_or(nobody);
        let beat = self.beat(&name);
        let now = self.world();
        let mut fresh = fresh(&now, case, &beat, mono);
        let host = case.host.as_ref().ok();
        fresh.host = host.and_then(|host| now.hosts.get(&host.name)).cloned();
        fresh.node = now.nodes.get(&name).cloned();
        let object = self.nodes.get(&name);
        fresh.backup = object.map(|object| {
            NodeBackup::from_node(
                &object.seen,
                object.annotations.clone(),
                object.taints.clone(),
            )
        });
        if let RemediationSubject::Request(name) = &case.subject {
            fresh.needs_remediation = self.desk.needs(name);
        }
        let left = self.leftovers();
        let known = self.known.get_mut(&case.subject).unwrap();
        match look {
            RemediationObserve::Heartbeat { .. } => known.record_heartbeat(mono, mono, beat),
            RemediationObserve::Fresh { .. } => {
                known.record_heartbeat(mono, mono, beat);
                known.fresh = Some(fresh);
            }
            RemediationObserve::Leftovers { .. } => known.leftovers = Some(left),
        }
    }

    /// Whether the write was accepted.
    fn act(&mut self, action: &RemediationAction) -> bool {
        let fate = self
            .faults
            .as_mut()
            .map_or(9, |faults| faults.dice.roll(30));
        if fate == 0 {
            self.written.push(format!("{} (failed)", name_of(action)));
            return false;
        }
        let is_taken = self.takes(action);
        let text = name_of(action);
        let refused = if is_taken { "" } else { " (refused)" };
        self.written.push(format!("{text}{refused}"));
        if fate == 2 && self.faults.is_some() {
            self.crash(12_000);
        }
        // The answer may be lost.
        is_taken && fate != 1
    }

    fn takes(&mut self, action: &RemediationAction) -> bool {
        match action {
            RemediationAction::TakeLease {
                node,
                subject,
                control_plane,
                on_conflict,
            } => self.take_lease(node, subject, *control_plane, *on_conflict),
            RemediationAction::FreeLease { node, .. } => {
                self.not_alone.remove(node);
                self.leases.remove(node).is_some()
            }
            RemediationAction::MarkNode { node, .. } => {
                self.on_node(node, |it| it.seen.being_fenced = true)
            }
            RemediationAction::UnmarkNode { node } => {
                self.on_node(node, |it| it.seen.being_fenced = false)
            }
            RemediationAction::AddKey { host, key, record } => {
                let is_taken = self.on_host(host, |it| {
                    it.annotate(&key.annotation_name(), &key.annotation_value());
                    it.annotate("dogwatch.dev/remediation", &text(record));
                });
                *self.keys.entry(host.name.clone()).or_default() += usize::from(is_taken);
                is_taken
            }
            RemediationAction::RemoveKey { host, key, record } => self.on_host(host, |it| {
                it.remove(key);
                if let Some(record) = record {
                    it.annotate("dogwatch.dev/remediation", &text(record));
                }
            }),
            RemediationAction::WriteRecord { host, record } => self.on_host(host, |it| {
                it.annotate("dogwatch.dev/remediation", &text(record));
            }),
            RemediationAction::KeepBackup { host, backup, over } => {
                self.keep(host, backup, over.as_deref())
            }
            RemediationAction::DropBackup { stored } => {
                let there = self.backups.get(&stored.host_uid);
                let is_it = there.is_some_and(|it| it == stored.as_ref());
                is_it && self.backups.remove(&stored.host_uid).is_some()
            }
            RemediationAction::RemoveOldBackup { host } => {
                self.on_host(host, |it| it.remove("dogwatch.dev/node-backup"))
            }
            RemediationAction::Release(release) => self.release(release),
            RemediationAction::RemoveMachineNeed { machine } => {
                let there = self.machines.get_mut(&machine.name);
                let there = there.filter(|it| it.resource_version == machine.resource_version);
                there.and_then(|it| it.need.take()).is_some()
            }
            RemediationAction::RemoveNodeNeed { node } => {
                self.on_node(node, |it| it.seen.needs_remediation = false)
            }
            RemediationAction::Restore { node, backup } => self.on_node(node, |it| {
                it.seen.labels.extend(backup.labels.clone());
                it.annotations.extend(backup.annotations.clone());
                it.taints.extend(backup.taints.clone());
                it.seen.unschedulable |= backup.cordoned;
            }),
            RemediationAction::Untaint { node, tainted_at } => self.untaint(node, *tainted_at),
            RemediationAction::WriteStatus { request, status } => {
                self.write_status(request, status)
            }
            RemediationAction::AddFinalizer { request } => self.add_finalizer(request),
            RemediationAction::RemoveFinalizer { request } => self.remove_finalizer(request),
            RemediationAction::HandBack { machine, message } => self.hand_back(machine, message),
        }
    }

    fn take_lease(
        &mut self,
        node: &NodeName,
        subject: &RemediationSubject,
        control_plane: bool,
        on_conflict: LeaseConflictRule,
    ) -> bool {
        let is_new = self
            .leases
            .insert(node.clone(), subject.to_string())
            .is_none();
        let is_looked_at = control_plane && (is_new || self.not_alone.contains(node));
        if !is_looked_at || self.leases.len() == 1 {
            self.not_alone.remove(node);
            return true;
        }
        self.not_alone.insert(node.clone());
        if on_conflict == LeaseConflictRule::FreeLease {
            self.not_alone.remove(node);
            self.leases.remove(node);
        }
        on_conflict == LeaseConflictRule::Continue
    }

    /// Succeeds only if the stored backup is the one that was observed.
    fn keep(
        &mut self,
        host: &HostSnapshot,
        backup: &NodeBackup,
        over: Option<&StoredBackup>,
    ) -> bool {
        if self.backups.get(&host.uid) != over {
            return false;
        }
        self.version += 1;
        let kept = StoredBackup {
            resource_version: self.version.to_string(),
            ..stored(host, backup.clone())
        };
        self.backups.insert(host.uid.clone(), kept);
        true
    }

    fn on_node(&mut self, node: &ObservedNode, change: impl Fn(&mut Object)) -> bool {
        self.version += 1;
        let version = self.version.to_string();
        let there = self.nodes.get_mut(&node.name);
        let Some(there) = there.filter(|there| there.seen.uid == node.uid) else {
            return false;
        };
        change(there);
        there.seen.resource_version = version;
        true
    }

    fn on_host(&mut self, host: &HostSnapshot, change: impl Fn(&mut Power)) -> bool {
        let mut sites = self.sites.iter_mut();
        let site = sites.find(|site| site.power.seen.host.name == host.name);
        let site = site.filter(|site| site.power.version.to_string() == host.resource_version);
        let Some(site) = site else {
            return false;
        };
        change(&mut site.power);
        true
    }

    /// S2: no Node is deleted while its machine runs.
    fn release(&mut self, release: &WorkloadRelease) -> bool {
        let cleared = &release.permit;
        if !cleared.is_valid_at(self.mono()) {
            return false;
        }
        let there = self.nodes.get(cleared.node());
        if there.is_none_or(|there| there.seen.uid != cleared.node_uid()) {
            return false;
        }
        let mut sites = self.sites.iter();
        let site = sites.find(|site| node_name(&site.name) == *cleared.node());
        let site = site.unwrap();
        assert!(!site.power.is_on(), "{} runs", site.name);
        match release.strategy_type {
            StrategyType::DeleteNode => {
                let kept = self.backups.get(&site.power.seen.host.uid);
                let is_kept = kept.is_some_and(|kept| kept.backup.uid == cleared.node_uid());
                assert!(is_kept, "what is on {} is lost", cleared.node());
                self.nodes.remove(cleared.node());
            }
            StrategyType::OutOfServiceTaint => self.taint(cleared.node(), release.tainted_at),
        }
        true
    }
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn name_of(action: &RemediationAction) -> String {
    let text = format!("{action:?}");
    let end = text.find([' ', '(', '{']).unwrap_or(text.len());
    text[..end].to_owned()
}
