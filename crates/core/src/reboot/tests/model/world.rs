//! The world: hosts, clocks, a network that loses and repeats, and the truth that coordinators
//! only see late. Every write is held against the promises as it lands.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::kit;
use super::process::Process;
use super::server::{Answer, Server, Write};
use crate::Now;
use crate::lock;
use crate::name::{BootId, RunId};
use crate::reboot::*;

/// What becomes of one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Good,
    Lost,
    AnswerLost,
    /// No answer, and it arrives later.
    Delayed,
    CrashBefore,
    CrashAfter,
    /// The process is gone, its write arrives later.
    CrashDelayed,
    /// The reboot command cannot be started.
    NotStarted,
}

/// Who cordoned a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cordon {
    None,
    Ours,
    Foreign,
}

pub(super) struct Host {
    pub(super) name: String,
    pub(super) boot: u32,
    pub(super) file: Option<u32>,
    /// The sentinel goes with a boot.
    pub(super) tmpfs: bool,
    pub(super) pods: u32,
    pub(super) refused: bool,
    /// The command was started, and the kernel has not booted since.
    pub(super) pending: bool,
    pub(super) wall_ahead: i64,
    pub(super) processes: Vec<Process>,
    runs: u32,
    prints: u32,
    cordon: Cordon,
    served: BTreeSet<(String, Fingerprint)>,
    commands: Vec<Command>,
}

/// A reboot command that was started.
struct Command {
    boot: u32,
    record: Record,
    at: Duration,
    wall_ahead: i64,
}

pub(super) struct World {
    pub(super) server: Server,
    pub(super) hosts: Vec<Host>,
    pub(super) config: Config,
    pub(super) mono: Duration,
    /// Writes still under way; those that were done already must do nothing again.
    pub(super) late: Vec<(Write, bool)>,
    /// A person took a lock away by force: who goes out is on their account.
    pub(super) forced_unlock: bool,
    max: usize,
}

enum Sent {
    Answered(Answer),
    Unanswered,
    Crashed,
}

impl World {
    pub(super) fn new(nodes: usize, max: u32, tmpfs: bool, on_drain_timeout: OnTimeout) -> Self {
        let names: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
        let config = Config {
            max_unavailable: crate::limit::Limit::Count(max),
            on_drain_timeout,
            reboot_timeout: Duration::from_mins(5),
            drain_timeout: Duration::from_mins(10),
            ..kit::config()
        };
        Self {
            server: Server::new(
                names.iter().map(|name| kit::node_seen(name)).collect(),
                (0..max).map(kit::free).collect(),
            ),
            hosts: names.into_iter().map(|name| Host::new(name, tmpfs)).collect(),
            config,
            mono: Duration::from_secs(1000),
            late: Vec::new(),
            forced_unlock: false,
            max: usize::try_from(max).unwrap(),
        }
    }

    pub(super) fn now(&self, node: usize) -> Now {
        let seconds = i64::try_from(self.mono.as_millis()).unwrap();
        let ahead = jiff::SignedDuration::from_millis(seconds + self.hosts[node].wall_ahead * 1000);
        Now { wall: kit::wall(0) + ahead, mono: self.mono }
    }

    pub(super) fn start(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.runs += 1;
        let run = RunId::new(format!("coordinator/{}-{}", host.name, host.runs)).unwrap();
        host.processes.push(Process::new(&host.name, run, boot_id(host.boot)));
    }

    /// The process sees what there is, or what there was.
    pub(super) fn deliver(&mut self, node: usize, process: usize, age: usize) {
        let now = self.now(node);
        let history = &self.server.nodes[node];
        let shown = history[history.len().saturating_sub(1 + age)].clone();
        let leases = &self.server.leases;
        let leases = leases[leases.len().saturating_sub(1 + age)].clone();
        let host = &mut self.hosts[node];
        let (file, pods, refused) = (host.file, host.pods, host.refused);
        let Some(process) = host.processes.get_mut(process) else { return };
        process.saw_node(&shown, now);
        let trigger = file.map_or_else(kit::absent, |print| kit::present(&print.to_string()));
        process.seen.host.triggers = vec![trigger];
        if process.looks.iter().any(|look| matches!(look, Look::Locks { .. })) {
            process.saw_leases(&leases, now);
        }
        if process.looks.iter().any(|look| matches!(look, Look::Gates { .. })) {
            process.seen.gates = Some(Vec::new());
        }
        if let Some(count) = process.counted.take() {
            process.seen.lock.count = Some(count);
        }
        process.saw_pods(pods, refused, now.mono);
    }

