//! The world: hosts, clocks, a network that loses and repeats, and the truth that coordinators
//! only see late. Every write is held against the promises as it lands.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::kit;
use super::process::{Ground, Process};
use super::server::{Server, Write};
use crate::Now;
use crate::lock;
use crate::name::{BootId, GroupName, RunId};
use crate::policy::{self, Policies, Policy};
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
    /// When its last reboot was finished.
    pub(super) returned: Option<Duration>,
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
    /// The RebootPolicies: every version of them.
    pub(super) policies: Vec<Vec<Policy>>,
    /// What gates ask for.
    pub(super) alert: bool,
    /// Since which version of the server each node belongs to its group.
    pub(super) grouped: Vec<(GroupName, u64)>,
    /// What each cordon goes by, by node and precondition.
    pub(super) grants: BTreeMap<(usize, String), Grant>,
}

/// What a cordon on its way goes by.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) lease: String,
    /// The server's version when who is out was counted.
    pub(super) counted: u64,
    /// How many may be out, by the policies that the decision knew.
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
            policies: vec![Vec::new()],
            alert: false,
            grouped: vec![(GroupName::default_group(), 0); nodes],
            grants: BTreeMap::new(),
        }
    }

    pub(super) fn known(&self) -> Policies {
        Policies::Known(self.policies.last().expect("never empty").clone())
    }

    /// Which group each node belongs to, and since when, after labels or policies have changed.
    pub(super) fn regroup(&mut self) {
        self.server.next_version();
        let (groups, version) = (self.server.groups(&self.known()), self.server.version);
        for (old, new) in self.grouped.iter_mut().zip(groups) {
            if old.0 != new {
                *old = (new, version);
            }
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
        let mut process = Process::new(&host.name, run, boot_id(host.boot));
        process.seen.policies = Policies::NotYet;
        host.processes.push(process);
    }

    /// The process sees what there is, or what there was.
    pub(super) fn deliver(&mut self, node: usize, process: usize, age: usize) {
        let now = self.now(node);
        let history = &self.server.nodes[node];
        let shown = history[history.len().saturating_sub(1 + age)].clone();
        let leases = &self.server.leases;
        let leases = leases[leases.len().saturating_sub(1 + age)].clone();
        let policies = self.policies.len().saturating_sub(age).max(1);
        let alert = self.alert;
        let size = self.size_of_group(node, process);
        let host = &mut self.hosts[node];
        let (file, pods, refused) = (host.file, host.pods, host.refused);
        let Some(process) = host.processes.get_mut(process) else {
            return;
        };
        process.saw_node(&shown, now);
        let trigger = file.map_or_else(kit::absent, |print| kit::present(&print.to_string()));
        process.seen.host.triggers = vec![trigger];
        if policies > process.policies {
            process.policies = policies;
            process.seen.policies = Policies::Known(self.policies[policies - 1].clone());
        }
        process.seen.lock.group_size = size.or(process.seen.lock.group_size);
        for look in process.looks.clone() {
            if let Look::Locks { group, slots } = look {
                self.server.ensure(&group, slots);
                process.saw_leases(&leases, Some(group), now);
            } else if let Look::StartGates { gates } = look {
                let shut = alert.then(|| "an alert".to_owned()).into_iter().collect();
                let taken = now.mono;
                process.seen.start_gates = Some(StartGatesSeen { gates, shut, taken });
            }
        }
        if process
            .looks
            .iter()
            .any(|look| matches!(look, Look::Gates { .. }))
        {
            process.seen.gates = Some(Vec::new());
        }
        if let Some((count, ground)) = process.counted.take() {
            // Its reads were of the policies too.
            if ground.policies > process.policies {
                process.policies = ground.policies;
                process.seen.policies = Policies::Known(self.policies[ground.policies - 1].clone());
            }
            process.seen.lock.count = Some(count);
            process.ground = Some(ground);
        }
        process.saw_pods(pods, refused, now.mono);
    }

    /// A count's reads are made; they are told at the next delivery.
    pub(super) fn count(&mut self, node: usize, process: usize) {
        let taken = self.mono;
        let (server, known) = (&self.server, self.known());
        let (version, policies) = (server.version, self.policies.len());
        let Some(process) = self.hosts[node].processes.get_mut(process) else {
            return;
        };
        for look in &process.looks {
            if let Look::Count { lease, .. } = look {
                let reads = server.reads(&lease.name, &known);
                let count = lock::count(&reads, &process.seen.run.holder);
                let ground = Ground {
                    version,
                    policies,
                    members: count.members,
                };
                process.counted = Some((CountSeen { count, taken }, ground));
            }
        }
    }

    /// The size of the group that the process looks at, if it asks for it.
    fn size_of_group(&self, node: usize, process: usize) -> Option<u32> {
        let looks = &self.hosts[node].processes.get(process)?.looks;
        let size = |look: &&Look| matches!(look, Look::GroupSize { .. });
        let Some(Look::GroupSize { group }) = looks.iter().find(size) else {
            return None;
        };
        let groups = self.server.groups(&self.known());
        u32::try_from(groups.iter().filter(|own| *own == group).count()).ok()
    }

    /// A cordon is about to be sent: what it goes by is noted.
    pub(super) fn grant(&mut self, node: usize, process: &Process, patch: &NodePatch) {
        let (NodeFact::There(seen), RecordChange::Set(record)) =
            (&process.seen.node, &patch.record)
        else {
            return;
        };
        let waits = |record: &Record| record.phase == Phase::Waiting;
        if record.phase != Phase::Draining || !seen.record.get().is_some_and(waits) {
            return;
        }
        self.hold_beginning_to_the_promises(node, process);
        let ground = process
            .ground
            .clone()
            .expect("S1: a cordon without a count");
        assert!(process.policies >= ground.policies);
        let rule = policy::rule(&process.seen.policies, &seen.labels, &self.config);
        let members = usize::try_from(ground.members).unwrap();
        let grant = Grant {
            lease: record.lease.clone().expect("S1: a cordon without a lock"),
            counted: ground.version,
            max: rule.config.max_unavailable.of(members),
        };
        let key = (node, patch.resource_version.clone());
        self.grants.insert(key, grant);
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
            returned: None,
        }
    }
}

pub(super) fn boot_id(boot: u32) -> BootId {
    kit::boot(&format!("boot-{boot}"))
}
