//! Which Machine or Node is meant.

use std::fmt;

use dogwatch_core::explain::RemedyView;
use dogwatch_core::name::NodeName;
use dogwatch_core::remedy::{MachineName, ObjectName};

use crate::args::Cluster;
use crate::cluster::Connected;
use crate::command::explain;
use crate::command::remedies::{self, Kind};
use crate::exit::{Exit, Failure};
use dogwatch_core::near::near;

/// As it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    Node(NodeName),
    Machine(remedies::Named),
}

/// What gets the mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Node(NodeName),
    Machine(MachineName),
}

/// As the remediator names it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Node(name) => write!(f, "node/{name}"),
            Target::Machine(name) => write!(f, "machine/{}", name.object),
        }
    }
}

/// Reads one.
pub fn named(text: &str) -> Result<Named, String> {
    if !remedies::is_remedy(text) {
        return explain::node(text)
            .map(Named::Node)
            .map_err(|error| format!("{error}; write NODE, node/NODE or machine/NAMESPACE/NAME"));
    }
    let named = remedies::named(text)?;
    match named.kind {
        Kind::Machine => Ok(Named::Machine(named)),
        Kind::Request => Err(
            "a PowerRemediation asks by itself; write NODE or machine/NAMESPACE/NAME".to_owned(),
        ),
    }
}

impl Named {
    /// The object that gets the mark: a Node that has a Machine is marked there.
    pub fn find(
        &self,
        cluster: &Cluster,
        connected: &Connected,
        view: &RemedyView,
    ) -> Result<Target, Failure> {
        match self {
            Named::Node(node) => of_node(view, node),
            Named::Machine(named) => machine(view, &named.in_cluster(cluster, connected)),
        }
    }
}

fn of_node(view: &RemedyView, node: &NodeName) -> Result<Target, Failure> {
    if !view.world.nodes.contains_key(node) {
        let failure = Failure::new(
            Exit::NotFound,
            format!("there is no Node {node} in this cluster"),
        );
        let names = view.world.nodes.keys().map(NodeName::as_str);
        let near = near(node.as_str(), names);
        return Err(if near.is_empty() {
            failure.next("`dogwatch status` lists them")
        } else {
            failure.next(format!("did you mean {}?", near.join(" or ")))
        });
    }
    let machines = view.world.machines.values();
    let mut its = machines.filter(|it| it.node.as_deref() == Some(node.as_str()));
    Ok(match its.next() {
        Some(machine) => Target::Machine(machine.name.clone()),
        None => Target::Node(node.clone()),
    })
}

fn machine(view: &RemedyView, name: &ObjectName) -> Result<Target, Failure> {
    let machines = view.world.machines.keys();
    let mut found = machines.filter(|machine| machine.object == *name);
    match (found.next(), found.next()) {
        (Some(machine), None) => Ok(Target::Machine(machine.clone())),
        (Some(_), Some(_)) => {
            let text = format!("there are two Machines {name}, of OpenShift and of Cluster API");
            Err(Failure::new(Exit::Failed, text).next("name its node instead"))
        }
        (None, _) => Err(remedies::not_found(view, Kind::Machine, name)),
    }
}
