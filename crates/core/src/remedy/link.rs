//! Which host carries a Machine or a Node, and what all of them say of each other. Built once a pass.
//! Source: specification §4.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::kept::KeptBackup;
use super::key::{Key, KeyOwner, MACHINE_KEY};
use super::machine::{InfraMachine, InfraRef, Machine, MachineApi, MachineName, ObjectName};
use super::provider::{contradict, names};
use super::reason;
use super::record::Record;
use super::seen::World;
use crate::name::NodeName;
use crate::power::{Consumer, Host, HostName, OwnerRules, Seniority};
use crate::reboot::NodeSeen;

/// On a host: the Node that it carries.
const NODE: &str = "dogwatch.dev/node";
/// On a host: [`Record`].
pub(super) const RECORD: &str = "dogwatch.dev/remediation";
/// On a host: [`super::Backup`], as older versions kept it.
pub(super) const BACKUP: &str = "dogwatch.dev/node-backup";
/// On a Machine or a Metal3Machine: its host.
const BARE_METAL_HOST: &str = "metal3.io/BareMetalHost";
const METAL3_GROUP: &str = "infrastructure.cluster.x-k8s.io";
const METAL3_MACHINE: &str = "Metal3Machine";

/// Why there is no host: a reason, and a sentence that says what to do.
pub(super) type Problem = (&'static str, String);

/// What is found by something else than its name.
pub(super) struct Index<'a> {
    pub(super) world: &'a World,
    /// By Machine: its host.
    links: BTreeMap<&'a MachineName, Result<&'a Arc<Host>, Problem>>,
    /// By host: the Machines that are linked to it.
    linked: BTreeMap<&'a HostName, Vec<&'a Arc<Machine>>>,
    /// By UID.
    machines: BTreeMap<&'a str, &'a Arc<Machine>>,
    /// By `status.nodeRef.name`.
    of_node: BTreeMap<&'a str, Vec<&'a Arc<Machine>>>,
    /// By annotation `dogwatch.dev/node`.
    named: BTreeMap<&'a str, Vec<&'a Arc<Host>>>,
    /// Hosts with something of ours on them.
    pub(super) affairs: BTreeMap<&'a HostName, Affairs<'a>>,
    /// By whom a key is for: the first host that carries it.
    keyed: BTreeMap<KeyOwner, &'a Arc<Host>>,
}

/// What is ours on a host.
pub(super) struct Affairs<'a> {
    pub(super) host: &'a Arc<Host>,
    pub(super) keys: Vec<Key>,
    pub(super) record: Option<Record>,
    /// What is kept of its Node.
    pub(super) kept: Option<&'a Arc<KeptBackup>>,
    /// The annotation of older versions, if it is there.
    pub(super) legacy: Option<&'a String>,
}

impl<'a> Index<'a> {
    pub(super) fn of(world: &'a World) -> Self {
        let mut index = Self {
            world,
            links: BTreeMap::new(),
            linked: BTreeMap::new(),
            machines: BTreeMap::new(),
            of_node: BTreeMap::new(),
            named: BTreeMap::new(),
            affairs: BTreeMap::new(),
            keyed: BTreeMap::new(),
        };
        world.machines.values().for_each(|it| index.machine(it));
        world.hosts.values().for_each(|it| index.host(it));
        index
    }

    fn machine(&mut self, machine: &'a Arc<Machine>) {
        let link = link(self.world, machine);
        if let Ok(host) = &link {
            self.linked.entry(&host.name).or_default().push(machine);
        }
        self.links.insert(&machine.name, link);
        self.machines.insert(&machine.uid, machine);
        if let Some(node) = &machine.node {
            self.of_node.entry(node).or_default().push(machine);
        }
    }

    fn host(&mut self, host: &'a Arc<Host>) {
        if let Some(node) = host.annotations.get(NODE) {
            self.named.entry(node).or_default().push(host);
        }
        let Some(affairs) = Affairs::of(self.world, host) else {
            return;
        };
        for key in &affairs.keys {
            self.keyed.entry(key.owner.clone()).or_insert(host);
        }
        self.affairs.insert(&host.name, affairs);
    }

    /// The host that a Machine is linked to.
    pub(super) fn link(&self, machine: &MachineName) -> Result<Arc<Host>, Problem> {
        match self.links.get(machine) {
            Some(Ok(host)) => Ok(Arc::clone(host)),
            Some(Err(problem)) => Err(problem.clone()),
            None => Err((reason::NO_HOST, format!("machine {machine} is gone"))),
        }
    }

