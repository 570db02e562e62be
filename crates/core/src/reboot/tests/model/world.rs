//! The world: hosts, clocks, a network that loses and repeats, and the truth that coordinators
//! only see late. Every write is held against the promises as it lands.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::kit;
use super::process::Process;
use super::server::{Server, Write};
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
pub(super) enum Cordon {
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
    /// By how much the wall clock was set, if ever: a run that takes over has only that clock to
    /// tell what passed before it.
    pub(super) wall_ahead: Option<i64>,
    pub(super) processes: Vec<Process>,
    runs: u32,
    prints: u32,
    pub(super) cordon: Cordon,
    pub(super) served: BTreeSet<(String, Fingerprint)>,
    pub(super) commands: Vec<Command>,
}

/// A reboot command that was started.
pub(super) struct Command {
    pub(super) boot: u32,
    pub(super) record: Record,
    pub(super) at: Duration,
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
    pub(super) max: usize,
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
            hosts: names
                .into_iter()
                .map(|name| Host::new(name, tmpfs))
                .collect(),
            config,
            mono: Duration::from_secs(1000),
            late: Vec::new(),
            forced_unlock: false,
            max: usize::try_from(max).unwrap(),
        }
    }

    pub(super) fn now(&self, node: usize) -> Now {
        let seconds = i64::try_from(self.mono.as_millis()).unwrap();
        let ahead = jiff::SignedDuration::from_millis(
            seconds + self.hosts[node].wall_ahead.unwrap_or(0) * 1000,
        );
        Now {
            wall: kit::wall(0) + ahead,
            mono: self.mono,
        }
    }

    pub(super) fn start(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.runs += 1;
        let run = RunId::new(format!("coordinator/{}-{}", host.name, host.runs)).unwrap();
        host.processes
            .push(Process::new(&host.name, run, boot_id(host.boot)));
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
        let Some(process) = host.processes.get_mut(process) else {
            return;
        };
        process.saw_node(&shown, now);
        let trigger = file.map_or_else(kit::absent, |print| kit::present(&print.to_string()));
        process.seen.host.triggers = vec![trigger];
        if process
            .looks
            .iter()
            .any(|look| matches!(look, Look::Locks { .. }))
        {
            process.saw_leases(&leases, now);
        }
        if process
            .looks
            .iter()
            .any(|look| matches!(look, Look::Gates { .. }))
        {
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
        let Some(process) = self.hosts[node].processes.get_mut(process) else {
            return;
        };
        for look in &process.looks {
            if let Look::Count { lease, .. } = look {
                let count = lock::count(&server.reads(&lease.name), &process.seen.run.holder);
                process.counted = Some(CountSeen { count, taken });
            }
        }
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
            node.request = Parsed::Is(Request {
                reason,
                requester,
                not_before: None,
            });
            node.request_fingerprint = Some(text);
        });
    }

    /// A person cordons; where the record says that we did, nobody could tell the two apart.
    pub(super) fn cordon(&mut self, node: usize) {
        let seen = self.server.node(node);
        let ours = seen
            .record
            .get()
            .is_some_and(|record| record.cordoned_by_us);
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
            self.server.apply(&Write::Lease {
                seen: Box::new(lease),
                holder: None,
                record: None,
            });
        }
    }
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
            wall_ahead: None,
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
