//! Finds the host of a Machine or a Node, and the contradictions between their links. The index is
//! built once per pass. Source: specification §4.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::RemediationReason;
use super::key::{KeyOwner, MACHINE_KEY, RemediationKey};
use super::machine::{
    InfraMachine, InfraRef, MachineApi, MachineName, ObjectName, ObservedMachine,
};
use super::node_cluster::{
    NodeCluster, foreign_node_problem, is_node_of_machine, unconfirmed_management_problem,
};
use super::provider_id::{ids_contradict, names_host};
use super::record::RemediationRecord;
use super::snapshot::RemediationSnapshot;
use super::stored_backup::StoredBackup;
use crate::name::NodeName;
use crate::power::{HostConsumer, HostName, HostSeniority, HostSnapshot, OwnerRules};
use crate::reboot::ObservedNode;
use dogwatch_api::annotation::{
    BARE_METAL_HOST as HOST_ANNOTATION, NODE as NODE_ANNOTATION, NODE_BACKUP, REMEDIATION,
};

const METAL3_GROUP: &str = "infrastructure.cluster.x-k8s.io";
const METAL3_MACHINE: &str = "Metal3Machine";

/// Why there is no host: a reason, and a message that says what to do.
pub(super) type RemediationProblem = (RemediationReason, String);

/// Indexes of the watched objects by their links.
pub(super) struct LinkIndex<'a> {
    pub(super) world: &'a RemediationSnapshot,
    links: BTreeMap<&'a MachineName, Result<&'a Arc<HostSnapshot>, RemediationProblem>>,
    linked: BTreeMap<&'a HostName, Vec<&'a Arc<ObservedMachine>>>,
    /// Machines by UID.
    machines: BTreeMap<&'a str, &'a Arc<ObservedMachine>>,
    /// Machines by cluster and `status.nodeRef.name`.
    of_node: BTreeMap<NodeCluster, BTreeMap<&'a str, Vec<&'a Arc<ObservedMachine>>>>,
    /// Workload clusters of which a Machine's Node was recognized.
    confirmed: BTreeSet<NodeCluster>,
    /// Hosts by annotation `dogwatch.dev/node`.
    named: BTreeMap<&'a str, Vec<&'a Arc<HostSnapshot>>>,
    /// Hosts that carry something of ours.
    pub(super) host_states: BTreeMap<&'a HostName, HostRemediationState<'a>>,
    /// By owner of a key: the first host that carries the key.
    keyed: BTreeMap<KeyOwner, &'a Arc<HostSnapshot>>,
}

/// What Dogwatch has written on a host or saved for it.
pub(super) struct HostRemediationState<'a> {
    pub(super) host: &'a Arc<HostSnapshot>,
    pub(super) keys: Vec<RemediationKey>,
    pub(super) record: Option<RemediationRecord>,
    pub(super) kept: Option<&'a Arc<StoredBackup>>,
    /// Value of the annotation in which older versions kept the backup.
    pub(super) legacy: Option<&'a String>,
}

impl<'a> LinkIndex<'a> {
    pub(super) fn build_index(world: &'a RemediationSnapshot) -> Self {
        let mut index = Self {
            world,
            links: BTreeMap::new(),
            linked: BTreeMap::new(),
            machines: BTreeMap::new(),
            of_node: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            named: BTreeMap::new(),
            host_states: BTreeMap::new(),
            keyed: BTreeMap::new(),
        };
        let machines = || world.machines.values();
        machines().for_each(|it| index.confirm_cluster(it));
        machines().for_each(|it| index.index_machine(it));
        world.hosts.values().for_each(|it| index.index_host(it));
        index
    }

    fn index_machine(&mut self, machine: &'a Arc<ObservedMachine>) {
        let link = resolve_host_link(self.world, machine);
        if let Ok(host) = &link {
            self.linked.entry(&host.name).or_default().push(machine);
        }
        self.links.insert(&machine.name, link);
        self.machines.insert(&machine.uid, machine);
        if let Some(node) = &machine.node {
            let of_node = self.of_node.entry(self.believed_cluster(machine));
            of_node.or_default().entry(node).or_default().push(machine);
        }
    }