    /// The host that carries this one's key.
    pub(super) fn carrier(&self, owner: &KeyOwner) -> Option<&'a Arc<Host>> {
        self.keyed.get(owner).copied()
    }

    /// The Machine of this UID.
    pub(super) fn by_uid(&self, uid: &str) -> Option<&'a Arc<Machine>> {
        self.machines.get(uid).copied()
    }

    /// The Machines whose Node this is said to be.
    pub(super) fn machines_of(&self, node: &str) -> &[&'a Arc<Machine>] {
        self.of_node.get(node).map_or(&[], Vec::as_slice)
    }

    /// The Machines that are linked to this host.
    pub(super) fn linked_to(&self, host: &HostName) -> &[&'a Arc<Machine>] {
        self.linked.get(host).map_or(&[], Vec::as_slice)
    }

    /// The host that Machines or annotations link to this Node; `None`: they name none, or contradict each
    /// other.
    pub(super) fn host_linked_to(&self, node: &str) -> Option<Arc<Host>> {
        match self.machines_of(node) {
            [] => self.host_of_node(node).ok(),
            [machine] => self.link(&machine.name).ok(),
            [_, _, ..] => None,
        }
    }

    /// The Nodes that are there and linked to this host, by its Machine, else by its annotation.
    pub(super) fn nodes_linked_to(&self, host: &Host) -> impl Iterator<Item = &'a Arc<NodeSeen>> {
        let machines = self.linked_to(&host.name);
        let named = host.annotations.get(NODE).filter(|_| machines.is_empty());
        let names = machines.iter().filter_map(|machine| machine.node.as_ref());
        let world = self.world;
        let names: Vec<String> = names.chain(named).cloned().collect();
        names
            .into_iter()
            .filter_map(|name| node_named(world, &name))
    }

    /// The host whose annotation names this Node.
    pub(super) fn host_of_node(&self, node: &str) -> Result<Arc<Host>, Problem> {
        let hosts = self.named.get(node).map_or(&[][..], Vec::as_slice);
        match hosts {
            [] => Err((
                reason::NO_HOST,
                format!(
                    "no BareMetalHost has annotation {NODE}: {node}; write it on the one that carries this Node"
                ),
            )),
            // Whoever may make hosts could else stop the fencing of any Node by naming it.
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

    /// Two say that they are the same thing: nothing is done for either.
    pub(super) fn shared(&self, machine: &Machine, host: &HostName) -> Option<Problem> {
        let other = |others: &[&'a Arc<Machine>]| {
            let other = others.iter().find(|other| other.name != machine.name);
            other.map(|other| other.name.to_string())
        };
        if let Some(other) = other(self.linked_to(host)) {
            let text = format!(
                "machines {} and {other} are both linked to host {host}; correct annotation {BARE_METAL_HOST} of one",
                machine.name
            );
            return Some((reason::HOST_SHARED, text));
        }
        if let Some(problem) = self.provided_elsewhere(machine) {
            return Some(problem);
        }
        let node = machine.node.as_ref()?;
        let Some(other) = other(self.machines_of(node)) else {
            return self.carried_elsewhere(machine, node, host);
        };
        let text = format!(
            "the status.nodeRef of machines {} and {other} both name node {node}; delete the one that is not it",
            machine.name
        );
        Some((reason::NODE_SHARED, text))
    }

    /// What hosts say of the Nodes that they carry contradicts the Machine: whoever may write Machines and
    /// hosts of one namespace would else have any Node released whose Machine nobody made.
    fn carried_elsewhere(&self, machine: &Machine, node: &str, host: &HostName) -> Option<Problem> {
        let carriers = self.named.get(node).map_or(&[][..], Vec::as_slice);
        let linked = self.world.hosts.get(host)?;
        let own = linked.annotations.get(NODE);
        // A claim that came later is void where the Node itself says that it is this host. Without the Node's word
        // nothing is released: an older host could else be linked to a Node whose own host is newer.
        let is_this_ones = node_named(self.world, node)
            .and_then(|node| node.provider_id.as_ref())
            .is_some_and(|id| names(id, linked));
        let is_void = |claim: &Host| is_this_ones && is_older(linked, claim);
        let carrier = carriers
            .iter()
            .find(|carrier| carrier.name != *host && !is_void(carrier));
        let (at, says) = match (carrier, own) {
            (Some(carrier), _) => (&carrier.name, node),
            (None, Some(own)) if own != node => (host, own.as_str()),
            (None, Some(_) | None) => return None,
        };
        let text = format!(
            "machine {} is node {node} on host {host}, and host {at} has annotation {NODE}: {says}; correct the one that is wrong",
            machine.name
        );
        Some((reason::BAD_HOST_LINK, text))
    }

    /// The providers call the Machine, its infrastructure or its Node otherwise: they are not one machine.
    fn provided_elsewhere(&self, machine: &Machine) -> Option<Problem> {
        let infra = machine.infra.as_ref().filter(|infra| infra.is_metal3());
        let infra = infra.and_then(|infra| self.world.infra.get(&infra.object));
        let node = machine.node.as_ref();
        let node = node.and_then(|name| node_named(self.world, name));
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
        let mut contradictions = pairs.filter(|(one, other)| contradict(one.1, other.1));
        let ((one, its), (other, others)) = contradictions.next()?;
        let text = format!(
            "{one} has spec.providerID {its}, and {other} has {others}: they are not one machine; correct the status.nodeRef, the infrastructureRef or the spec.providerID that is wrong"
        );
        Some((reason::BAD_HOST_LINK, text))
    }

    /// The key of Machines and Nodes on this host, if one is there.
    pub(super) fn machine_key(&self, host: &HostName) -> Option<&KeyOwner> {
        let affairs = self.affairs.get(host)?;
        let mut keys = affairs.keys.iter();
        keys.find(|key| key.name == MACHINE_KEY)
            .map(|key| &key.owner)
    }

    /// Whether whom this key is for is there, and of this UID.
    pub(super) fn is_alive(&self, owner: &KeyOwner, host: &Host) -> bool {
        match owner {
            KeyOwner::Machine(uid) => self.by_uid(uid).is_some(),
            KeyOwner::Node(uid) => {
                let node = host.annotations.get(NODE);
                let node = node.and_then(|name| node_named(self.world, name));
                node.is_some_and(|node| node.uid == *uid)
            }
            KeyOwner::Request(_) | KeyOwner::Unnamed => false,
        }
    }
}

impl<'a> Affairs<'a> {
    fn of(world: &'a World, host: &'a Arc<Host>) -> Option<Self> {
        let keys: Vec<Key> = Key::of(host).collect();
        let kept = world.backups.get(&host.uid);
        let legacy = host.annotations.get(BACKUP);
        let has_record = host.annotations.contains_key(RECORD);
        if keys.is_empty() && !has_record && kept.is_none() && legacy.is_none() {
            return None;
        }
        Some(Self {
            host,
            keys,
            record: record_on(host),
            kept,
            legacy,
        })
    }

    /// Something is kept of a Node of its host's.
    pub(super) fn keeps_something(&self) -> bool {
        self.kept.is_some() || self.legacy.is_some()
    }

    /// The Node that this host says it carries.
    pub(super) fn named_node(&self) -> Option<&'a String> {
        self.host.annotations.get(NODE)
    }

    /// It kept what was on a control-plane Node. The deleted Node's role is nowhere else, and the new one
    /// registers without it, for a kubelet may not give itself one.
    pub(super) fn kept_control_plane(&self) -> bool {
        let kept = self.kept;
        kept.is_some_and(|kept| crate::policy::is_control_plane(&kept.backup.labels))
    }

    /// The record of a remediation that has not ended.
    pub(super) fn open_record(&self) -> Option<&Record> {
        let record = self.record.as_ref();
        record.filter(|record| record.ended().is_none())
    }
}

