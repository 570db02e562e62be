//! A simulated host, its BMC and the shell around the decision, with a clock of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub(crate) use super::bmc::{Bmc, Says, Takes};
use crate::Now;
use crate::name::NodeName;
use crate::power::*;

pub(crate) const BASE: &str = REBOOT_ANNOTATION;
pub(crate) const KEY: &str = "reboot.metal3.io/key";
pub(crate) const HARD: &str = r#"{"mode":"hard"}"#;
const TICK: u64 = 50;

#[derive(Debug)]
struct Reads {
    level: usize,
    is_urgent: bool,
    asked: u64,
    done: u64,
    said: Result<PowerReading, BmcFault>,
    system_uuid: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) id: String,
    pub(crate) command: PowerCommand,
    pub(crate) level: usize,
    pub(crate) why: String,
    pub(crate) sent: u64,
    pub(crate) process: u32,
    pub(crate) answered: Option<u64>,
    /// When it was given up, or its process died.
    pub(crate) lost: Option<u64>,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a circumstance of its own"
)]
pub(crate) struct World {
    pub(crate) time: u64,
    pub(crate) wall_ahead: i64,
    pub(crate) config: PowerConfig,
    pub(crate) seen: PowerSnapshot,
    pub(crate) bmcs: Vec<Bmc>,
    pub(crate) process: u32,
    pub(crate) version: u64,
    pub(crate) down_until: u64,
    ids: u32,
    reads: Vec<Reads>,
    /// How often each level was read.
    pub(crate) reads_begun: [usize; 2],
    sends: Vec<(String, u64, Result<CommandAnswer, BmcFault>)>,
    pub(crate) sent: Vec<Trace>,
    /// When the machine went on or off.
    pub(crate) transitions: Vec<(u64, bool)>,
    pub(crate) writes: Vec<(u64, HostStatus)>,
    pub(crate) events: Vec<(u64, &'static str, String)>,
    pub(crate) last: Option<PowerDecision>,
    /// The shell's steps so far; it dies before step `dies_at`.
    pub(crate) steps: u32,
    pub(crate) dies_at: Option<u32>,
    pub(crate) checks_are_good: bool,
    /// When the kubelet of the host's Node last renewed its Lease; `None`: the host carries no
    /// Node.
    pub(crate) node: Option<u64>,
    /// The kubelet's renewal interval in milliseconds. A machine that is off does not renew.
    pub(crate) renews: Option<u64>,
    /// How often the kubelet's Lease was read.
    pub(crate) life_looks: u32,
    pub(crate) about: BmcInfo,
    /// Whether the BMC's readings contain its UUID, as those of Redfish do.
    pub(crate) readings_have_uuid: bool,
    /// Whether the further levels switch another machine.
    pub(crate) is_wrong_outlet: bool,
    begun: u64,
    jitter: u32,
    /// Something ended, or the test changed something: the shell must decide.
    pub(crate) is_poked: bool,
    decided_on: (u64, bool),
}

pub(crate) fn host(annotations: &[(&str, &str)], online: bool) -> HostSnapshot {
    let address = BmcAddress::parse("redfish://192.0.2.1/redfish/v1/Systems/1");
    let device = PowerDevice {
        address,
        credentials: "bmc".into(),
        verify: true,
    };
    HostSnapshot {
        name: HostName::new("hosts", "h1"),
        uid: "uid".into(),
        resource_version: "1".into(),
        deleting: false,
        annotations: annotations
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        online,
        externally_provisioned: None,
        disable_power_off: false,
        created: None,
        consumer: None,
        levels: vec![PowerLevel {
            devices: vec![device],
        }],
        status: HostStatus::default(),
    }
}

impl World {
    pub(crate) fn new(annotations: &[(&str, &str)], online: bool, is_on: bool) -> Self {
        let mut world = Self {
            time: 1_000_000,
            wall_ahead: 1_700_000_000_000,
            config: PowerConfig::default(),
            seen: PowerSnapshot {
                host: Arc::new(host(annotations, online)),
                owner: HostOwner::Ours,
                shared_with: Vec::new(),
                same_system: Vec::new(),
                access: vec![LevelAccess::Ready {
                    cost: CallCost::Request,
                }],
                memory: PowerMemory::default(),
            },
            bmcs: Vec::new(),
            process: 1,
            version: 1,
            down_until: 0,
            ids: 0,
            reads: Vec::new(),
            reads_begun: [0; 2],
            sends: Vec::new(),
            sent: Vec::new(),
            transitions: Vec::new(),
            writes: Vec::new(),
            events: Vec::new(),
            last: None,
            steps: 0,
            dies_at: None,
            checks_are_good: true,
            node: None,
            renews: None,
            life_looks: 0,
            about: BmcInfo::default(),
            readings_have_uuid: false,
            is_wrong_outlet: false,
            begun: 0,
            jitter: 0,
            is_poked: true,
            decided_on: (0, online),
        };
        world.add_bmc(is_on);
        world
    }

