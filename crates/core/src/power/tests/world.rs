//! A host, its BMC and a shell around the decision, in a time of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub(crate) use super::bmc::{Bmc, Says, Takes};
use crate::Now;
use crate::name::NodeName;
use crate::power::*;

pub(crate) const BASE: &str = REBOOT;
pub(crate) const KEY: &str = "reboot.metal3.io/key";
pub(crate) const HARD: &str = r#"{"mode":"hard"}"#;
const TICK: u64 = 50;

/// A reading under way.
#[derive(Debug)]
struct Reads {
    level: usize,
    is_urgent: bool,
    asked: u64,
    done: u64,
    said: Result<Reading, Fault>,
}

/// What happened to a command.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) id: String,
    pub(crate) command: Command,
    pub(crate) level: usize,
    pub(crate) why: String,
    pub(crate) sent: u64,
    pub(crate) process: u32,
    pub(crate) answered: Option<u64>,
    /// When it was given up, or its process died.
    pub(crate) lost: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) time: u64,
    pub(crate) wall_ahead: i64,
    pub(crate) config: Config,
    pub(crate) seen: Seen,
    pub(crate) bmcs: Vec<Bmc>,
    pub(crate) process: u32,
    pub(crate) version: u64,
    pub(crate) down_until: u64,
    ids: u32,
    reads: Vec<Reads>,
    sends: Vec<(String, u64, Result<Answer, Fault>)>,
    /// All commands that were sent.
    pub(crate) sent: Vec<Trace>,
    /// When the machine came on or went off.
    pub(crate) transitions: Vec<(u64, bool)>,
    pub(crate) writes: Vec<(u64, HostStatus)>,
    pub(crate) events: Vec<(u64, &'static str, String)>,
    pub(crate) last: Option<Decision>,
    /// The shell's steps so far; it dies before the one named.
    pub(crate) steps: u32,
    pub(crate) dies_at: Option<u32>,
    pub(crate) checks_are_good: bool,
    /// When the kubelet of its Node last renewed its Lease; `None`: it carries no Node.
    pub(crate) node: Option<u64>,
    /// How often it does, while it lives: in milliseconds. A machine that is off does not.
    pub(crate) renews: Option<u64>,
    /// How often its Lease was read.
    pub(crate) life_looks: u32,
    pub(crate) about: About,
    /// The further levels are another machine's.
    pub(crate) is_wrong_outlet: bool,
    begun: u64,
    jitter: u32,
    /// Something ended, or the test changed something.
    pub(crate) is_poked: bool,
    decided_on: (u64, bool),
}

pub(crate) fn host(annotations: &[(&str, &str)], online: bool) -> Host {
    let address = Address::parse("redfish://192.0.2.1/redfish/v1/Systems/1");
    let device = Device {
        address,
        credentials: "bmc".into(),
        verify: true,
    };
    Host {
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
        levels: vec![Level {
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
            config: Config::default(),
            seen: Seen {
                host: Arc::new(host(annotations, online)),
                owner: Owner::Ours,
                shared_with: Vec::new(),
                same_system: Vec::new(),
                access: vec![Access::Ready {
                    cost: Cost::Request,
                }],
                memory: Memory::default(),
            },
            bmcs: Vec::new(),
            process: 1,
            version: 1,
            down_until: 0,
            ids: 0,
            reads: Vec::new(),
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
            about: About::default(),
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

    /// A PDU beside the BMC.
    pub(crate) fn add_level(&mut self) {
        let device = Device {
            address: Address::parse("fence+fence_apc://192.0.2.9?plug=4"),
            credentials: "pdu".into(),
            verify: true,
        };
        self.seen.host_mut().levels.push(Level {
            devices: vec![device],
        });
        self.seen.access.push(Access::Ready {
            cost: Cost::Process,
        });
        self.add_bmc(true);
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

    /// When something of this process happened, in the world's time.
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
        self.seen.memory = Memory::default();
        self.last = None;
        self.is_poked = true;
        // Another process, another monotonic clock.
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

    /// One moment: the world moves, what ended is told, and the shell decides until it has no action.
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

    /// The machine carries a Node whose kubelet renews its Lease so often.
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

    fn signs_of_life(&self) -> SignsOfLife {
        let renewed = |at: u64| {
            let at = i64::try_from(at).unwrap();
            let lease = NodeLease {
                renewed: Timestamp::from_millisecond(at).ok(),
                lasts: Some(Duration::from_secs(40)),
            };
            (NodeName::new("n1").unwrap(), lease)
        };
        SignsOfLife {
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
            self.seen.memory.read(Read {
                level: read.level,
                asked: Duration::from_millis(read.asked - self.begun),
                answered: now,
                said: read.said,
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
            self.seen.memory.ended(&id, how, now);
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
        let host = self.seen.host.clone();
        self.seen.memory.saw(&host, now);
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
        let looks = decision.looks.clone();
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

    fn look(&mut self, look: &Look) {
        match look {
            Look::SignsOfLife => {
                self.life_looks += 1;
                let (now, signs) = (self.mono(), self.signs_of_life());
                self.seen.memory.signs_of_life(now, signs);
                self.is_poked = true;
            }
            Look::Check { level } => {
                let now = self.mono();
                let good = Ok(self.about.clone());
                let bad = Err(Fault::harmless(Class::Unreachable, "no route"));
                let found = if self.checks_are_good { good } else { bad };
                self.seen.memory.checked(*level, found, now);
                self.is_poked = true;
            }
            Look::Read { level, is_urgent } => {
                let is_there = self
                    .reads
                    .iter()
                    .any(|read| read.level == *level && read.is_urgent == *is_urgent);
                // As the keeper has it: there is no way to a level that is no more.
                if !is_there && *level < self.seen.host.levels.len() {
                    self.read(*level, *is_urgent);
                }
            }
        }
    }

    fn read(&mut self, level: usize, is_urgent: bool) {
        let (done, said) = self.bmcs[level].say(self.time);
        // Without power a BMC says nothing.
        let mut outlets = self.bmcs[1..].iter();
        let has_power = level > 0 || self.is_wrong_outlet || outlets.all(|outlet| outlet.gives);
        let silent = || Err(Fault::harmless(Class::Unreachable, "no power"));
        let said = if has_power { said } else { silent() };
        self.reads.push(Reads {
            level,
            is_urgent,
            asked: self.time,
            done,
            said,
        });
    }

    fn act(&mut self, action: Action, id: &str) {
        match action {
            Action::WriteStatus(write) => self.write(*write, id),
            Action::RemoveAnnotations(names) => {
                for name in names {
                    self.remove(&name);
                }
                if self.dies() {
                    self.crash(12_000);
                }
            }
            Action::Send(intention) => self.send(&intention),
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
            self.seen.memory.writing(id);
        }
        self.seen.host_mut().status = write.status;
        self.version += 1;
        self.writes.push((self.time, self.seen.host.status.clone()));
        if self.dies() {
            return self.crash(12_000);
        }
        if is_new {
            let now = self.mono();
            self.seen.memory.written(id, now);
        }
    }

    fn send(&mut self, intention: &Intention) {
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
        self.seen.memory.sending(now);
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
