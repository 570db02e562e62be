//! What will happen, as far as it shows beforehand; and what is to be asked.

use dogwatch_core::Now;
use dogwatch_core::explain::{ControllerSeen, Foreseen, RemedyView, foreseen, foreseen_machine};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::NodeSeen;

use super::target::Target;
use crate::exit::{Exit, Failure};

/// Before the mark.
pub struct Plan {
    /// Nothing has to be asked.
    pub is_under_way: bool,
    /// What will happen, a sentence each.
    pub lines: Vec<String>,
    /// What the person is asked.
    pub question: String,
}

impl Plan {
    /// Where it cannot work that is said, and nothing is done.
    pub fn of(view: &RemedyView, target: &Target, now: Now) -> Result<Self, Failure> {
        let foreseen = match target {
            Target::Node(name) => foreseen(view, name, now),
            Target::Machine(name) => foreseen_machine(view, name, now),
        };
        let foreseen = foreseen.expect("it was found there");
        refused(target, &foreseen)?;
        let node = node(view, target);
        Ok(Self {
            is_under_way: foreseen.under_way,
            lines: lines(view, &foreseen, node),
            question: question(target, &foreseen, node),
        })
    }
}

/// Something is wrong on the objects, or nobody can tell what would be switched off.
fn refused(target: &Target, foreseen: &Foreseen) -> Result<(), Failure> {
    let (why, next) = match (&foreseen.refusal, &foreseen.host) {
        (Some((reason, message, false)), _) => (
            format!("{reason}: {message}"),
            format!("dogwatch explain {target}"),
        ),
        (_, None) => (
            "no host of it is known".to_owned(),
            format!("dogwatch explain {target}"),
        ),
        (Some((_, _, true)) | None, Some(_)) => return Ok(()),
    };
    let text = format!("{target} cannot be remediated, so nothing was done: {why}");
    Err(Failure::new(Exit::Failed, text).next(next))
}

fn node<'a>(view: &'a RemedyView, target: &Target) -> Option<&'a NodeSeen> {
    let named = match target {
        Target::Node(name) => Some(name.clone()),
        Target::Machine(name) => {
            let machine = view.world.machines.get(name)?;
            machine
                .node
                .clone()
                .and_then(|name| NodeName::new(name).ok())
        }
    };
    view.world.nodes.get(&named?).map(AsRef::as_ref)
}

fn lines(view: &RemedyView, foreseen: &Foreseen, node: Option<&NodeSeen>) -> Vec<String> {
    let host = foreseen.host.as_deref().unwrap_or_default();
    let mut lines = vec![match &foreseen.not_ready {
        None => {
            format!("host {host} will be powered off without a shutdown; its power control works")
        }
        Some(why) => format!(
            "host {host} will be powered off without a shutdown; its power control may not work: {why}"
        ),
    }];
    lines.push(match node {
        Some(node) if node.ready => format!(
            "node {0} is Ready: nothing on it is drained, its pods are killed; `dogwatch reboot {0}` drains it first",
            node.name
        ),
        Some(node) => format!("node {} is not Ready; its Node is deleted once the host is proved off", node.name),
        None => "it has no Node".to_owned(),
    });
    if let Some((reason, message, _)) = &foreseen.refusal {
        lines.push(format!("it begins later: {reason}: {message}"));
    }
    if view.controller == ControllerSeen::Nobody {
        lines.push("no dogwatch controller leads now: it begins when one does".to_owned());
    }
    lines
}

fn question(target: &Target, foreseen: &Foreseen, node: Option<&NodeSeen>) -> String {
    let host = foreseen.host.as_deref().unwrap_or_default();
    match node {
        Some(node) if node.ready => format!(
            "Node {0} is healthy. Cut the power of host {host} all the same, and delete Node {0}?",
            node.name
        ),
        Some(node) => format!(
            "Cut the power of host {host}, and delete Node {}?",
            node.name
        ),
        None => format!("Cut the power of host {host} for {target}?"),
    }
}
