//! Finds what nobody would do, because no controller leads.

use super::finding::{CheckFinding, FindingSeverity};
use super::findings::unknown_finding;
use super::view::CheckView;
use crate::Now;

const SUBJECT: &str = "controller";
const FIX: &str = "start the controller, or read its log: kubectl get pods -A -l app.kubernetes.io/name=dogwatch-controller";

/// No findings while a controller leads, or if nothing depends on one.
pub(super) fn find_missing_leader(view: &CheckView, now: Now) -> Vec<CheckFinding> {
    if !view.fleet.controller.is_without_leader(now) {
        return Vec::new();
    }
    let mut found = Vec::new();
    match &view.node_reboot_kind {
        None | Some(Ok(false)) => {}
        Some(Ok(true)) => {
            let text = "no dogwatch controller leads: `dogwatch reboot` creates a NodeReboot, and nobody carries it to the node; sentinel files work without a controller";
            let finding = CheckFinding::new(FindingSeverity::Warns, SUBJECT, text);
            found.push(finding.with_fix(FIX));
        }
        Some(Err(why)) => found.push(unknown_finding("NodeReboots", why)),
    }
    let mut forecast = view.remediation.iter().flatten();
    if forecast.any(|foreseen| foreseen.host.is_some()) {
        let text =
            "no dogwatch controller leads: if this node failed, nobody would power its host off";
        let finding = CheckFinding::new(FindingSeverity::Warns, SUBJECT, text);
        found.push(finding.with_fix(FIX));
    }
    found
}
