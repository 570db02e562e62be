//! The NodeReboots of a node that no controller has carried to it yet: nothing on the Node shows
//! them.

use dogwatch_api::node_reboot::condition;

use super::chain::{MAX_NAMED_ITEMS, NodeExplainer};
use super::explanation::ExplanationTopic;
use super::fleet::NodeReportInput;
use super::human_format::{format_since, quote_reason};
use super::node_reboot::{find_condition, is_unobserved};
use crate::Now;
use crate::node_reboot::{NodeRebootPlan, ObservedNodeReboot};
use crate::reboot::ObservedNode;

impl NodeExplainer<'_> {
    /// Adds what each of them says of itself, and who leads the controllers.
    pub(super) fn add_requested_reboots(&mut self) {
        let requested = list_requested_reboots(self.view, self.node);
        if requested.is_empty() {
            return;
        }
        let named = requested.iter().take(MAX_NAMED_ITEMS);
        let told: Vec<String> = named
            .filter_map(|reboot| describe_requested_reboot(reboot, self.now))
            .collect();
        for text in told {
            self.add_line(ExplanationTopic::Asked, text);
        }
        let more = requested.len().saturating_sub(MAX_NAMED_ITEMS);
        if more > 0 {
            self.add_line(
                ExplanationTopic::Asked,
                format!("and {more} more NodeReboots"),
            );
        }
        if let Some(text) = self.view.fleet.controller.to_sentence(self.now) {
            self.add_line(ExplanationTopic::Controller, text);
        }
    }
}

/// The oldest first.
pub(super) fn list_requested_reboots<'a>(
    view: &'a NodeReportInput,
    node: &ObservedNode,
) -> Vec<&'a ObservedNodeReboot> {
    let reboots = view.node_reboots.iter();
    let mut requested: Vec<_> = reboots.filter(|one| one.has_not_reached(node)).collect();
    requested.sort_by_key(|one| (one.created, &one.name));
    requested
}

/// `None` if there is none.
pub(super) fn summarize_requested_reboots(
    view: &NodeReportInput,
    node: &ObservedNode,
) -> Option<String> {
    let requested = list_requested_reboots(view, node);
    let first = requested.first()?;
    let is_hold = first.plan.as_ref().is_ok_and(NodeRebootPlan::is_hold);
    let what = if is_hold { "hold" } else { "reboot" };
    let more = match requested.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (name, by) = (&node.name, &first.name);
    Some(format!(
        "{name}: a {what} is requested by nodereboot/{by}{more}, and has not reached the node"
    ))
}

fn describe_requested_reboot(reboot: &ObservedNodeReboot, now: Now) -> Option<String> {
    let plan = reboot.plan.as_ref().ok()?;
    let by = plan.requester.as_deref().map(|by| format!(" by {by}"));
    let said = find_condition(reboot, condition::PROGRESSING);
    let said = match said.filter(|_| !is_unobserved(reboot)) {
        Some(said) => format!("{}: {}", said.reason, said.message),
        None => "no controller has read it".to_owned(),
    };
    let name = &reboot.name;
    let method = plan.method.as_str();
    let reason = quote_reason(&plan.reason);
    Some(format!(
        "nodereboot/{name}, method {method}{}: {reason}, {}; it has not reached the node: {said}",
        by.unwrap_or_default(),
        format_since(reboot.created, now)
    ))
}

/// What a person can do about them; empty if there is none.
pub(super) fn requested_reboot_advice(
    view: &NodeReportInput,
    node: &ObservedNode,
    now: Now,
) -> Vec<String> {
    let requested = list_requested_reboots(view, node);
    let Some(first) = requested.first() else {
        return Vec::new();
    };
    let mut advice = vec![format!(
        "to see what it waits for: dogwatch explain nodereboot/{}",
        first.name
    )];
    let is_idle = requested.iter().any(|one| is_unobserved(one));
    let controller = &view.fleet.controller;
    advice.extend(controller.controller_advice(is_idle, "power or healer", now));
    let plans = || requested.iter().filter_map(|one| one.plan.as_ref().ok());
    if plans().any(|plan| !plan.is_hold() && !plan.cancel) {
        let text = format!("to withdraw it: dogwatch reboot {} --cancel", node.name);
        advice.push(text);
    }
    if plans().any(|plan| plan.is_hold() && !plan.cancel) {
        advice.push(format!(
            "to withdraw the hold: dogwatch release {}",
            node.name
        ));
    }
    advice
}

