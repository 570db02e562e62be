//! Forecasts what a remediation will do, and decides what to ask the person.

use dogwatch_core::Now;
use dogwatch_core::explain::{
    ObservedController, RemediationForecast, RemediationReportInput, forecast_machine,
    forecast_node,
};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::ObservedNode;

use super::target::MarkTarget;
use crate::exit::{CliExitCode, CommandFailure};

/// What the person sees before the mark is set.
pub struct RemediatePreview {
    /// A remediation is under way, so no question is needed.
    pub is_under_way: bool,
    /// What will happen, one sentence each.
    pub lines: Vec<String>,
    pub question: String,
}

impl RemediatePreview {
    /// Fails if the remediation could not work.
    pub fn of_target(
        view: &RemediationReportInput,
        target: &MarkTarget,
        now: Now,
    ) -> Result<Self, CommandFailure> {
        let foreseen = match target {
            MarkTarget::Node(name) => forecast_node(view, name, now),
            MarkTarget::Machine(name) => forecast_machine(view, name, now),
        };
        let foreseen = foreseen.expect("it was found there");
        refuse_impossible(target, &foreseen)?;
        let node = find_node(view, target);
        Ok(Self {
            is_under_way: foreseen.under_way,
            lines: preview_lines(view, &foreseen, node),
            question: confirm_question(target, &foreseen, node),
        })
    }
}

/// Refuses when the objects are wrong, or when nobody can tell which host would be switched off.
fn refuse_impossible(
    target: &MarkTarget,
    foreseen: &RemediationForecast,
) -> Result<(), CommandFailure> {
    let (why, next) = match (&foreseen.refusal, &foreseen.host) {
        (Some((reason, message, false)), _) => (
            format!("{reason}: {message}"),
            format!("dogwatch explain {target}"),
        ),
        (_, None) => (
            "Dogwatch knows no host for it".to_owned(),
            format!("dogwatch explain {target}"),
        ),
        (Some((_, _, true)) | None, Some(_)) => return Ok(()),
    };
    let text = format!("{target} cannot be remediated, so nothing was done: {why}");
    Err(CommandFailure::new(CliExitCode::Failed, text).with_next_step(next))
}

fn find_node<'a>(
    view: &'a RemediationReportInput,
    target: &MarkTarget,
) -> Option<&'a ObservedNode> {
    let named = match target {
        MarkTarget::Node(name) => Some(name.clone()),
        MarkTarget::Machine(name) => {
            let machine = view.snapshot.machines.get(name)?;
            machine
                .node
                .clone()
                .and_then(|name| NodeName::new(name).ok())
        }
    };
    view.snapshot.nodes.get(&named?).map(AsRef::as_ref)
}

fn preview_lines(
    view: &RemediationReportInput,
    foreseen: &RemediationForecast,
    node: Option<&ObservedNode>,
) -> Vec<String> {
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
            "node {0} is Ready: its pods are killed without a drain; `dogwatch reboot {0}` drains it first",
            node.name
        ),
        Some(node) => format!("node {} is not Ready; its Node is deleted when the host is proved off", node.name),
        None => "the machine has no Node".to_owned(),
    });
    if let Some((reason, message, _)) = &foreseen.refusal {
        lines.push(format!("the remediation begins later: {reason}: {message}"));
    }
    if view.controller == ObservedController::Nobody {
        lines.push("no dogwatch controller is the leader now: the remediation begins when there is a leader".to_owned());
    }
    lines
}

fn confirm_question(
    target: &MarkTarget,
    foreseen: &RemediationForecast,
    node: Option<&ObservedNode>,
) -> String {
    let host = foreseen.host.as_deref().unwrap_or_default();
    match node {
        Some(node) if node.ready => format!(
            "Node {0} is healthy. Cut the power of host {host} and delete Node {0} anyway?",
            node.name
        ),
        Some(node) => format!(
            "Cut the power of host {host}, and delete Node {}?",
            node.name
        ),
        None => format!("Cut the power of host {host} for {target}?"),
    }
}
