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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediatePreview {
    target: MarkTarget,
    /// The UID of the object to mark.
    uid: String,
    /// The host to be powered off: `NAMESPACE/NAME`.
    host: String,
    /// Whose remediation it is: the target, or a request for its Node.
    pub subject: String,
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
        refuse_ending(target, &foreseen)?;
        refuse_impossible(target, &foreseen)?;
        let node = find_node(view, target);
        Ok(Self {
            uid: target_uid(view, target),
            is_under_way: foreseen.under_way,
            lines: preview_lines(view, &foreseen, node, now),
            question: confirm_question(target, &foreseen, node),
            target: target.clone(),
            subject: foreseen.subject,
            host: foreseen.host.unwrap_or_default(),
        })
    }

    /// Fails if the mark would do something else now than what was agreed to. `yes`: no question
    /// was asked, so that only the objects count.
    pub fn refuse_change(&self, now: &Self, yes: bool) -> Result<(), CommandFailure> {
        let what = if self.target != now.target {
            format!("the object to mark is {} now", now.target)
        } else if self.uid != now.uid {
            "it was deleted and created again".to_owned()
        } else if self.host != now.host {
            format!("its host was {}, and is {} now", self.host, now.host)
        } else if !yes && self.question != now.question {
            format!("the question would be now: {}", now.question)
        } else {
            return Ok(());
        };
        let since = if yes {
            "since it was checked"
        } else {
            "since you were asked"
        };
        let target = &self.target;
        let text = format!("{target} has changed {since}, so nothing was done: {what}");
        Err(CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step("run the command again if you still want it"))
    }
}

fn target_uid(view: &RemediationReportInput, target: &MarkTarget) -> String {
    match target {
        MarkTarget::Node(name) => view.snapshot.nodes[name].uid.clone(),
        MarkTarget::Machine(name) => view.snapshot.machines[name].uid.clone(),
    }
}

/// Refuses while a remediation that nothing requests any more still has its key on the host.
fn refuse_ending(
    target: &MarkTarget,
    foreseen: &RemediationForecast,
) -> Result<(), CommandFailure> {
    if !foreseen.is_ending {
        return Ok(());
    }
    let (subject, host) = (&foreseen.subject, foreseen.host.as_deref());
    let host = host.map_or_else(|| "its host".to_owned(), |host| format!("host {host}"));
    let text = format!(
        "nothing was done: the remediation of {subject} is no longer requested and is being withdrawn; \
         its key is still on {host}"
    );
    Err(
        CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
            "run the command again when it has ended: dogwatch explain {target}"
        )),
    )
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
    now: Now,
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
    lines.extend(missing_leader_line(&view.controller, now));
    lines
}

/// By two clocks, so a leader that seems to be silent may live and begin at once.
fn missing_leader_line(controller: &ObservedController, now: Now) -> Option<String> {
    if !controller.is_without_leader(now) {
        return None;
    }
    let begins = "the remediation begins when there is a leader";
    Some(match controller {
        ObservedController::Leads {
            holder,
            renewed: Some(renewed),
        } => format!(
            "the leading dogwatch controller {holder} renewed its Lease at {renewed}, and by this computer's clock not for a \
             minute: if it is dead, {begins}; if it lives, the remediation begins at once"
        ),
        ObservedController::Leads { .. }
        | ObservedController::Ended { .. }
        | ObservedController::Nobody
        | ObservedController::Unknown => {
            format!("no dogwatch controller is the leader now: {begins}")
        }
    })
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