#[cfg(test)]
mod tests {
    use dogwatch_api::node_reboot::RebootMethod;

    use super::super::testkit::{
        answered_reboot, at, fleet, node, now, requested_reboot, view, waiting,
    };
    use super::super::tests::text;
    use super::super::{ObservedController, explain_node};
    use super::*;
    use crate::reboot::{NodeRebootRef, ParsedAnnotation, RebootRequest};

    fn input(node: ObservedNode, reboots: Vec<ObservedNodeReboot>) -> NodeReportInput {
        let name = node.name.to_string();
        let mut view = view(&name, fleet(vec![node], vec![]));
        view.fleet.controller = ObservedController::Nobody;
        view.node_reboots = reboots;
        view
    }

    #[test]
    fn a_node_reboot_that_has_not_reached_its_node_is_told_with_its_reason() {
        let said = ("NotBefore", "waits until 1970-01-01T02:00:00Z");
        let later = answered_reboot(requested_reboot("nr", "n1"), said);
        let told = explain_node(&input(node("n1"), vec![later]), now(70)).unwrap();
        assert_eq!(
            told.summary,
            "n1: a reboot is requested by nodereboot/nr, and has not reached the node"
        );
        let lines = text(&told);
        assert_eq!(
            lines[..2],
            [
                "asked: nodereboot/nr, method Reboot by ann: \"kernel\", since 1970-01-01 00:00:40Z (30s); it has not reached the node: NotBefore: waits until 1970-01-01T02:00:00Z",
                "controller: no dogwatch controller leads",
            ]
        );
        assert_eq!(
            told.advice,
            [
                "to see what it waits for: dogwatch explain nodereboot/nr",
                "start the controller: dogwatch manifests | kubectl apply --server-side -f -",
                "to withdraw it: dogwatch reboot n1 --cancel",
            ]
        );
    }

    #[test]
    fn a_hold_is_withdrawn_by_a_release_and_an_older_node_reboot_comes_first() {
        let mut hold = requested_reboot("b", "n1");
        hold.created = at(30);
        if let Ok(plan) = &mut hold.plan {
            plan.method = RebootMethod::Hold;
        }
        let mut cancelled = requested_reboot("a", "n1");
        if let Ok(plan) = &mut cancelled.plan {
            plan.cancel = true;
        }
        let told = explain_node(&input(node("n1"), vec![cancelled, hold]), now(70)).unwrap();
        assert!(
            told.summary
                .contains("a hold is requested by nodereboot/b and 1 more"),
            "{}",
            told.summary
        );
        let advice = told.advice.join("\n");
        assert!(advice.contains("dogwatch release n1"), "{advice}");
        assert!(!advice.contains("--cancel"), "{advice}");
    }

    #[test]
    fn what_the_node_shows_or_what_is_for_another_node_is_not_told_again() {
        let own = requested_reboot("nr", "n1");
        let refs = vec![NodeRebootRef {
            name: own.name.clone(),
            uid: own.uid.clone(),
        }];
        let mut asked = node("n1");
        asked.request = ParsedAnnotation::Is(RebootRequest {
            node_reboots: refs.clone(),
            ..RebootRequest::default()
        });
        let mut served = waiting("n1", 50);
        if let ParsedAnnotation::Is(record) = &mut served.record {
            record.trigger.node_reboots = refs;
        }
        for (node, reboot) in [
            (asked, own.clone()),
            (served, own),
            (node("n1"), requested_reboot("nr", "n2")),
        ] {
            let told = explain_node(&input(node, vec![reboot]), now(70)).unwrap();
            assert!(
                !text(&told).join("\n").contains("nodereboot/nr"),
                "{told:#?}"
            );
        }
    }

    #[test]
    fn a_node_reboot_behind_another_reboot_is_told_beside_it() {
        let said = ("RebootUnderWay", "another reboot of the node is under way");
        let behind = answered_reboot(requested_reboot("nr", "n1"), said);
        let told = explain_node(&input(waiting("n1", 50), vec![behind]), now(70)).unwrap();
        assert!(
            told.summary.starts_with("n1: waiting for 20s"),
            "{}",
            told.summary
        );
        let lines = text(&told).join("\n");
        assert!(lines.contains("RebootUnderWay"), "{lines}");
    }
}