    /// A cluster is believed once one of its Nodes is a Machine of its Cluster.
    fn confirm_cluster(&mut self, machine: &'a Arc<ObservedMachine>) {
        let cluster = self.world.cluster_of_machine(machine);
        let there = self.node_of_machine_in(&cluster, machine);
        if there.is_some_and(|node| is_node_of_machine(node, machine)) {
            self.confirmed.insert(self.world.named_cluster(machine));
        }
    }

    /// A kubeconfig that names the management cluster and is not believed must not make its
    /// Machines claim Nodes there.
    fn believed_cluster(&self, machine: &ObservedMachine) -> NodeCluster {
        let (cluster, named) = (
            self.world.cluster_of_machine(machine),
            self.world.named_cluster(machine),
        );
        let is_claimed = cluster != named && !self.confirmed.contains(&named);
        if is_claimed { named } else { cluster }
    }

    fn index_host(&mut self, host: &'a Arc<HostSnapshot>) {
        if let Some(node) = host.annotations.get(NODE_ANNOTATION) {
            self.named.entry(node).or_default().push(host);
        }
        let Some(affairs) = HostRemediationState::from_host(self.world, host) else {
            return;
        };
        for key in &affairs.keys {
            self.keyed.entry(key.owner.clone()).or_insert(host);
        }
        self.host_states.insert(&host.name, affairs);
    }

    pub(super) fn host_of_machine(
        &self,
        machine: &MachineName,
    ) -> Result<Arc<HostSnapshot>, RemediationProblem> {
        match self.links.get(machine) {
            Some(Ok(host)) => Ok(Arc::clone(host)),
            Some(Err(problem)) => Err(problem.clone()),
            None => Err((
                RemediationReason::NoHost,
                format!("machine {machine} no longer exists"),
            )),
        }
    }