    fn add_bmc(&mut self, gives: bool) {
        self.bmcs.push(Bmc::new(gives));
    }

    /// Adds a PDU beside the BMC.
    pub(crate) fn add_level(&mut self) {
        let device = PowerDevice {
            address: BmcAddress::parse("fence+fence_apc://192.0.2.9?plug=4"),
            credentials: "pdu".into(),
            verify: true,
        };
        self.seen.host_mut().levels.push(PowerLevel {
            devices: vec![device],
        });
        self.seen.access.push(LevelAccess::Ready {
            cost: CallCost::Process,
        });
        self.add_bmc(true);
    }

    /// The Secret of this level is deleted: its drivers are dropped.
    pub(crate) fn lose_secret(&mut self, level: usize) {
        self.seen.access[level] = LevelAccess::Missing {
            reason: PowerReason::SecretNotFound,
            message: "create it".into(),
        };
        self.seen.memory.forget_bmc();
        self.is_poked = true;
    }

    pub(crate) fn is_on(&self) -> bool {
        let outlets = if self.is_wrong_outlet {
            1
        } else {
            self.bmcs.len()
        };
        self.bmcs[..outlets].iter().all(|bmc| bmc.gives)
    }

    pub(crate) fn power(&self) -> &PowerStatus {
        &self.seen.host.status.power
    }

    pub(crate) fn status(&self) -> &HostStatus {
        &self.seen.host.status
    }

    pub(crate) fn now(&self) -> Now {
        let wall = self.wall_ahead + i64::try_from(self.time).unwrap();
        Now {
            wall: Timestamp::from_millisecond(wall).unwrap(),
            mono: self.mono(),
        }
    }

    pub(crate) fn mono(&self) -> Duration {
        Duration::from_millis(self.time - self.begun)
    }

    /// The world's time of a monotonic moment of this process.
    pub(crate) fn world_time(&self, mono: Duration) -> u64 {
        self.begun + u64::try_from(mono.as_millis()).unwrap()
    }

    pub(crate) fn annotate(&mut self, name: &str, value: &str) {
        let annotations = &mut self.seen.host_mut().annotations;
        annotations.insert(name.to_owned(), value.to_owned());
        self.version += 1;
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.seen.host_mut().annotations.remove(name);
        self.version += 1;
    }

    /// The process dies; another one leads after `pause` milliseconds.
    pub(crate) fn crash(&mut self, pause: u64) {
        self.process += 1;
        self.down_until = self.time + pause;
        self.reads.clear();
        for (id, ..) in self.sends.drain(..) {
            let trace = self.sent.iter_mut().find(|trace| trace.id == id);
            trace.expect("it was sent").lost = Some(self.time);
        }
        self.seen.memory = PowerMemory::default();
        self.last = None;
        self.is_poked = true;
        // Another process has another monotonic clock.
        self.begun = self.time - 1_000;
    }

    pub(crate) fn set_power(&mut self, is_on: bool) {
        let was = self.is_on();
        self.bmcs[0].set_power(is_on);
        self.note_transition(was);
    }

    fn note_transition(&mut self, was: bool) {
        let is = self.is_on();
        if is != was {
            self.transitions.push((self.time, is));
        }
    }

