//! Finds what would block a remediation of the node, before its machine fails.

use super::finding::{CheckFinding, FindingSeverity};
use super::findings::unknown_finding;
use super::view::CheckView;
use crate::explain::RemediationForecast;
use crate::remediation::RemediationReason;

const SUBJECT: &str = "remediation";

/// No findings if the cluster has no hosts.
pub(super) fn find_remediation_blockers(view: &CheckView) -> Vec<CheckFinding> {
    match &view.remediation {
        None => Vec::new(),
        Some(Err(why)) => vec![unknown_finding(SUBJECT, why)],
        Some(Ok(foreseen)) => find_in_forecast(foreseen),
    }
}

fn find_in_forecast(foreseen: &RemediationForecast) -> Vec<CheckFinding> {
    let add = |severity, what: String| CheckFinding::new(severity, SUBJECT, what);
    if foreseen.under_way {
        let text = format!(
            "{} is under way: no other remediation begins",
            foreseen.subject
        );
        let fix = format!("dogwatch explain {}", foreseen.subject);
        return vec![add(FindingSeverity::Blocks, text).with_fix(fix)];
    }
    let mut found = Vec::new();
    if let Some((reason, message, passes)) = &foreseen.refusal {
        let is_none = [RemediationReason::NoHost, RemediationReason::NoNode].contains(reason);
        let severity = if *passes || is_none {
            FindingSeverity::Note
        } else {
            FindingSeverity::Warns
        };
        let text = format!("if this node failed, no remediation would begin: {reason}: {message}");
        found.push(add(severity, text));
    }
    if let (Some(host), Some(why)) = (&foreseen.host, &foreseen.not_ready) {
        let text = format!("Dogwatch might be unable to prove host {host} off: {why}");
        found.push(
            add(FindingSeverity::Warns, text).with_fix(format!("dogwatch explain host/{host}")),
        );
    }
    if let (Some(host), None, None) = (&foreseen.host, &foreseen.refusal, &foreseen.not_ready) {
        let text =
            format!("if this node failed: host {host} would be powered off; power control works");
        found.push(add(FindingSeverity::Note, text));
    }
    if foreseen.host.is_some() && foreseen.no_identity {
        let text = "the Node reports no system UUID to compare with that of its BMC";
        found.push(add(FindingSeverity::Note, text.into()));
    }
    found
}