    pub(super) fn host_with_key(&self, owner: &KeyOwner) -> Option<&'a Arc<HostSnapshot>> {
        self.keyed.get(owner).copied()
    }

    pub(super) fn machine_by_uid(&self, uid: &str) -> Option<&'a Arc<ObservedMachine>> {
        self.machines.get(uid).copied()
    }

    /// The Machines whose `status.nodeRef` names this Node of this cluster.
    pub(super) fn machines_of_node(
        &self,
        cluster: &NodeCluster,
        node: &str,
    ) -> &[&'a Arc<ObservedMachine>] {
        let of_node = self.of_node.get(cluster);
        let machines = of_node.and_then(|of_node| of_node.get(node));
        machines.map_or(&[], Vec::as_slice)
    }

    /// Whether one of the cluster's Nodes is known to be a Machine of its Cluster.
    pub(super) fn is_cluster_confirmed(&self, cluster: &NodeCluster) -> bool {
        *cluster == NodeCluster::Management || self.confirmed.contains(cluster)
    }

    /// The Machine's Node, if it exists and its cluster can be read. In a workload cluster it has to
    /// have the Machine's provider id.
    pub(super) fn node_of_machine(
        &self,
        machine: &ObservedMachine,
    ) -> Option<&'a Arc<ObservedNode>> {
        self.node_of_machine_in(&self.world.cluster_of_machine(machine), machine)
    }

    fn node_of_machine_in(
        &self,
        cluster: &NodeCluster,
        machine: &ObservedMachine,
    ) -> Option<&'a Arc<ObservedNode>> {
        let node = node_by_name(self.world, cluster, machine.node.as_deref()?)?;
        let is_its = *cluster == NodeCluster::Management || is_node_of_machine(node, machine);
        is_its.then_some(node)
    }

    /// Why nothing is known about the Machine's Node in its workload cluster.
    pub(super) fn cluster_problem(
        &self,
        machine: &ObservedMachine,
        record: Option<&RemediationRecord>,
    ) -> Option<RemediationProblem> {
        let cluster = self.world.cluster_of_machine(machine);
        let is_confirmed = self.is_cluster_confirmed(&self.world.named_cluster(machine));
        let problem = self.world.cluster_problem(&cluster, record, is_confirmed);
        let problem = problem.or_else(|| {
            let name = self.world.named_cluster(machine);
            let is_other = cluster == NodeCluster::Management && !is_confirmed;
            name.workload()
                .filter(|_| is_other)
                .and_then(|name| unconfirmed_management_problem(name, record))
        });
        problem.or_else(|| {
            let named = node_by_name(self.world, &cluster, machine.node.as_deref()?)?;
            let is_its = is_node_of_machine(named, machine);
            let workload = cluster.workload().filter(|_| !is_its)?;
            Some(foreign_node_problem(workload, named, machine))
        })
    }

    pub(super) fn machines_linked_to(&self, host: &HostName) -> &[&'a Arc<ObservedMachine>] {
        self.linked.get(host).map_or(&[], Vec::as_slice)
    }

    /// The host that Machines or annotations link to this Node; `None` if there is no link or the
    /// links contradict each other.
    pub(super) fn host_linked_to(
        &self,
        cluster: &NodeCluster,
        node: &str,
    ) -> Option<Arc<HostSnapshot>> {
        match self.machines_of_node(cluster, node) {
            [] if *cluster == NodeCluster::Management => self.host_of_node(node).ok(),
            [machine] => self.host_of_machine(&machine.name).ok(),
            [] | [_, _, ..] => None,
        }
    }

    /// The existing Nodes that are linked to this host, by its Machine, else by its annotation.
    pub(super) fn nodes_linked_to(
        &self,
        host: &HostSnapshot,
    ) -> impl Iterator<Item = &'a Arc<ObservedNode>> {
        let machines = self.machines_linked_to(&host.name);
        let named = host
            .annotations
            .get(NODE_ANNOTATION)
            .filter(|_| machines.is_empty());
        let named = named.and_then(|name| node_by_name(self.world, &NodeCluster::Management, name));
        let nodes = machines
            .iter()
            .filter_map(|machine| self.node_of_machine(machine));
        let nodes: Vec<&'a Arc<ObservedNode>> = nodes.chain(named).collect();
        nodes.into_iter()
    }

    pub(super) fn host_of_node(&self, node: &str) -> Result<Arc<HostSnapshot>, RemediationProblem> {
        let hosts = self.named.get(node).map_or(&[][..], Vec::as_slice);
        match hosts {
            [] => Err((
                RemediationReason::NoHost,
                format!(
                    "no BareMetalHost has annotation {NODE_ANNOTATION}: {node}; write it on the \
                     host that runs this Node"
                ),
            )),
            // Otherwise anybody who may create hosts could stop the fencing of any Node by naming
            // it.
            [first, others @ ..] => {
                let oldest = others.iter().fold(first, |oldest, other| {
                    if is_older(other, oldest) {
                        other
                    } else {
                        oldest
                    }
                });
                Ok(Arc::clone(oldest))
            }
        }
    }

    /// Two Machines or Nodes claim the same host or Node: neither is remediated.
    pub(super) fn sharing_problem(
        &self,
        machine: &ObservedMachine,
        host: &HostName,
    ) -> Option<RemediationProblem> {
        let other = |others: &[&'a Arc<ObservedMachine>]| {
            let other = others.iter().find(|other| other.name != machine.name);
            other.map(|other| other.name.to_string())
        };
        if let Some(other) = other(self.machines_linked_to(host)) {
            let text = format!(
                "machines {} and {other} are both linked to host {host}; correct annotation {HOST_ANNOTATION} of one",
                machine.name
            );
            return Some((RemediationReason::HostShared, text));
        }
        if let Some(problem) = self.provider_id_problem(machine) {
            return Some(problem);
        }
        let node = machine.node.as_ref()?;
        let cluster = self.world.cluster_of_machine(machine);
        let Some(other) = other(self.machines_of_node(&cluster, node)) else {
            return self.host_claim_problem(machine, node, host);
        };
        let text = format!(
            "the status.nodeRef of machines {} and {other} both name node {node}; delete the \
             machine that is not this node",
            machine.name
        );
        Some((RemediationReason::NodeShared, text))
    }

    /// A host's annotation contradicts the Machine. Without this check anybody who may write
    /// Machines and hosts in one namespace could have any Node released that no machine provider
    /// created.
    fn host_claim_problem(
        &self,
        machine: &ObservedMachine,
        node: &str,
        host: &HostName,
    ) -> Option<RemediationProblem> {
        let carriers = self.named.get(node).map_or(&[][..], Vec::as_slice);
        let is_of_other = |host: &HostSnapshot| self.carries_other_cluster(host, machine);
        let linked = self.world.hosts.get(host)?;
        let own = linked.annotations.get(NODE_ANNOTATION);
        // A later claim by another host is void if the Node's own providerID names this host.
        // Otherwise nothing is released: an older host could be linked to a Node whose real host is
        // newer.
        let is_this_ones = self
            .node_of_machine(machine)
            .and_then(|node| node.provider_id.as_ref())
            .is_some_and(|id| names_host(id, linked));
        let is_void = |claim: &HostSnapshot| is_this_ones && is_older(linked, claim);
        let carrier = carriers
            .iter()
            .find(|it| it.name != *host && !is_void(it) && !is_of_other(it));
        let (at, says) = match (carrier, own) {
            (Some(carrier), _) => (&carrier.name, node),
            (None, Some(own)) if own != node => (host, own.as_str()),
            (None, Some(_) | None) => return None,
        };
        let text = format!(
            "machine {} is node {node} on host {host}, and host {at} has annotation \
             {NODE_ANNOTATION}: {says}; correct the wrong one",
            machine.name
        );
        Some((RemediationReason::BadHostLink, text))
    }

    /// The annotation of a host names a Node of the cluster of the host's own Machine. A host
    /// without one carries Nodes of the management cluster.
    fn carries_other_cluster(&self, host: &HostSnapshot, machine: &ObservedMachine) -> bool {
        let cluster = self.world.cluster_of_machine(machine);
        let linked = self.linked.get(&host.name).map_or(&[][..], Vec::as_slice);
        let is_same = |it: &&Arc<ObservedMachine>| self.world.cluster_of_machine(it) == cluster;
        cluster.workload().is_some() && !linked.iter().any(is_same)
    }

    /// The provider ids of the Machine, its infrastructure and its Node contradict each other, so
    /// they are not the same machine.
    fn provider_id_problem(&self, machine: &ObservedMachine) -> Option<RemediationProblem> {
        let infra = machine.infra.as_ref().filter(|infra| infra.is_metal3());
        let infra = infra.and_then(|infra| self.world.infra.get(&infra.object));
        let node = self.node_of_machine(machine);
        let ids = [
            (
                format!("machine {}", machine.name),
                machine.provider_id.as_ref(),
            ),
            (
                infra.map_or_else(String::new, |it| format!("{METAL3_MACHINE} {}", it.name)),
                infra.and_then(|it| it.provider_id.as_ref()),
            ),
            (
                node.map_or_else(String::new, |it| format!("node {}", it.name)),
                node.and_then(|it| it.provider_id.as_ref()),
            ),
        ];
        let ids = ids.iter().filter_map(|(who, id)| Some((who, (*id)?)));
        let ids: Vec<(&String, &String)> = ids.collect();
        let pairs = ids.iter().zip(ids.iter().skip(1));
        let pairs = pairs.chain(ids.first().zip(ids.last()));
        let mut contradictions = pairs.filter(|(one, other)| ids_contradict(one.1, other.1));
        let ((one, its), (other, others)) = contradictions.next()?;
        let text = format!(
            "{one} has spec.providerID {its}, and {other} has {others}: they are different \
             machines; correct the wrong status.nodeRef, infrastructureRef or spec.providerID"
        );
        Some((RemediationReason::BadHostLink, text))
    }

    /// Owner of the Machine/Node key on this host, if there is such a key.
    pub(super) fn machine_key(&self, host: &HostName) -> Option<&KeyOwner> {
        let affairs = self.host_states.get(host)?;
        let mut keys = affairs.keys.iter();
        keys.find(|key| key.name == MACHINE_KEY)
            .map(|key| &key.owner)
    }

    /// Whether the owner of this key still exists, with the same UID.
    pub(super) fn is_key_owner_present(&self, owner: &KeyOwner, host: &HostSnapshot) -> bool {
        match owner {
            KeyOwner::Machine(uid) => self.machine_by_uid(uid).is_some(),
            KeyOwner::Node(uid) => {
                let node = host.annotations.get(NODE_ANNOTATION);
                let cluster = NodeCluster::Management;
                let node = node.and_then(|name| node_by_name(self.world, &cluster, name));
                node.is_some_and(|node| node.uid == *uid)
            }
            KeyOwner::Request(_) | KeyOwner::Foreign => false,
        }
    }
}