    /// A count's reads are made; they are told at the next delivery.
    pub(super) fn count(&mut self, node: usize, process: usize) {
        let taken = self.mono;
        let server = &self.server;
        let Some(process) = self.hosts[node].processes.get_mut(process) else { return };
        for look in &process.looks {
            if let Look::Count { lease, .. } = look {
                let count = lock::count(&server.reads(&lease.name), &process.seen.run.holder);
                process.counted = Some(CountSeen { count, taken });
            }
        }
    }

    /// The process decides and acts. `None`: there was nothing to do; the decision's wake-up.
    pub(super) fn act(&mut self, node: usize, index: usize, fate: Fate) -> Option<Decision> {
        let now = self.now(node);
        if index >= self.hosts[node].processes.len() || self.hosts[node].processes[index].stopped {
            return None;
        }
        let mut process = self.hosts[node].processes.remove(index);
        let decision = process.decide(&self.config, now);
        assert!(!decision.because.message.is_empty() && !decision.because.reason.is_empty());
        if decision.actions.is_empty() {
            let spins = decision.wake.as_ref().is_some_and(|wake| wake.at <= now.mono);
            assert!(!spins, "a wake-up that has passed, with nothing to do: {:?}", decision.because);
        }
        let mut fate = fate;
        for action in &decision.actions {
            match self.perform(node, &mut process, action, fate) {
                Flow::On => fate = Fate::Good,
                Flow::Failed => break,
                Flow::Crashed => return Some(decision),
            }
        }
        self.hosts[node].processes.insert(index, process);
        Some(decision)
    }

    fn perform(&mut self, node: usize, process: &mut Process, action: &Action, fate: Fate) -> Flow {
        let now = self.now(node);
        match action {
            Action::PatchNode(patch) => {
                let NodeFact::There(seen) = process.seen.node.clone() else { return Flow::Failed };
                process.seen.run.sending(seen.record.get(), patch);
                let write = Write::Patch { node, patch: patch.as_ref().clone() };
                match self.send(write, fate) {
                    Sent::Answered(Answer::Node(answer)) => {
                        process.seen.run.answered(patch, now);
                        process.saw_node(&answer, now);
                    }
                    Sent::Answered(_) => process.saw_node(self.server.node(node), now),
                    Sent::Unanswered => return Flow::Failed,
                    Sent::Crashed => return Flow::Crashed,
                }
                Flow::On
            }
            Action::Bid { lease, record } => {
                process.seen.lock.unsettled = Some(lease.name.clone());
                let holder = Some(process.seen.run.holder.clone());
                let record = Some(record.as_ref().clone());
                let flow = self.write_lease(process, lease, holder, record, fate, now);
                if matches!(flow, Flow::On) {
                    process.seen.lock.unsettled = None;
                }
                flow
            }
            Action::Release { lease, over_budget } => self.release(process, lease, *over_budget, fate, now),
            Action::Break { .. } => panic!("no Node is ever deleted here"),
            Action::Reboot { attempt } => self.command(node, process, *attempt, fate),
            Action::Stop { .. } => {
                process.stopped = true;
                Flow::On
            }
        }
    }

    fn release(
        &mut self,
        process: &mut Process,
        lease: &lock::LeaseSeen,
        over_budget: bool,
        fate: Fate,
        now: Now,
    ) -> Flow {
        let run = &process.seen.run;
        let (holder, record) = match lock::release_plan(lease, &run.holder, &run.id) {
            lock::Release::Nothing => {
                process.saw_leases(self.server.leases(), now);
                return Flow::On;
            }
            lock::Release::RemoveRun { remaining } => {
                let record = lease.record.clone().map(|record| lock::LockRecord { runs: remaining, ..record });
                (lease.holder.clone(), record)
            }
            lock::Release::Free => (None, None),
        };
        let flow = self.write_lease(process, lease, holder, record, fate, now);
        if matches!(flow, Flow::On) {
            process.gave_back(over_budget, now);
        }
        flow
    }

    fn write_lease(
        &mut self,
        process: &mut Process,
        seen: &lock::LeaseSeen,
        holder: Option<lock::HolderId>,
        record: Option<lock::LockRecord>,
        fate: Fate,
        now: Now,
    ) -> Flow {
        match self.send(Write::Lease { seen: seen.clone(), holder, record }, fate) {
            Sent::Answered(Answer::Lease(lease)) => process.saw_lease(&lease, now),
            Sent::Answered(_) => process.saw_leases(self.server.leases(), now),
            Sent::Unanswered => return Flow::Failed,
            Sent::Crashed => return Flow::Crashed,
        }
        Flow::On
    }

