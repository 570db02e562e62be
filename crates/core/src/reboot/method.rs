//! Which of the triggers a reboot serves, by the method that is asked for. A hold is never joined
//! with a reboot; of several reboots, the strongest method is done. Source: specification §10.1.

use std::collections::BTreeMap;

use dogwatch_api::node_reboot::RebootMethod;

use super::record::{
    NodeRebootRef, ParsedAnnotation, RebootRecord, RebootRequest, RebootTrigger, TriggerFingerprint,
};
use super::snapshot::ObservedNode;
use super::step::RebootStep;
use super::triggers::{REQUEST_SOURCE, list_own_triggers};
use super::{RebootContext, RebootReason, idle};

/// What a reboot would serve if it began now.
pub(super) struct PlannedTriggers {
    /// The trigger that the record shows.
    pub(super) lead: RebootTrigger,
    pub(super) serves: BTreeMap<String, TriggerFingerprint>,
}

impl PlannedTriggers {
    pub(super) fn describe_triggers(&self) -> String {
        let reason = idle::first_line(&self.lead.reason);
        format!("{}: {reason}", describe_wish(&self.lead))
    }
}

pub(super) fn describe_wish(trigger: &RebootTrigger) -> String {
    let wish = match trigger.method {
        RebootMethod::Reboot => "a reboot",
        RebootMethod::PowerCycle => "a power cycle",
        RebootMethod::Hold => "a hold",
    };
    format!("{} requests {wish}", trigger.source)
}

/// `None`: nothing is asked for.
pub(super) fn plan_triggers(ctx: &RebootContext<'_>) -> Option<PlannedTriggers> {
    let active = list_own_triggers(ctx);
    let request = active.get(REQUEST_SOURCE);
    let followed = request.filter(|(_, trigger)| !is_plain(trigger.method, &trigger.node_reboots));
    let (_, lead) = followed.or_else(|| active.values().next())?;
    let is_hold = lead.method == RebootMethod::Hold;
    let served = active
        .iter()
        .filter(|(source, _)| !is_hold || *source == REQUEST_SOURCE);
    Some(PlannedTriggers {
        lead: lead.clone(),
        serves: served
            .map(|(source, (print, _))| (source.clone(), print.clone()))
            .collect(),
    })
}

/// While nothing has begun, the record follows what the request asks for. The patch that cordons
/// relies on the same version of the Node, so it fixes exactly what was asked for then.
pub(super) fn follow_request(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<RebootStep> {
    let planned = plan_triggers(ctx)?;
    let (now, before) = (&planned.lead, &record.trigger);
    let same = now.method == before.method && now.node_reboots == before.node_reboots;
    let print = planned.serves.get(REQUEST_SOURCE);
    let same_text =
        is_plain(now.method, &now.node_reboots) || print == record.serves.get(REQUEST_SOURCE);
    if same && same_text {
        return None;
    }
    let text = planned.describe_triggers();
    let mut refs = now.node_reboots.iter();
    let is_new = refs.any(|one| !before.node_reboots.contains(one));
    // The pause is between tries of what was asked for before. Somebody asks for something else now.
    let is_other = is_new || now.method == RebootMethod::Hold && before.method != now.method;
    let record = RebootRecord {
        retry_after: record.retry_after.filter(|_| !is_other),
        trigger: planned.lead,
        serves: planned.serves,
        ..record.clone()
    };
    Some(RebootStep::new(RebootReason::RebootPlanned, text).with_record_patch(ctx, record))
}

/// Whether this request still asks for what has begun.
pub(super) fn is_request_of(record: &RebootRecord, request: &RebootRequest) -> bool {
    let (begun, now) = (&record.trigger.node_reboots, &request.node_reboots);
    let shared = now
        .iter()
        .any(|one| begun.iter().any(|other| one.uid == other.uid));
    match (record.trigger.method, request.method) {
        (RebootMethod::Hold, RebootMethod::Hold) => shared || begun.is_empty() || now.is_empty(),
        (RebootMethod::Reboot, RebootMethod::Reboot) => shared || now.is_empty(),
        (RebootMethod::Reboot | RebootMethod::PowerCycle, RebootMethod::PowerCycle) => shared,
        (RebootMethod::Hold, RebootMethod::Reboot | RebootMethod::PowerCycle)
        | (RebootMethod::PowerCycle, RebootMethod::Reboot)
        | (RebootMethod::Reboot | RebootMethod::PowerCycle, RebootMethod::Hold) => false,
    }
}

/// Whether the hold that has begun is still asked for. A request that cannot be read ends none.
pub(crate) fn is_hold_requested(node: &ObservedNode, record: &RebootRecord) -> bool {
    match &node.request {
        ParsedAnnotation::Absent => false,
        ParsedAnnotation::Is(request) => is_request_of(record, request),
        ParsedAnnotation::Bad { .. } => true,
    }
}

/// Whether a trigger that appeared after the cordon is served by the same reboot. A NodeReboot that
/// is asked for later waits for the next one.
pub(super) fn joins_late(record: &RebootRecord, trigger: &RebootTrigger) -> bool {
    record.trigger.method != RebootMethod::Hold && is_plain(trigger.method, &trigger.node_reboots)
}

/// The host of a power cycle is found, and switched off, by the controller for a NodeReboot.
pub(super) fn lacks_node_reboot(request: &RebootRequest) -> bool {
    request.method == RebootMethod::PowerCycle && request.node_reboots.is_empty()
}

/// Why the request on the Node is left alone.
pub(super) fn describe_unusable_request(node: &ObservedNode) -> Option<String> {
    match &node.request {
        ParsedAnnotation::Bad { why } => Some(why.clone()),
        ParsedAnnotation::Is(request) if lacks_node_reboot(request) => {
            Some("a power cycle is asked for by a NodeReboot, not by a person's annotation".into())
        }
        ParsedAnnotation::Is(_) | ParsedAnnotation::Absent => None,
    }
}

/// Whether any reboot serves it, whoever reads the record.
fn is_plain(method: RebootMethod, node_reboots: &[NodeRebootRef]) -> bool {
    method == RebootMethod::Reboot && node_reboots.is_empty()
}
