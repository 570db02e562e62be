//! Finds every remediation to decide about: marked objects, requests, and hosts that carry
//! something of ours. Source: specification §4.1.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::RemediationReason;
use super::host_link::{HostRemediationState, LinkIndex, RemediationProblem};
use super::key::KeyOwner;
use super::legacy_backup::LegacyBackup;
use super::machine::{ObservedMachine, with_cluster_pause};
use super::node_cluster::{NodeCluster, RemediationCluster};
use super::record::RemediationRecord;
use super::request::PowerRequest;
use super::request_target::PowerRequestTarget;
use super::snapshot::RemediationSnapshot;
use super::stored_backup::backup_of_host;
use super::types::{Remediation, RemediationSubject};
use crate::condition::CurrentCondition;
use crate::name::NodeName;
use crate::policy::is_control_plane;
use crate::power::{HostName, HostSnapshot};
use crate::reboot::ObservedNode;

pub const REMEDIATION_CONDITION: &str = "Remediation";

/// Lists every remediation, with its host, Node and Machine resolved. Returns nothing before all
/// lists have arrived. Its cost is linear in the number of watched objects.
pub fn discover_remediations(world: &RemediationSnapshot) -> Vec<Remediation> {
    if !world.synced {
        return Vec::new();
    }
    let mut found = RemediationDiscovery {
        index: LinkIndex::build_index(world),
        cases: Vec::new(),
        hosts: BTreeSet::new(),
        handled_keys: BTreeSet::new(),
        nodes: BTreeSet::new(),
    };
    let machines = world.machines.values();
    machines.for_each(|machine| found.add_machine(machine));
    found.add_marked_nodes();
    let requests = world.requests.values();
    requests.for_each(|request| found.add_request(request));
    found.add_leftover_hosts();
    found.add_leftover_backups();
    found.add_leftover_nodes();
    found.cases
}

pub(super) struct RemediationDiscovery<'a> {
    pub(super) index: LinkIndex<'a>,
    pub(super) cases: Vec<Remediation>,
    /// Hosts whose remediation handles their backup.
    pub(super) hosts: BTreeSet<HostName>,
    pub(super) handled_keys: BTreeSet<(HostName, KeyOwner)>,
    pub(super) nodes: BTreeSet<(NodeCluster, NodeName)>,
}

/// The host of a remediation, and why it may not be used.
struct ResolvedHost {
    host: Result<Arc<HostSnapshot>, RemediationProblem>,
    problem: Option<RemediationProblem>,
}

