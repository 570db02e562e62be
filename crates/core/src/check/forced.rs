//! What a remediation of the node would run into: whoever finds out when it has failed finds out too late.

use super::finding::{Finding, Severity};
use super::findings::unknown;
use super::view::CheckView;
use crate::explain::Foreseen;
use crate::remedy::reason;

const SUBJECT: &str = "remediation";

/// Nothing where the cluster has no hosts.
pub(super) fn findings(view: &CheckView) -> Vec<Finding> {
    match &view.forced {
        None => Vec::new(),
        Some(Err(why)) => vec![unknown(SUBJECT, why)],
        Some(Ok(foreseen)) => of(foreseen),
    }
}

fn of(foreseen: &Foreseen) -> Vec<Finding> {
    let add = |severity, what: String| Finding::new(severity, SUBJECT, what);
    if foreseen.under_way {
        let text = format!("{} is under way: nothing else is begun", foreseen.subject);
        let fix = format!("dogwatch explain {}", foreseen.subject);
        return vec![add(Severity::Blocks, text).fix(fix)];
    }
    let mut found = Vec::new();
    if let Some((reason, message, passes)) = &foreseen.refusal {
        let is_none = [reason::NO_HOST, reason::NO_NODE].contains(reason);
        let severity = if *passes || is_none {
            Severity::Note
        } else {
            Severity::Warns
        };
        let text = format!("if this node failed, none would begin: {reason}: {message}");
        found.push(add(severity, text));
    }
    if let (Some(host), Some(why)) = (&foreseen.host, &foreseen.not_ready) {
        let text = format!("host {host} may not be proved off: {why}");
        found.push(add(Severity::Warns, text).fix(format!("dogwatch explain host/{host}")));
    }
    if let (Some(host), None, None) = (&foreseen.host, &foreseen.refusal, &foreseen.not_ready) {
        let text =
            format!("if this node failed: host {host} would be powered off; power control works");
        found.push(add(Severity::Note, text));
    }
    if foreseen.host.is_some() && foreseen.no_identity {
        let text = "the Node tells no system UUID that could be compared with its BMC's";
        found.push(add(Severity::Note, text.into()));
    }
    found
}