/// The record on a host, whoever's remediation it is of.
pub fn record_on(host: &Host) -> Option<Record> {
    let text = host.annotations.get(RECORD)?;
    serde_json::from_str(text).ok()
}

/// Of two hosts that claim one Node the older keeps it.
fn is_older(host: &Host, other: &Host) -> bool {
    let rules = OwnerRules::default();
    Seniority::of(host, &rules) < Seniority::of(other, &rules)
}

/// The Nodes that a host carries: the one that its annotation names, else those of the Machines that are linked to
/// it. For whoever only wants to know whether one of them lives.
pub fn nodes_of(
    host: &Arc<Host>,
    machines: impl IntoIterator<Item = Machine>,
    infra: impl IntoIterator<Item = InfraMachine>,
) -> Vec<NodeName> {
    if let Some(name) = named_node(host) {
        return vec![name];
    }
    let machines = machines
        .into_iter()
        .map(|it| (it.name.clone(), Arc::new(it)));
    let infra = infra.into_iter().map(|it| (it.name.clone(), Arc::new(it)));
    let world = World {
        machines: machines.collect(),
        infra: infra.collect(),
        hosts: [(host.name.clone(), Arc::clone(host))].into(),
        ..World::default()
    };
    let index = Index::of(&world);
    let linked = index.linked_to(&host.name).iter();
    let names = linked.filter_map(|machine| machine.node.as_deref());
    names.filter_map(|name| NodeName::new(name).ok()).collect()
}