    fn send(&mut self, write: Write, fate: Fate) -> Sent {
        match fate {
            Fate::Good | Fate::NotStarted => {
                let answer = self.land(&write);
                if self.late.len() < 8 {
                    self.late.push((write, true));
                }
                Sent::Answered(answer)
            }
            Fate::Lost => Sent::Unanswered,
            Fate::AnswerLost => {
                self.land(&write);
                Sent::Unanswered
            }
            Fate::Delayed => {
                self.late.push((write, false));
                Sent::Unanswered
            }
            Fate::CrashBefore => Sent::Crashed,
            Fate::CrashAfter => {
                self.land(&write);
                Sent::Crashed
            }
            Fate::CrashDelayed => {
                self.late.push((write, false));
                Sent::Crashed
            }
        }
    }

    /// A write that was under way arrives. One that was done already does nothing.
    pub(super) fn arrive(&mut self, which: usize) {
        if self.late.is_empty() {
            return;
        }
        let (write, done) = self.late.remove(which % self.late.len());
        let before = (self.server.nodes.clone(), self.server.leases.clone());
        let answer = self.land(&write);
        if done {
            let same = before == (self.server.nodes.clone(), self.server.leases.clone());
            assert!(matches!(answer, Answer::Conflict) || same, "a late duplicate did something: {write:?}");
        }
    }

    fn land(&mut self, write: &Write) -> Answer {
        let before = match write {
            Write::Patch { node, .. } => Some(self.server.node(*node).clone()),
            Write::Lease { .. } => None,
        };
        let answer = self.server.apply(write);
        if let (Write::Patch { node, .. }, Answer::Node(after), Some(before)) = (write, &answer, before) {
            self.hold_patch_to_the_promises(*node, &before, after);
        }
        answer
    }

    fn hold_patch_to_the_promises(&mut self, node: usize, before: &NodeSeen, after: &NodeSeen) {
        let host = &mut self.hosts[node];
        match (before.unschedulable, after.unschedulable) {
            (true, false) => {
                assert_eq!(host.cordon, Cordon::Ours, "S3: a cordon that is not ours was removed");
                host.cordon = Cordon::None;
            }
            (false, true) => host.cordon = Cordon::Ours,
            (true, true) | (false, false) => {}
        }
        let (from, to) = (before.record.get(), after.record.get());
        let phase = |record: Option<&Record>| record.map(|record| record.phase);
        if let Some(to) = to {
            let ours = !after.unschedulable || host.cordon == Cordon::Ours;
            assert!(!to.cordoned_by_us || ours, "S3: the record claims a foreign cordon");
        }
        if phase(to) == Some(Phase::Returning) && phase(from) != Some(Phase::Returning) {
            assert_ne!(to.unwrap().boot_id, boot_id(host.boot), "S4: returning without a new boot");
        }
        if phase(from) == Some(Phase::Rebooting) && phase(to) < Some(Phase::Rebooting) {
            assert!(!host.pending, "§2.4: undone although the command was started");
        }
        if to.is_none() && let Some(from) = from {
            assert!(matches!(from.phase, Phase::Waiting | Phase::Returning), "the record went in {from:?}");
            let holds = |lease: &lock::LeaseSeen| {
                lease.record.as_ref().is_some_and(|record| record.runs.contains(&from.run))
            };
            assert!(!self.server.leases().iter().any(holds), "S6: the record went before the lock");
        }
    }

    fn command(&mut self, node: usize, process: &mut Process, attempt: u32, fate: Fate) -> Flow {
        if fate == Fate::CrashBefore {
            return Flow::Crashed;
        }
        if fate == Fate::NotStarted {
            let why = "no such file".into();
            process.seen.run.command = CommandSeen::FailedToStart { attempt, why };
            return Flow::On;
        }
        self.hold_command_to_the_promises(node, process, attempt);
        process.seen.run.command = CommandSeen::Started { attempt, ended: None };
        self.hosts[node].pending = true;
        let crashes = matches!(fate, Fate::CrashAfter | Fate::CrashDelayed);
        if crashes { Flow::Crashed } else { Flow::On }
    }

