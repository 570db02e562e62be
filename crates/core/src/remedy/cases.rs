//! Who is concerned: everybody that is marked, asks, or has something of ours on a host. Source:
//! specification §4.1.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::case::{Case, Subject};
use super::kept::kept;
use super::key::KeyOwner;
use super::legacy::Legacy;
use super::link::{Affairs, Index, Problem, node_named};
use super::machine::Machine;
use super::reason;
use super::record::Record;
use super::request::PowerRequest;
use super::seen::World;
use super::target::Target;
use crate::condition::Condition;
use crate::name::NodeName;
use crate::policy::is_control_plane;
use crate::power::{Host, HostName};
use crate::reboot::NodeSeen;

/// The type of the condition that shows a remediation.
pub const CONDITION: &str = "Remediation";

/// Everything that is to be handled now, each with its links followed. Nothing before all lists have come.
/// Linear in what is watched.
pub fn cases(world: &World) -> Vec<Case> {
    if !world.synced {
        return Vec::new();
    }
    let mut found = Found {
        index: Index::of(world),
        cases: Vec::new(),
        hosts: BTreeSet::new(),
        handled: BTreeSet::new(),
        nodes: BTreeSet::new(),
    };
    let machines = world.machines.values();
    machines.for_each(|machine| found.machine(machine));
    found.marked_nodes();
    let requests = world.requests.values();
    requests.for_each(|request| found.request(request));
    found.hosts_left();
    found.backups_left();
    found.nodes_left();
    found.cases
}

pub(super) struct Found<'a> {
    pub(super) index: Index<'a>,
    pub(super) cases: Vec<Case>,
    /// Hosts of cases: their backups are handled.
    pub(super) hosts: BTreeSet<HostName>,
    /// Whose keys are handled.
    pub(super) handled: BTreeSet<(HostName, KeyOwner)>,
    /// Names of the Nodes of cases.
    pub(super) nodes: BTreeSet<NodeName>,
}

/// Where a case's host is, and what is wrong with it.
struct Place {
    host: Result<Arc<Host>, Problem>,
    trouble: Option<Problem>,
}

