//! The model world: hosts, clocks, a network that loses and repeats messages, and a state that
//! coordinators see only late. Every write is checked against the promises when it lands.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::kit;
use super::process::{Ground, Process};
use super::server::{Server, Write};
use crate::Now;
use crate::lock;
use crate::name::{BootId, GroupName, RunId};
use crate::policy::{self, ClusterPolicies, Policy};
use crate::reboot::*;

/// What happens to one action on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Good,
    Lost,
    AnswerLost,
    /// The action gets no answer and arrives later.
    Delayed,
    CrashBefore,
    CrashAfter,
    /// The process crashes; its write arrives later.
    CrashDelayed,
    /// The reboot command cannot be started.
    NotStarted,
}

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
    /// The sentinel is on tmpfs, so a boot removes it.
    pub(super) tmpfs: bool,
    pub(super) pods: u32,
    pub(super) refused: bool,
    /// The command was started, and the kernel has not booted since.
    pub(super) pending: bool,
    /// By how much the wall clock was set, if ever. A run that takes over knows only from that
    /// clock how much time passed before.
    pub(super) wall_ahead: Option<i64>,
    pub(super) processes: Vec<Process>,
    runs: u32,
    pub(super) prints: u32,
    pub(super) cordon: Cordon,
    pub(super) served: BTreeSet<(String, TriggerFingerprint)>,
    pub(super) commands: Vec<Command>,
    /// When its last reboot was finished.
    pub(super) returned: Option<Duration>,
}

pub(super) struct Command {
    pub(super) boot: u32,
    pub(super) record: RebootRecord,
    pub(super) at: Duration,
}

pub(super) struct World {
    pub(super) server: Server,
    pub(super) hosts: Vec<Host>,
    pub(super) config: RebootConfig,
    pub(super) mono: Duration,
    /// Writes still under way; the flag marks those that took effect already and must not do so
    /// again.
    pub(super) late: Vec<(Write, bool)>,
    /// A person broke a lock by force: nodes that go out after that are not counted against
    /// Dogwatch.
    pub(super) forced_unlock: bool,
    pub(super) max: usize,
    /// Every version of the RebootPolicies.
    pub(super) policies: Vec<Vec<Policy>>,
    /// Whether the alert that the gates check is firing.
    pub(super) alert: bool,
    /// Each node's group, and the server version since which it belongs to it.
    pub(super) grouped: Vec<(GroupName, u64)>,
    /// The count that each cordon relies on, by node and precondition.
    pub(super) grants: BTreeMap<(usize, String), Grant>,
}

/// The count that a cordon on its way relies on.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) lease: String,
    /// The server's version when the unavailable nodes were counted.
    pub(super) counted: u64,
    /// How many nodes may be unavailable, by the policies that the decision knew.
    pub(super) max: usize,
}

impl World {
    pub(super) fn new(
        nodes: usize,
        max: u32,
        tmpfs: bool,
        on_drain_timeout: DrainTimeoutAction,
    ) -> Self {
        let names: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
        let config = RebootConfig {
            max_unavailable: crate::limit::UnavailabilityLimit::Count(max),
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

    pub(super) fn known(&self) -> ClusterPolicies {
        ClusterPolicies::Known(self.policies.last().expect("never empty").clone())
    }

    /// Updates each node's group after labels or policies have changed.
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
        process.seen.policies = ClusterPolicies::NotYetRead;
        host.processes.push(process);
    }

    /// The process sees the current state, or an earlier one.
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
            process.seen.policies = ClusterPolicies::Known(self.policies[policies - 1].clone());
        }
        process.seen.lock.group_size = size.or(process.seen.lock.group_size);
        for look in process.looks.clone() {
            if let RebootObserve::Locks { group, slots } = look {
                self.server.ensure(&group, slots);
                process.saw_leases(&leases, Some(group), now);
            } else if let RebootObserve::StartGates { gates } = look {
                let shut = alert.then(|| "an alert".to_owned()).into_iter().collect();
                let taken = now.mono;
                process.seen.start_gates = Some(ObservedStartGates { gates, shut, taken });
            }
        }
        if process
            .looks
            .iter()
            .any(|look| matches!(look, RebootObserve::Gates { .. }))
        {
            process.seen.gates = Some(Vec::new());
        }
        if let Some((count, ground)) = process.counted.take() {
            // These reads included the policies.
            if ground.policies > process.policies {
                process.policies = ground.policies;
                process.seen.policies =
                    ClusterPolicies::Known(self.policies[ground.policies - 1].clone());
            }
            process.seen.lock.count = Some(count);
            process.ground = Some(ground);
        }
        process.saw_pods(pods, refused, now.mono);
    }

    /// Makes the reads of a count; the process gets them at the next delivery.
    pub(super) fn count(&mut self, node: usize, process: usize) {
        let taken = self.mono;
        let (server, known) = (&self.server, self.known());
        let (version, policies) = (server.version, self.policies.len());
        let Some(process) = self.hosts[node].processes.get_mut(process) else {
            return;
        };
        for look in &process.looks {
            if let RebootObserve::Count { lease, .. } = look {
                let reads = server.reads(&lease.name, &known);
                let count = lock::count_unavailable(&reads, &process.seen.run.holder);
                let ground = Ground {
                    version,
                    policies,
                    members: count.members,
                };
                process.counted = Some((
                    ObservedBudgetCount {
                        count,
                        taken,
                        arrived: taken,
                    },
                    ground,
                ));
            }
        }
    }

    /// The size of the group that the process observes, if it asks for it.
    fn size_of_group(&self, node: usize, process: usize) -> Option<u32> {
        let looks = &self.hosts[node].processes.get(process)?.looks;
        let size = |look: &&RebootObserve| matches!(look, RebootObserve::GroupSize { .. });
        let Some(RebootObserve::GroupSize { group }) = looks.iter().find(size) else {
            return None;
        };
        let groups = self.server.groups(&self.known());
        u32::try_from(groups.iter().filter(|own| *own == group).count()).ok()
    }

    /// Notes the count that a cordon about to be sent relies on.
    pub(super) fn grant(&mut self, node: usize, process: &Process, patch: &NodePatch) {
        let (OwnNodeState::There(seen), RecordChange::Set(record)) =
            (&process.seen.node, &patch.record)
        else {
            return;
        };
        let waits = |record: &RebootRecord| record.phase == RebootPhase::Waiting;
        if record.phase != RebootPhase::Draining || !seen.record.get().is_some_and(waits) {
            return;
        }
        self.hold_beginning_to_the_promises(node, process);
        let ground = process
            .ground
            .clone()
            .expect("S1: a cordon without a count");
        assert!(process.policies >= ground.policies);
        let rule = policy::resolve_policy(&process.seen.policies, &seen.labels, &self.config);
        let members = usize::try_from(ground.members).unwrap();
        let grant = Grant {
            lease: record.lease.clone().expect("S1: a cordon without a lock"),
            counted: ground.version,
            max: rule.config.max_unavailable.allowed_nodes(members),
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
        let text = TriggerFingerprint(host.prints.to_string());
        self.server.change(node, |node| {
            let (reason, requester) = ("asked".into(), "me".into());
            node.request = ParsedAnnotation::Is(RebootRequest {
                reason,
                requester,
                not_before: None,
                ..RebootRequest::default()
            });
            node.request_fingerprint = Some(text);
        });
    }

    /// A person cordons the node, unless the record says that Dogwatch did: then nobody could tell
    /// the two cordons apart.
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