    fn run_commands(&mut self) {
        let was = self.is_on();
        for bmc in &mut self.bmcs {
            bmc.run(self.time);
        }
        self.note_transition(was);
    }

    /// One tick: the world moves, calls that ended are recorded, and the shell decides until there
    /// is no action.
    pub(crate) fn tick(&mut self) {
        self.time += TICK;
        self.run_commands();
        self.renew();
        if self.time < self.down_until {
            return;
        }
        self.deliver();
        let is_due = match self.last.as_ref().and_then(|last| last.wake.as_ref()) {
            Some(wake) => wake.at <= self.mono(),
            None => true,
        };
        let state = (self.version, self.seen.host.online);
        if !(is_due || self.is_poked || state != self.decided_on) {
            return;
        }
        self.is_poked = false;
        for _ in 0..8 {
            if self.time < self.down_until || !self.decide() {
                break;
            }
        }
        self.decided_on = (self.version, self.seen.host.online);
    }

    /// Gives the machine a Node whose kubelet renews its Lease every `renews` milliseconds.
    pub(crate) fn carries_node(&mut self, renews: u64) {
        self.node = Some(self.time);
        self.renews = Some(renews);
    }

    fn renew(&mut self) {
        let (Some(last), Some(every)) = (self.node, self.renews) else {
            return;
        };
        if self.is_on() && self.time >= last + every {
            self.node = Some(self.time);
        }
    }

    fn signs_of_life(&self) -> KubeletLeases {
        let renewed = |at: u64| {
            let at = i64::try_from(at).unwrap();
            let lease = KubeletLease {
                renewed: Timestamp::from_millisecond(at).ok(),
                lasts: Some(Duration::from_secs(40)),
            };
            (NodeName::new("n1").unwrap(), lease)
        };
        KubeletLeases {
            leases: self.node.map(renewed).into_iter().collect(),
            unread: None,
        }
    }

    fn deliver(&mut self) {
        let time = self.time;
        let now = self.mono();
        let (ended, under_way): (Vec<_>, Vec<_>) =
            self.reads.drain(..).partition(|read| read.done <= time);
        self.reads = under_way;
        self.is_poked |= !ended.is_empty();
        for read in ended {
            self.seen.record_reading(LevelReading {
                level: read.level,
                asked: Duration::from_millis(read.asked - self.begun),
                answered: now,
                result: read.said,
                system_uuid: read.system_uuid,
            });
        }
        let (ended, under_way): (Vec<_>, Vec<_>) =
            self.sends.drain(..).partition(|(_, done, _)| *done <= time);
        self.sends = under_way;
        self.is_poked |= !ended.is_empty();
        for (id, _, how) in ended {
            if self.dies() {
                self.sends.push((id, time, how));
                return self.crash(12_000);
            }
            let trace = self.sent.iter_mut().find(|trace| trace.id == id);
            let trace = trace.expect("it was sent");
            match &how {
                Ok(_) => trace.answered = Some(time),
                Err(fault) if fault.may_have_run => trace.lost = Some(time),
                Err(_) => {}
            }
            self.seen.memory.record_command_end(&id, how, now);
        }
    }

    fn dies(&mut self) -> bool {
        self.steps += 1;
        self.dies_at == Some(self.steps)
    }

    fn decide(&mut self) -> bool {
        self.ids += 1;
        self.jitter = (self.jitter * 31 + 17) % 100;
        let id = format!("p{}/{}", self.process, self.ids);
        let now = self.now();
        self.seen.host_mut().resource_version = self.version.to_string();
        self.seen.observe_host(now);
        let decision = decide(
            &self.seen,
            &self.config,
            &id,
            f64::from(self.jitter) / 100.0,
            now,
        );
        assert!(
            decision.wake.is_some(),
            "something is waited for without an end"
        );
        assert!(decision.actions.len() <= 1);
        for event in &decision.report.events {
            let said = self
                .events
                .iter()
                .any(|(_, reason, text)| *reason == event.reason && *text == event.message);
            if !said {
                self.events
                    .push((self.time, event.reason, event.message.clone()));
            }
        }
        let looks = decision.observe.clone();
        let action = decision.actions.first().cloned();
        self.last = Some(decision);
        for look in looks {
            self.look(&look);
        }
        let Some(action) = action else {
            return false;
        };
        if self.dies() {
            self.crash(12_000);
            return false;
        }
        self.act(action, &id);
        true
    }