    fn hold_command_to_the_promises(&mut self, node: usize, process: &Process, attempt: u32) {
        let record = self.server.node(node).record.get().expect("S5: no record stands").clone();
        assert_eq!((record.phase, record.attempts), (Phase::Rebooting, attempt), "S5: not what stands");
        let held = |lease: &lock::LeaseSeen| lease.holder.as_ref() == Some(&process.seen.run.holder);
        let holds = self.server.leases().iter().any(held);
        assert!(holds || self.forced_unlock, "S1: the command without the lock");
        let NodeFact::There(seen) = &process.seen.node else { panic!("acts without a Node") };
        let drained = process.seen.drain.as_ref().is_some_and(|drain| drain.progress.drained());
        assert!(seen.unschedulable && (drained || record.forced), "§2.4: not cordoned or not drained");
        let (now, max) = (self.mono, self.config.reboot_attempts);
        let host = &mut self.hosts[node];
        assert!(attempt <= max, "§2.4: more attempts than allowed");
        for earlier in host.commands.iter().filter(|command| command.boot == host.boot) {
            if earlier.record.planned == record.planned {
                assert_ne!(earlier.record.attempts, attempt, "S5: one attempt, two commands");
                let kept = now - earlier.at >= self.config.reboot_timeout;
                let clock_was_set = earlier.wall_ahead != host.wall_ahead;
                assert!(kept || clock_was_set, "§2.4: the next attempt before rebootTimeout");
            }
        }
        let fresh = record.serves.iter().any(|(s, f)| !host.served.contains(&(s.clone(), f.clone())));
        assert!(fresh, "S5: a trigger that was served causes another reboot: {:?}", record.serves);
        let (boot, wall_ahead) = (host.boot, host.wall_ahead);
        host.commands.push(Command { boot, record, at: now, wall_ahead });
    }

    pub(super) fn boots(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if std::mem::take(&mut host.pending)
            && let Some(command) = host.commands.last()
        {
            let serves = command.record.serves.clone();
            host.served.extend(serves);
        }
        host.boot += 1;
        host.processes.clear();
        if host.tmpfs {
            host.file = None;
        }
        self.server.change(node, |node| node.ready = false);
    }

    pub(super) fn kubelet(&mut self, node: usize) {
        let boot = boot_id(self.hosts[node].boot);
        self.server.change(node, |node| {
            node.ready = true;
            node.boot_id = Some(boot);
        });
    }

    pub(super) fn touch(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.prints += 1;
        host.file = Some(host.prints);
    }

    pub(super) fn request(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.prints += 1;
        let text = Fingerprint(host.prints.to_string());
        self.server.change(node, |node| {
            let (reason, requester) = ("asked".into(), "me".into());
            node.request = Parsed::Is(Request { reason, requester, not_before: None });
            node.request_fingerprint = Some(text);
        });
    }

    /// A person cordons; where the record says that we did, nobody could tell the two apart.
    pub(super) fn cordon(&mut self, node: usize) {
        let seen = self.server.node(node);
        let ours = seen.record.get().is_some_and(|record| record.cordoned_by_us);
        if !seen.unschedulable && !ours {
            self.hosts[node].cordon = Cordon::Foreign;
            self.server.change(node, |node| node.unschedulable = true);
        }
    }

    pub(super) fn uncordon(&mut self, node: usize) {
        self.hosts[node].cordon = Cordon::None;
        self.server.change(node, |node| node.unschedulable = false);
    }

    pub(super) fn foreign_cordon(&self, node: usize) -> bool {
        self.hosts[node].cordon == Cordon::Foreign
    }

    /// `dogwatch unlock --force`, or the healer.
    pub(super) fn unlock(&mut self, slot: usize) {
        let lease = self.server.leases()[slot % self.server.leases().len()].clone();
        if lease.holder.is_some() {
            self.server.apply(&Write::Lease { seen: lease, holder: None, record: None });
        }
    }

    /// S1: never more nodes out on our account than the budget allows.
    pub(super) fn check_budget(&self) {
        let out = |node: &usize| {
            let phase = self.server.node(*node).record.get().map(|record| record.phase);
            self.hosts[*node].cordon == Cordon::Ours
                || self.hosts[*node].pending
                || matches!(phase, Some(Phase::Draining | Phase::Rebooting))
        };
        let out: Vec<usize> = (0..self.hosts.len()).filter(out).collect();
        assert!(out.len() <= self.max || self.forced_unlock, "S1: {out:?} are out");
    }
}

enum Flow {
    On,
    Failed,
    Crashed,
}

impl Host {
    fn new(name: String, tmpfs: bool) -> Self {
        Self {
            name,
            boot: 1,
            file: None,
            tmpfs,
            pods: 1,
            refused: false,
            pending: false,
            wall_ahead: 0,
            processes: Vec::new(),
            runs: 0,
            prints: 0,
            cordon: Cordon::None,
            served: BTreeSet::new(),
            commands: Vec::new(),
        }
    }
}

pub(super) fn boot_id(boot: u32) -> BootId {
    kit::boot(&format!("boot-{boot}"))
}