impl<'a> HostRemediationState<'a> {
    fn from_host(world: &'a RemediationSnapshot, host: &'a Arc<HostSnapshot>) -> Option<Self> {
        let keys: Vec<RemediationKey> = RemediationKey::keys_on_host(host).collect();
        let kept = world.backups.get(&host.uid);
        let legacy = host.annotations.get(NODE_BACKUP);
        let has_record = host.annotations.contains_key(REMEDIATION);
        if keys.is_empty() && !has_record && kept.is_none() && legacy.is_none() {
            return None;
        }
        Some(Self {
            host,
            keys,
            record: record_on_host(host),
            kept,
            legacy,
        })
    }

    pub(super) fn has_backup(&self) -> bool {
        self.kept.is_some() || self.legacy.is_some()
    }

    pub(super) fn annotated_node(&self) -> Option<&'a String> {
        self.host.annotations.get(NODE_ANNOTATION)
    }

    /// Whether the backup is of a control-plane Node. After the deletion only the backup shows that
    /// role: a kubelet may not set it on its own Node, so the new Node registers without it.
    pub(super) fn kept_control_plane_node(&self) -> bool {
        let kept = self.kept;
        kept.is_some_and(|kept| crate::policy::is_control_plane(&kept.backup.labels))
    }

    pub(super) fn open_record(&self) -> Option<&RemediationRecord> {
        let record = self.record.as_ref();
        record.filter(|record| record.ended_at().is_none())
    }
}