    fn look(&mut self, look: &PowerObserve) {
        match look {
            PowerObserve::KubeletLeases => {
                self.life_looks += 1;
                let (now, signs) = (self.mono(), self.signs_of_life());
                self.seen.memory.record_kubelet_leases(now, signs);
                self.is_poked = true;
            }
            PowerObserve::Check { level } => {
                let now = self.mono();
                let good = Ok(self.about.clone());
                let bad = Err(BmcFault::without_effect(
                    FaultClass::Unreachable,
                    "no route",
                ));
                let found = if self.checks_are_good { good } else { bad };
                self.seen.record_check(*level, found, now, now);
                self.is_poked = true;
            }
            PowerObserve::Read { level, is_urgent } => {
                let is_there = self
                    .reads
                    .iter()
                    .any(|read| read.level == *level && read.is_urgent == *is_urgent);
                // Like the real shell: a level that was removed, or has no driver, cannot be read.
                let access = self.seen.access.get(*level);
                let has_driver = matches!(access, Some(LevelAccess::Ready { .. }));
                if !is_there && has_driver && *level < self.seen.host.levels.len() {
                    self.read(*level, *is_urgent);
                }
            }
        }
    }

    fn read(&mut self, level: usize, is_urgent: bool) {
        self.reads_begun[level] += 1;
        let (done, said) = self.bmcs[level].say(self.time);
        // A BMC without power does not answer.
        let mut outlets = self.bmcs[1..].iter();
        let has_power = level > 0 || self.is_wrong_outlet || outlets.all(|outlet| outlet.gives);
        let silent = || {
            Err(BmcFault::without_effect(
                FaultClass::Unreachable,
                "no power",
            ))
        };
        let said = if has_power { said } else { silent() };
        let is_told = level == 0 && self.readings_have_uuid && said.is_ok();
        self.reads.push(Reads {
            system_uuid: self.about.system_uuid.clone().filter(|_| is_told),
            level,
            is_urgent,
            asked: self.time,
            done,
            said,
        });
    }

    fn act(&mut self, action: PowerAction, id: &str) {
        match action {
            PowerAction::WriteStatus(write) => self.write(*write, id),
            PowerAction::RemoveAnnotations(names) => {
                for name in names {
                    self.remove(&name);
                }
                if self.dies() {
                    self.crash(12_000);
                }
            }
            PowerAction::Send(intention) => self.send(&intention),
        }
    }

    fn write(&mut self, write: StatusWrite, id: &str) {
        let is_new = write
            .status
            .power
            .command
            .as_ref()
            .is_some_and(|command| command.id == id);
        if is_new {
            self.seen.memory.record_write_begun(id);
        }
        self.seen.host_mut().status = write.status;
        self.version += 1;
        self.writes.push((self.time, self.seen.host.status.clone()));
        if self.dies() {
            return self.crash(12_000);
        }
        if is_new {
            let now = self.mono();
            self.seen.memory.record_write_done(id, now);
        }
    }

    fn send(&mut self, intention: &PendingCommand) {
        let standing = self.power().command.clone();
        assert_eq!(
            standing.map(|command| command.id),
            Some(intention.id.clone())
        );
        let ours = self
            .seen
            .memory
            .command
            .as_ref()
            .expect("it was written by us");
        assert_eq!((&ours.id, ours.sent), (&intention.id, None), "sent once");
        let now = self.mono();
        self.seen.memory.record_command_sent(now);
        self.sent.push(Trace {
            id: intention.id.clone(),
            command: intention.command,
            level: intention.level,
            why: intention.why.clone(),
            sent: self.time,
            process: self.process,
            answered: None,
            lost: None,
        });
        let bmc = &mut self.bmcs[intention.level];
        let (done, how) = bmc.take(intention.command, self.time);
        self.sends.push((intention.id.clone(), done, how));
        if self.dies() {
            self.crash(12_000);
        }
    }
}