impl Found<'_> {
    fn machine(&mut self, machine: &Arc<Machine>) {
        let owner = KeyOwner::Machine(machine.uid.clone());
        let place = self.place(self.index.link(&machine.name), &owner);
        let subject = Subject::Machine(machine.name.clone());
        let record = self.record(&place, &subject);
        if !self.concerns(machine, &owner, &place, record.as_ref()) {
            return;
        }
        let shared = |host: &Arc<Host>| self.index.shared(machine, &host.name);
        let shared = place.host.as_ref().ok().and_then(shared);
        let (key, foreign) = self.key_for(owner, &place);
        let named = machine.node.as_deref();
        let recorded = record.as_ref().and_then(|record| record.node.as_deref());
        let node = named.and_then(|name| node_named(self.index.world, name));
        let case = Case {
            subject,
            key,
            needs: machine.need.is_some(),
            trouble: place.trouble.or(shared).or(foreign),
            node_name: named.or(recorded).and_then(|name| NodeName::new(name).ok()),
            node: node.cloned(),
            leased: false,
            record,
            stored: None,
            kept: None,
            legacy: None,
            control_plane: machine.control_plane
                || node.is_some_and(|node| is_control_plane(&node.labels)),
            machine: Some(Arc::clone(machine)),
            request: None,
            host: place.host,
        };
        self.add(case);
    }

    /// Whether a Machine is anybody's affair: most are not.
    fn concerns(
        &self,
        machine: &Machine,
        owner: &KeyOwner,
        place: &Place,
        record: Option<&Record>,
    ) -> bool {
        let is_foreign = || {
            let host = place.host.as_ref().ok();
            host.is_some_and(|host| self.index.machine_key(&host.name) == Some(&KeyOwner::Unnamed))
        };
        machine.need.is_some()
            || self.index.carrier(owner).is_some()
            || record.is_some_and(|record| record.ended().is_none())
            || is_shown(&machine.conditions)
            || is_foreign()
    }

    /// The key that stands there carries a case on even where the link does not.
    fn place(&self, link: Result<Arc<Host>, Problem>, owner: &KeyOwner) -> Place {
        match (link, self.index.carrier(owner)) {
            (Err(problem), Some(carrier)) => Place {
                host: Ok(Arc::clone(carrier)),
                trouble: Some(problem),
            },
            (host, _) => Place {
                host,
                trouble: None,
            },
        }
    }

    /// For whom the table's key is on this host; and what stands in the way if it is another's.
    fn key_for(&self, owner: KeyOwner, place: &Place) -> (KeyOwner, Option<Problem>) {
        let Ok(host) = &place.host else {
            return (owner, None);
        };
        let Some(standing) = self.index.machine_key(&host.name) else {
            return (owner, None);
        };
        if *standing == owner {
            return (owner, None);
        }
        // The table looks at the key only.
        if *standing == KeyOwner::Unnamed {
            return (KeyOwner::Unnamed, None);
        }
        let problem = if self.index.is_alive(standing, host) {
            let text = format!(
                "host {} carries the key of another Machine or Node",
                host.name
            );
            (reason::HOST_OF_ANOTHER, text)
        } else {
            let text = format!(
                "host {} carries the key of a Machine or Node that is gone; that one goes first",
                host.name
            );
            (reason::ORPHANED_KEY, text)
        };
        (owner, Some(problem))
    }

    /// The record on the host, if it is of this one.
    fn record(&self, place: &Place, subject: &Subject) -> Option<Record> {
        let host = place.host.as_ref().ok()?;
        let record = self.index.affairs.get(&host.name)?.record.as_ref()?;
        (record.subject == subject.to_string()).then(|| record.clone())
    }

    fn marked_nodes(&mut self) {
        let nodes = self.index.world.nodes.values();
        let marked = nodes.filter(|node| node.needs_remediation || is_shown(&node.conditions));
        let mut names: BTreeSet<NodeName> = marked.map(|node| node.name.clone()).collect();
        for affairs in self.index.affairs.values() {
            let is_nodes = |owner: &KeyOwner| matches!(owner, KeyOwner::Node(_));
            let has_key = affairs.keys.iter().any(|key| is_nodes(&key.owner));
            let open = affairs.open_record();
            let is_open = open.is_some_and(|record| record.subject.starts_with("node/"));
            let name = affairs.named_node().filter(|_| has_key || is_open);
            names.extend(name.and_then(|name| NodeName::new(name.clone()).ok()));
        }
        for name in names {
            self.node(name);
        }
    }

    fn node(&mut self, name: NodeName) {
        let node = self.index.world.nodes.get(&name).cloned();
        let place = self.place_of_node(&name, node.as_ref());
        let subject = Subject::Node(name.clone());
        let record = self.record(&place, &subject);
        let uid = node
            .as_ref()
            .map_or_else(String::new, |node| node.uid.clone());
        let (key, foreign) = self.key_of_node(KeyOwner::Node(uid), &place);
        let is_own = node
            .as_ref()
            .is_some_and(|node| key == KeyOwner::Node(node.uid.clone()));
        let marked = node.as_ref().is_some_and(|node| node.needs_remediation);
        let case = Case {
            subject,
            needs: marked && is_own,
            key,
            host: place.host,
            trouble: place.trouble.or(foreign),
            control_plane: node
                .as_ref()
                .is_some_and(|node| is_control_plane(&node.labels)),
            node_name: Some(name),
            node,
            leased: false,
            record,
            stored: None,
            kept: None,
            legacy: None,
            machine: None,
            request: None,
        };
        self.add(case);
    }

    fn place_of_node(&self, name: &NodeName, node: Option<&Arc<NodeSeen>>) -> Place {
        let host = self.index.host_of_node(name.as_str());
        if let Some(machine) = self.index.machines_of(name.as_str()).first() {
            let text = format!(
                "node {name} is that of machine {}: mark the Machine instead",
                machine.name
            );
            let problem = (reason::NODE_OF_A_MACHINE, text);
            let owner = node.map(|node| KeyOwner::Node(node.uid.clone()));
            let carrier = owner.and_then(|owner| self.index.carrier(&owner));
            return Place {
                host: carrier.map_or_else(|| Err(problem.clone()), |host| Ok(Arc::clone(host))),
                trouble: Some(problem),
            };
        }
        let trouble = host.as_ref().ok().and_then(|host| {
            let machine = self.index.linked_to(&host.name).first()?;
            let text = format!(
                "host {} is that of machine {}, which is not node {name}",
                host.name, machine.name
            );
            Some((reason::HOST_OF_ANOTHER, text))
        });
        Place { host, trouble }
    }

    /// As for Machines; but a key of a Node that is gone is its name's affair.
    fn key_of_node(&self, owner: KeyOwner, place: &Place) -> (KeyOwner, Option<Problem>) {
        let Ok(host) = &place.host else {
            return (owner, None);
        };
        match self.index.machine_key(&host.name) {
            Some(standing @ KeyOwner::Node(_)) if place.trouble.is_none() => {
                (standing.clone(), None)
            }
            Some(KeyOwner::Unnamed) => {
                let text = format!(
                    "annotation {} on host {} is not ours; whoever wrote it removes it",
                    owner.key(),
                    host.name
                );
                (owner, Some((reason::FOREIGN_KEY, text)))
            }
            Some(_) | None => self.key_for(owner, place),
        }
    }

    fn request(&mut self, request: &Arc<PowerRequest>) {
        let target = Target::of(&self.index, request);
        let key = KeyOwner::Request(request.uid.clone());
        let place = match self.index.carrier(&key) {
            Some(carrier) => Place {
                trouble: match &target.host {
                    Ok(host) if host.name == carrier.name => target.trouble,
                    Ok(host) => Some((
                        reason::BAD_REQUEST,
                        format!(
                            "its target is on host {} now, and its key on host {}",
                            host.name, carrier.name
                        ),
                    )),
                    Err(problem) => Some(problem.clone()),
                },
                host: Ok(Arc::clone(carrier)),
            },
            None => Place {
                host: target.host,
                trouble: target.trouble,
            },
        };
        let subject = Subject::Request(request.name.clone());
        let record = self.record(&place, &subject);
        let node = target.node;
        let case = Case {
            record: record.filter(|record| record.uid == request.uid),
            subject,
            key,
            needs: super::request::needs(request),
            host: place.host,
            trouble: place.trouble,
            control_plane: target.machine.as_ref().is_some_and(|it| it.control_plane)
                || node
                    .as_ref()
                    .is_some_and(|node| is_control_plane(&node.labels)),
            node_name: target.node_name,
            node,
            leased: false,
            stored: None,
            kept: None,
            legacy: None,
            machine: target.machine,
            request: Some(Arc::clone(request)),
        };
        self.add(case);
    }

    pub(super) fn add(&mut self, mut case: Case) {
        let world = self.index.world;
        case.leased = case
            .node_name
            .as_ref()
            .is_some_and(|name| world.leases.contains_key(name));
        if let Ok(host) = &case.host {
            let is_first = self.hosts.insert(host.name.clone());
            let affairs = self.index.affairs.get(&host.name);
            case.control_plane |= affairs.is_some_and(Affairs::kept_control_plane);
            case.stored = world.backups.get(&host.uid).cloned();
            if is_first {
                case.kept = kept(&self.index, host);
                case.legacy = affairs.and_then(|affairs| Legacy::of(world, affairs, &case));
            }
            self.handled.insert((host.name.clone(), case.key.clone()));
        }
        self.nodes.extend(case.node_name.clone());
        self.cases.push(case);
    }
}

/// The condition says that a remediation is under way: it is taken back when none is.
fn is_shown(conditions: &[Condition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|condition| condition.kind == CONDITION && condition.status == "True")
}