/// The record on a host, whichever remediation wrote it.
pub fn record_on_host(host: &HostSnapshot) -> Option<RemediationRecord> {
    let text = host.annotations.get(REMEDIATION)?;
    serde_json::from_str(text).ok()
}

/// Of two hosts that claim one Node the older keeps it.
fn is_older(host: &HostSnapshot, other: &HostSnapshot) -> bool {
    let rules = OwnerRules::default();
    HostSeniority::of_host(host, &rules) < HostSeniority::of_host(other, &rules)
}

/// The Nodes that a host carries: the one that its annotation names, else those of the Machines
/// that are linked to it. Use it only to find out whether one of them is alive.
pub fn nodes_of_host(
    host: &Arc<HostSnapshot>,
    machines: impl IntoIterator<Item = ObservedMachine>,
    infra: impl IntoIterator<Item = InfraMachine>,
) -> Vec<NodeName> {
    if let Some(name) = node_annotated_on(host) {
        return vec![name];
    }
    let machines = machines
        .into_iter()
        .map(|it| (it.name.clone(), Arc::new(it)));
    let infra = infra.into_iter().map(|it| (it.name.clone(), Arc::new(it)));
    let world = RemediationSnapshot {
        machines: machines.collect(),
        infra: infra.collect(),
        hosts: [(host.name.clone(), Arc::clone(host))].into(),
        ..RemediationSnapshot::default()
    };
    let index = LinkIndex::build_index(&world);
    let linked = index.machines_linked_to(&host.name).iter();
    let names = linked.filter_map(|machine| machine.node.as_deref());
    names.filter_map(|name| NodeName::new(name).ok()).collect()
}

pub fn node_annotated_on(host: &HostSnapshot) -> Option<NodeName> {
    let name = host.annotations.get(NODE_ANNOTATION)?;
    NodeName::new(name.as_str()).ok()
}

/// A Node by a name that need not be valid.
pub(super) fn node_by_name<'a>(
    world: &'a RemediationSnapshot,
    cluster: &NodeCluster,
    name: &str,
) -> Option<&'a Arc<ObservedNode>> {
    let name = crate::name::NodeName::new(name).ok()?;
    world.nodes_of_cluster(cluster)?.get(&name)
}

fn resolve_host_link<'a>(
    world: &'a RemediationSnapshot,
    machine: &ObservedMachine,
) -> Result<&'a Arc<HostSnapshot>, RemediationProblem> {
    let text = match &machine.host {
        Some(text) => text,
        None => host_through_infra(world, machine)?,
    };
    let name = parse_host_name(text).ok_or_else(|| {
        let text = format!("{text:?} in annotation {HOST_ANNOTATION} of machine {} is not NAMESPACE/NAME; correct it", machine.name);
        (RemediationReason::BadHostLink, text)
    })?;
    let host = world.hosts.get(&name).ok_or_else(|| {
        let text = format!(
            "machine {} is linked to BareMetalHost {name}, which does not exist; correct annotation {HOST_ANNOTATION}",
            machine.name
        );
        (RemediationReason::HostNotFound, text)
    })?;
    confirm_consumer(machine, host)?;
    Ok(host)
}

