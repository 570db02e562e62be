//! Finds the Node and the host that a request is for. Source: specification §4.2; Cluster API's and
//! medik8s' contracts.

use std::sync::Arc;

use super::RemediationReason;
use super::host_link::{LinkIndex, RemediationProblem, node_annotated_on, node_by_name};
use super::machine::ObservedMachine;
use super::node_cluster::NodeCluster;
use super::request::PowerRequest;
use super::snapshot::RemediationSnapshot;
use crate::name::NodeName;
use crate::power::HostSnapshot;
use crate::reboot::ObservedNode;

/// Why the host of a Node is not known. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostLinkProblem {
    /// Nothing links the Node to a host that exists.
    NoHost(String),
    /// Links contradict each other.
    Contradiction(String),
}

impl HostLinkProblem {
    pub fn message(&self) -> &str {
        match self {
            HostLinkProblem::NoHost(why) | HostLinkProblem::Contradiction(why) => why,
        }
    }
}

/// Finds the host that carries this Node, by every link that remediation follows.
///
/// # Errors
/// No host is known, or links contradict each other.
pub fn host_carrying(
    world: &RemediationSnapshot,
    node: &NodeName,
) -> Result<Arc<HostSnapshot>, HostLinkProblem> {
    let target = PowerRequestTarget::by_node(
        &LinkIndex::build_index(world),
        &NodeCluster::Management,
        node.as_str(),
    );
    match (target.host, target.problem) {
        (Ok(host), None) => Ok(host),
        (
            Err((
                RemediationReason::NoHost
                | RemediationReason::NoNode
                | RemediationReason::HostNotFound,
                why,
            )),
            _,
        ) => Err(HostLinkProblem::NoHost(why)),
        (Ok(_), Some((_, why))) | (Err((_, why)), _) => Err(HostLinkProblem::Contradiction(why)),
    }
}

/// As [`host_carrying`], but a second host that names the Node is a contradiction: a Ready node is
/// switched off by intention, so nothing is gained by a guess.
///
/// # Errors
/// As [`host_carrying`].
pub fn sole_host_carrying(
    world: &RemediationSnapshot,
    node: &NodeName,
) -> Result<Arc<HostSnapshot>, HostLinkProblem> {
    let host = host_carrying(world, node)?;
    let mut others = world.hosts.values().filter(|other| other.name != host.name);
    let names_node = |other: &&Arc<HostSnapshot>| node_annotated_on(other).as_ref() == Some(node);
    match others.find(names_node) {
        None => Ok(host),
        Some(other) => Err(HostLinkProblem::Contradiction(format!(
            "hosts {} and {} both claim node {node}; remove annotation {} from the wrong one",
            host.name,
            other.name,
            dogwatch_api::annotation::NODE
        ))),
    }
}

/// The target of a request: annotation `node-name`, else the Machine that owns the request, else
/// the request's own name.
pub(super) struct PowerRequestTarget {
    pub(super) host: Result<Arc<HostSnapshot>, RemediationProblem>,
    pub(super) problem: Option<RemediationProblem>,
    pub(super) node_name: Option<NodeName>,
    /// The cluster of the Node.
    pub(super) cluster: NodeCluster,
    pub(super) node: Option<Arc<ObservedNode>>,
    pub(super) machine: Option<Arc<ObservedMachine>>,
}

impl PowerRequestTarget {
    pub(super) fn for_request(index: &LinkIndex<'_>, request: &PowerRequest) -> Self {
        match (&request.node_name, &request.machine) {
            (Some(node), owner) => {
                let cluster = cluster_of_request(index, request);
                let mut target = Self::by_node(index, &cluster, node);
                let found = target.machine.as_ref().map(|machine| &machine.name);
                if let (Some(owner), Some(found)) = (owner, found)
                    && owner != found
                {
                    let text = format!(
                        "it names node {node}, which is machine {found}, but machine {owner} owns it"
                    );
                    target.problem = Some((RemediationReason::BadRequest, text));
                }
                target
            }
            (None, Some(owner)) => match index.world.machines.get(owner) {
                Some(machine) if request.machine_uid.as_ref() == Some(&machine.uid) => {
                    Self::by_machine(index, machine, request.status.node.as_deref())
                }
                Some(_) | None => Self::without_host(
                    RemediationReason::NoHost,
                    format!("its owner, machine {owner}, no longer exists"),
                    request.status.node.as_deref(),
                    cluster_of_request(index, request),
                ),
            },
            (None, None) => Self::by_node(index, &NodeCluster::Management, &request.name.name),
        }
    }

    fn by_node(index: &LinkIndex<'_>, cluster: &NodeCluster, name: &str) -> Self {
        match index.machines_of_node(cluster, name) {
            [] if *cluster != NodeCluster::Management => Self::without_host(
                RemediationReason::NoNode,
                format!("no Machine is node {name} of {cluster}"),
                Some(name),
                cluster.clone(),
            ),
            [] => {
                let host = index.host_of_node(name);
                let node = node_by_name(index.world, cluster, name).cloned();
                let host = match (host, &node) {
                    (Err((RemediationReason::NoHost, text)), None) => {
                        let text = format!("there is no node {name}, and {text}");
                        Err((RemediationReason::NoNode, text))
                    }
                    (host, _) => host,
                };
                let linked = host.as_ref().ok().and_then(|host| {
                    let machine = index.machines_linked_to(&host.name).first()?;
                    let text = format!(
                        "host {} belongs to machine {}, which is not node {name}",
                        host.name, machine.name
                    );
                    Some((RemediationReason::HostOfAnother, text))
                });
                Self {
                    host,
                    problem: linked,
                    node_name: NodeName::new(name).ok(),
                    cluster: NodeCluster::Management,
                    node,
                    machine: None,
                }
            }
            [machine, ..] => Self::by_machine(index, machine, Some(name)),
        }
    }

    fn by_machine(
        index: &LinkIndex<'_>,
        machine: &Arc<ObservedMachine>,
        was: Option<&str>,
    ) -> Self {
        let host = index.host_of_machine(&machine.name);
        let trouble = host
            .as_ref()
            .ok()
            .and_then(|host| index.sharing_problem(machine, &host.name));
        let named = machine.node.as_deref();
        Self {
            host,
            problem: trouble,
            node_name: named.or(was).and_then(|name| NodeName::new(name).ok()),
            cluster: index.world.cluster_of_machine(machine),
            node: index.node_of_machine(machine).cloned(),
            machine: Some(Arc::clone(machine)),
        }
    }

    fn without_host(
        reason: RemediationReason,
        text: String,
        was: Option<&str>,
        cluster: NodeCluster,
    ) -> Self {
        Self {
            host: Err((reason, text)),
            problem: None,
            node_name: was.and_then(|name| NodeName::new(name).ok()),
            cluster,
            node: None,
            machine: None,
        }
    }
}

/// The cluster of a request that a Machine owns, which may be gone.
fn cluster_of_request(index: &LinkIndex<'_>, request: &PowerRequest) -> NodeCluster {
    let Some(owner) = &request.machine else {
        return NodeCluster::Management;
    };
    let machine = index.world.machines.get(owner);
    let named = machine.and_then(|machine| machine.cluster.as_deref());
    let named = named.or(request.cluster.as_deref());
    let namespace = &request.name.namespace;
    index.world.cluster_of_owner(owner.api, namespace, named)
}