impl RemediationDiscovery<'_> {
    fn add_machine(&mut self, machine: &Arc<ObservedMachine>) {
        let owner = KeyOwner::Machine(machine.uid.clone());
        let place = self.resolve_host(self.index.host_of_machine(&machine.name), &owner);
        let subject = RemediationSubject::Machine(machine.name.clone());
        let record = self.record_of_subject(&place, &subject);
        if !self.is_machine_concerned(machine, &owner, &place, record.as_ref()) {
            return;
        }
        let shared = |host: &Arc<HostSnapshot>| self.index.sharing_problem(machine, &host.name);
        let shared = place.host.as_ref().ok().and_then(shared);
        let (key, foreign) = self.key_for(owner, &place);
        let named = machine.node.as_deref();
        let recorded = record.as_ref().and_then(|record| record.node.as_deref());
        let cluster = self.index.world.remediation_cluster(
            self.index.world.cluster_of_machine(machine),
            self.index.cluster_problem(machine, record.as_ref()),
        );
        let node = self.index.node_of_machine(machine);
        let node = node.filter(|_| cluster.problem.is_none());
        let case = Remediation {
            subject,
            cluster,
            key,
            needs_remediation: machine.need.is_some(),
            problem: place.problem.or(shared).or(foreign),
            node_name: named.or(recorded).and_then(|name| NodeName::new(name).ok()),
            node: node.cloned(),
            held_lease: None,
            record,
            stored_backup: None,
            host_backup: None,
            legacy_backup: None,
            control_plane: machine.control_plane
                || node.is_some_and(|node| is_control_plane(&node.labels)),
            machine: Some(with_cluster_pause(
                Arc::clone(machine),
                &self.index.world.paused_clusters,
            )),
            request: None,
            host: place.host,
        };
        self.add_remediation(case);
    }

    /// Whether a Machine needs a decision; most do not.
    fn is_machine_concerned(
        &self,
        machine: &ObservedMachine,
        owner: &KeyOwner,
        place: &ResolvedHost,
        record: Option<&RemediationRecord>,
    ) -> bool {
        let is_foreign = || {
            let host = place.host.as_ref().ok();
            host.is_some_and(|host| self.index.machine_key(&host.name) == Some(&KeyOwner::Foreign))
        };
        machine.need.is_some()
            || self.index.host_with_key(owner).is_some()
            || record.is_some_and(|record| record.ended_at().is_none())
            || is_condition_shown(&machine.conditions)
            || is_foreign()
    }

    /// A key that is already on a host keeps its remediation going even if the link to the host is
    /// broken.
    fn resolve_host(
        &self,
        link: Result<Arc<HostSnapshot>, RemediationProblem>,
        owner: &KeyOwner,
    ) -> ResolvedHost {
        match (link, self.index.host_with_key(owner)) {
            (Err(problem), Some(carrier)) => ResolvedHost {
                host: Ok(Arc::clone(carrier)),
                problem: Some(problem),
            },
            (host, _) => ResolvedHost {
                host,
                problem: None,
            },
        }
    }

    /// The owner of the truth table's key on this host, and the problem if that is somebody else.
    fn key_for(
        &self,
        owner: KeyOwner,
        place: &ResolvedHost,
    ) -> (KeyOwner, Option<RemediationProblem>) {
        let Ok(host) = &place.host else {
            return (owner, None);
        };
        let Some(standing) = self.index.machine_key(&host.name) else {
            return (owner, None);
        };
        if *standing == owner {
            return (owner, None);
        }
        // The table only asks whether there is a key.
        if *standing == KeyOwner::Foreign {
            return (KeyOwner::Foreign, None);
        }
        let problem = if self.index.is_key_owner_present(standing, host) {
            let text = format!("host {} has the key of another Machine or Node", host.name);
            (RemediationReason::HostOfAnother, text)
        } else {
            let text = format!(
                "host {} has the key of a Machine or Node that is gone; that key is removed first",
                host.name
            );
            (RemediationReason::OrphanedKey, text)
        };
        (owner, Some(problem))
    }

    fn record_of_subject(
        &self,
        place: &ResolvedHost,
        subject: &RemediationSubject,
    ) -> Option<RemediationRecord> {
        let host = place.host.as_ref().ok()?;
        let record = self.index.host_states.get(&host.name)?.record.as_ref()?;
        (record.subject == subject.to_string()).then(|| record.clone())
    }

    fn add_marked_nodes(&mut self) {
        let nodes = self.index.world.nodes.values();
        let marked =
            nodes.filter(|node| node.needs_remediation || is_condition_shown(&node.conditions));
        let mut names: BTreeSet<NodeName> = marked.map(|node| node.name.clone()).collect();
        for affairs in self.index.host_states.values() {
            let is_nodes = |owner: &KeyOwner| matches!(owner, KeyOwner::Node(_));
            let has_key = affairs.keys.iter().any(|key| is_nodes(&key.owner));
            let open = affairs.open_record();
            let is_open = open.is_some_and(|record| record.subject.starts_with("node/"));
            let name = affairs.annotated_node().filter(|_| has_key || is_open);
            names.extend(name.and_then(|name| NodeName::new(name.clone()).ok()));
        }
        for name in names {
            self.add_node(name);
        }
    }

    fn add_node(&mut self, name: NodeName) {
        let node = self.index.world.nodes.get(&name).cloned();
        let place = self.resolve_host_of_node(&name, node.as_ref());
        let subject = RemediationSubject::Node(name.clone());
        let record = self.record_of_subject(&place, &subject);
        let uid = node
            .as_ref()
            .map_or_else(String::new, |node| node.uid.clone());
        let (key, foreign) = self.key_of_node(KeyOwner::Node(uid), &place);
        let is_own = node
            .as_ref()
            .is_some_and(|node| key == KeyOwner::Node(node.uid.clone()));
        let marked = node.as_ref().is_some_and(|node| node.needs_remediation);
        let case = Remediation {
            subject,
            cluster: RemediationCluster::management(),
            needs_remediation: marked && is_own,
            key,
            host: place.host,
            problem: place.problem.or(foreign),
            control_plane: node
                .as_ref()
                .is_some_and(|node| is_control_plane(&node.labels)),
            node_name: Some(name),
            node,
            held_lease: None,
            record,
            stored_backup: None,
            host_backup: None,
            legacy_backup: None,
            machine: None,
            request: None,
        };
        self.add_remediation(case);
    }

    fn resolve_host_of_node(
        &self,
        name: &NodeName,
        node: Option<&Arc<ObservedNode>>,
    ) -> ResolvedHost {
        let host = self.index.host_of_node(name.as_str());
        let machines = self
            .index
            .machines_of_node(&NodeCluster::Management, name.as_str());
        if let Some(machine) = machines.first() {
            let text = format!(
                "node {name} belongs to machine {}: mark the Machine instead",
                machine.name
            );
            let problem = (RemediationReason::NodeOfAMachine, text);
            let owner = node.map(|node| KeyOwner::Node(node.uid.clone()));
            let carrier = owner.and_then(|owner| self.index.host_with_key(&owner));
            return ResolvedHost {
                host: carrier.map_or_else(|| Err(problem.clone()), |host| Ok(Arc::clone(host))),
                problem: Some(problem),
            };
        }
        let trouble = host.as_ref().ok().and_then(|host| {
            let machine = self.index.machines_linked_to(&host.name).first()?;
            let text = format!(
                "host {} belongs to machine {}, which is not node {name}",
                host.name, machine.name
            );
            Some((RemediationReason::HostOfAnother, text))
        });
        ResolvedHost {
            host,
            problem: trouble,
        }
    }

    /// As for Machines, except that the key of a deleted Node belongs to the Node of that name.
    fn key_of_node(
        &self,
        owner: KeyOwner,
        place: &ResolvedHost,
    ) -> (KeyOwner, Option<RemediationProblem>) {
        let Ok(host) = &place.host else {
            return (owner, None);
        };
        match self.index.machine_key(&host.name) {
            Some(standing @ KeyOwner::Node(_)) if place.problem.is_none() => {
                (standing.clone(), None)
            }
            Some(KeyOwner::Foreign) => {
                let text = format!(
                    "Dogwatch did not write annotation {} on host {}; its writer must remove it",
                    owner.annotation_name(),
                    host.name
                );
                (owner, Some((RemediationReason::ForeignKey, text)))
            }
            Some(_) | None => self.key_for(owner, place),
        }
    }

    fn add_request(&mut self, request: &Arc<PowerRequest>) {
        let target = PowerRequestTarget::for_request(&self.index, request);
        let key = KeyOwner::Request(request.uid.clone());
        let place = match self.index.host_with_key(&key) {
            Some(carrier) => ResolvedHost {
                problem: match &target.host {
                    Ok(host) if host.name == carrier.name => target.problem.clone(),
                    Ok(host) => Some((
                        RemediationReason::BadRequest,
                        format!(
                            "its target is now on host {}, and its key is on host {}",
                            host.name, carrier.name
                        ),
                    )),
                    Err(problem) => Some(problem.clone()),
                },
                host: Ok(Arc::clone(carrier)),
            },
            None => ResolvedHost {
                host: target.host.clone(),
                problem: target.problem.clone(),
            },
        };
        let subject = RemediationSubject::Request(request.name.clone());
        let record = self.record_of_subject(&place, &subject);
        let record = record.filter(|record| record.uid == request.uid);
        let cluster = self.cluster_of_target(&target, record.as_ref());
        let node = target.node.clone().filter(|_| cluster.problem.is_none());
        let case = Remediation {
            record,
            cluster,
            subject,
            key,
            needs_remediation: super::request::needs_remediation(request),
            host: place.host,
            problem: place.problem,
            control_plane: target.machine.as_ref().is_some_and(|it| it.control_plane)
                || node
                    .as_ref()
                    .is_some_and(|node| is_control_plane(&node.labels)),
            node_name: target.node_name,
            node,
            held_lease: None,
            stored_backup: None,
            host_backup: None,
            legacy_backup: None,
            machine: target
                .machine
                .map(|it| with_cluster_pause(it, &self.index.world.paused_clusters)),
            request: Some(Arc::clone(request)),
        };
        self.add_remediation(case);
    }

    pub(super) fn add_remediation(&mut self, mut case: Remediation) {
        let world = self.index.world;
        let leases = world.leases_of_cluster(&case.cluster.name);
        let leases = leases.filter(|_| case.cluster.problem.is_none());
        let named = case.node_name.as_ref();
        case.held_lease = leases
            .zip(named)
            .and_then(|(leases, name)| leases.get(name).cloned());
        if let Ok(host) = &case.host {
            let is_first = self.hosts.insert(host.name.clone());
            let affairs = self.index.host_states.get(&host.name);
            case.control_plane |=
                affairs.is_some_and(HostRemediationState::kept_control_plane_node);
            case.stored_backup = world.backups.get(&host.uid).cloned();
            if is_first {
                case.host_backup = backup_of_host(&self.index, host);
                case.legacy_backup = affairs
                    .and_then(|affairs| LegacyBackup::for_remediation(world, affairs, &case));
            }
            self.handled_keys
                .insert((host.name.clone(), case.key.clone()));
        }
        let cluster = case.cluster.name.clone();
        let name = case.node_name.clone();
        self.nodes.extend(name.map(|name| (cluster, name)));
        self.cases.push(case);
    }
}

/// Whether the object shows the condition of a remediation, which has to be withdrawn when there is
/// none.
fn is_condition_shown(conditions: &[CurrentCondition]) -> bool {
    let mut conditions = conditions.iter();
    conditions
        .any(|condition| condition.kind == REMEDIATION_CONDITION && condition.status == "True")
}
