//! Whom a request is for. Source: specification §4.2; Cluster API's and medik8s' contracts.

use std::sync::Arc;

use super::link::{Index, Problem, node_named};
use super::machine::Machine;
use super::reason;
use super::request::PowerRequest;
use super::seen::World;
use crate::name::NodeName;
use crate::power::Host;
use crate::reboot::NodeSeen;

/// The host that carries this Node, by every link that remediation goes by; or why none is known.
///
/// # Errors
/// A sentence that says what to do.
pub fn host_carrying(world: &World, node: &NodeName) -> Result<Arc<Host>, String> {
    let target = Target::by_node(&Index::of(world), node.as_str());
    match (target.host, target.trouble) {
        (Ok(host), None) => Ok(host),
        (Ok(_), Some((_, why))) | (Err((_, why)), _) => Err(why),
    }
}

/// Whom a request is for: annotation `node-name`, else the Machine that owns it, else its own name.
pub(super) struct Target {
    pub(super) host: Result<Arc<Host>, Problem>,
    pub(super) trouble: Option<Problem>,
    pub(super) node_name: Option<NodeName>,
    pub(super) node: Option<Arc<NodeSeen>>,
    pub(super) machine: Option<Arc<Machine>>,
}

impl Target {
    pub(super) fn of(index: &Index<'_>, request: &PowerRequest) -> Self {
        match (&request.node_name, &request.machine) {
            (Some(node), owner) => {
                let mut target = Self::by_node(index, node);
                let found = target.machine.as_ref().map(|machine| &machine.name);
                if let (Some(owner), Some(found)) = (owner, found)
                    && owner != found
                {
                    let text = format!(
                        "it names node {node}, which is machine {found}, and is owned by machine {owner}"
                    );
                    target.trouble = Some((reason::BAD_REQUEST, text));
                }
                target
            }
            (None, Some(owner)) => match index.world.machines.get(owner) {
                Some(machine) if request.machine_uid.as_ref() == Some(&machine.uid) => {
                    Self::by_machine(index, machine, request.status.node.as_deref())
                }
                Some(_) | None => Self::nowhere(
                    reason::NO_HOST,
                    format!("machine {owner}, which owns it, is gone"),
                    request.status.node.as_deref(),
                ),
            },
            (None, None) => Self::by_node(index, &request.name.name),
        }
    }

    fn by_node(index: &Index<'_>, name: &str) -> Self {
        match index.machines_of(name) {
            [] => {
                let host = index.host_of_node(name);
                let node = node_named(index.world, name).cloned();
                let host = match (host, &node) {
                    (Err((reason::NO_HOST, text)), None) => {
                        let text = format!("there is no node {name}, and {text}");
                        Err((reason::NO_NODE, text))
                    }
                    (host, _) => host,
                };
                let linked = host.as_ref().ok().and_then(|host| {
                    let machine = index.linked_to(&host.name).first()?;
                    let text = format!(
                        "host {} is that of machine {}, which is not node {name}",
                        host.name, machine.name
                    );
                    Some((reason::HOST_OF_ANOTHER, text))
                });
                Self {
                    host,
                    trouble: linked,
                    node_name: NodeName::new(name).ok(),
                    node,
                    machine: None,
                }
            }
            [machine, ..] => Self::by_machine(index, machine, Some(name)),
        }
    }

    fn by_machine(index: &Index<'_>, machine: &Arc<Machine>, was: Option<&str>) -> Self {
        let host = index.link(&machine.name);
        let trouble = host
            .as_ref()
            .ok()
            .and_then(|host| index.shared(machine, &host.name));
        let named = machine.node.as_deref();
        Self {
            host,
            trouble,
            node_name: named.or(was).and_then(|name| NodeName::new(name).ok()),
            node: named
                .and_then(|name| node_named(index.world, name))
                .cloned(),
            machine: Some(Arc::clone(machine)),
        }
    }

    fn nowhere(reason: &'static str, text: String, was: Option<&str>) -> Self {
        Self {
            host: Err((reason, text)),
            trouble: None,
            node_name: was.and_then(|name| NodeName::new(name).ok()),
            node: None,
            machine: None,
        }
    }
}