impl ObservedMachine {
    /// Whether the Machine has any link that may lead to a host.
    pub fn may_have_host(&self) -> bool {
        self.host.is_some() || self.infra.as_ref().is_some_and(InfraRef::is_metal3)
    }
}

impl InfraRef {
    /// Whether the reference leads to a host.
    fn is_metal3(&self) -> bool {
        self.kind == METAL3_MACHINE && self.group == METAL3_GROUP
    }
}

fn host_through_infra<'a>(
    world: &'a RemediationSnapshot,
    machine: &ObservedMachine,
) -> Result<&'a String, RemediationProblem> {
    let none = |text: String| (RemediationReason::NoHost, text);
    let name = &machine.name;
    let Some(infra) = &machine.infra else {
        return Err(none(format!(
            "machine {name} has neither annotation {HOST_ANNOTATION} nor an infrastructureRef; write the annotation: NAMESPACE/NAME of its host"
        )));
    };
    if !infra.is_metal3() {
        return Err(none(format!(
            "machine {name} has no annotation {HOST_ANNOTATION}, and its infrastructureRef names a {}, from which no \
             host can be found; write the annotation: NAMESPACE/NAME of its host",
            infra.kind
        )));
    }
    if infra.object.namespace != name.object.namespace {
        let text = format!(
            "the infrastructureRef of machine {name} names another namespace, {}; correct it",
            infra.object.namespace
        );
        return Err((RemediationReason::BadHostLink, text));
    }
    let Some(found) = world.infra.get(&infra.object) else {
        return Err(none(format!(
            "{METAL3_MACHINE} {} of machine {name} does not exist",
            infra.object
        )));
    };
    found.host.as_ref().ok_or_else(|| {
        none(format!(
            "{METAL3_MACHINE} {} has no annotation {HOST_ANNOTATION} yet",
            found.name
        ))
    })
}

/// Parses `namespace/name`.
fn parse_host_name(text: &str) -> Option<HostName> {
    let (namespace, name) = text.split_once('/')?;
    let is_name = |part: &str| crate::name::NodeName::new(part).is_ok();
    (is_name(namespace) && is_name(name)).then(|| HostName::new(namespace, name))
}

/// The host's `consumerRef` must not name somebody else; in another namespace it must name this
/// Machine.
fn confirm_consumer(
    machine: &ObservedMachine,
    host: &HostSnapshot,
) -> Result<(), RemediationProblem> {
    match &host.consumer {
        Some(consumer) if is_consumer(machine, consumer) => Ok(()),
        Some(consumer) => Err((
            RemediationReason::HostOfAnother,
            format!(
                "machine {} is linked to host {}, whose spec.consumerRef names {} {}/{}; correct the wrong one",
                machine.name, host.name, consumer.kind, consumer.namespace, consumer.name
            ),
        )),
        None if host.name.namespace == machine.name.object.namespace => Ok(()),
        None => Err((
            RemediationReason::BadHostLink,
            format!(
                "machine {} is linked to host {} in another namespace, which has no spec.consumerRef that confirms it; write it there, or correct the link",
                machine.name, host.name
            ),
        )),
    }
}

fn is_consumer(machine: &ObservedMachine, consumer: &HostConsumer) -> bool {
    let names = |group: &str, kind: &str, object: &ObjectName| {
        consumer.group == group
            && consumer.kind == kind
            && consumer.namespace == object.namespace
            && consumer.name == object.name
    };
    let is_itself = names(machine.name.api.group(), "Machine", &machine.name.object);
    let is_infra = match machine.name.api {
        MachineApi::ClusterApi => machine.infra.as_ref().is_some_and(|infra| {
            let is_beside = infra.object.namespace == machine.name.object.namespace;
            is_beside && names(&infra.group, &infra.kind, &infra.object)
        }),
        MachineApi::OpenShift => false,
    };
    is_itself || is_infra
}