/// The Node that a host's annotation names.
pub fn named_node(host: &Host) -> Option<NodeName> {
    let name = host.annotations.get(NODE)?;
    NodeName::new(name.as_str()).ok()
}

/// A Node by a name that may be none.
pub(super) fn node_named<'a>(world: &'a World, name: &str) -> Option<&'a Arc<NodeSeen>> {
    let name = crate::name::NodeName::new(name).ok()?;
    world.nodes.get(&name)
}

fn link<'a>(world: &'a World, machine: &Machine) -> Result<&'a Arc<Host>, Problem> {
    let text = match &machine.host {
        Some(text) => text,
        None => through_infra(world, machine)?,
    };
    let name = parse(text).ok_or_else(|| {
        let text = format!("{text:?} in annotation {BARE_METAL_HOST} of machine {} is not NAMESPACE/NAME; correct it", machine.name);
        (reason::BAD_HOST_LINK, text)
    })?;
    let host = world.hosts.get(&name).ok_or_else(|| {
        let text = format!(
            "machine {} is linked to BareMetalHost {name}, which is not there; correct annotation {BARE_METAL_HOST}",
            machine.name
        );
        (reason::HOST_NOT_FOUND, text)
    })?;
    confirmed(machine, host)?;
    Ok(host)
}

impl InfraRef {
    /// It leads to a host.
    fn is_metal3(&self) -> bool {
        self.kind == METAL3_MACHINE && self.group == METAL3_GROUP
    }
}

fn through_infra<'a>(world: &'a World, machine: &Machine) -> Result<&'a String, Problem> {
    let none = |text: String| (reason::NO_HOST, text);
    let name = &machine.name;
    let Some(infra) = &machine.infra else {
        return Err(none(format!(
            "machine {name} has neither annotation {BARE_METAL_HOST} nor an infrastructureRef; write the annotation: NAMESPACE/NAME of its host"
        )));
    };
    if !infra.is_metal3() {
        return Err(none(format!(
            "machine {name} has no annotation {BARE_METAL_HOST}, and its infrastructureRef is a {}, which leads to no host; write the annotation: NAMESPACE/NAME of its host",
            infra.kind
        )));
    }
    if infra.object.namespace != name.object.namespace {
        let text = format!(
            "the infrastructureRef of machine {name} leads into another namespace, {}; correct it",
            infra.object.namespace
        );
        return Err((reason::BAD_HOST_LINK, text));
    }
    let Some(found) = world.infra.get(&infra.object) else {
        return Err(none(format!(
            "{METAL3_MACHINE} {} of machine {name} is not there",
            infra.object
        )));
    };
    found.host.as_ref().ok_or_else(|| {
        none(format!(
            "{METAL3_MACHINE} {} has no annotation {BARE_METAL_HOST} yet",
            found.name
        ))
    })
}

/// `namespace/name`.
fn parse(text: &str) -> Option<HostName> {
    let (namespace, name) = text.split_once('/')?;
    let is_name = |part: &str| crate::name::NodeName::new(part).is_ok();
    (is_name(namespace) && is_name(name)).then(|| HostName::new(namespace, name))
}

/// The host must not say that it is another's; in another namespace it must say that it is this one's.
fn confirmed(machine: &Machine, host: &Host) -> Result<(), Problem> {
    match &host.consumer {
        Some(consumer) if is_of(machine, consumer) => Ok(()),
        Some(consumer) => Err((
            reason::HOST_OF_ANOTHER,
            format!(
                "machine {} is linked to host {}, whose spec.consumerRef names {} {}/{}; correct the one that is wrong",
                machine.name, host.name, consumer.kind, consumer.namespace, consumer.name
            ),
        )),
        None if host.name.namespace == machine.name.object.namespace => Ok(()),
        None => Err((
            reason::BAD_HOST_LINK,
            format!(
                "machine {} is linked to host {} in another namespace, which has no spec.consumerRef that confirms it; write it there, or correct the link",
                machine.name, host.name
            ),
        )),
    }
}

fn is_of(machine: &Machine, consumer: &Consumer) -> bool {
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
