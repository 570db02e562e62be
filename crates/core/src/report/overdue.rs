//! Nodes whose phase should have ended, and on which nobody works any more.

use super::{FleetView, OutNodeRow, PersonTask};
use crate::Now;
use crate::explain::{FleetSnapshot, format_time, last_phase_deadline};
use crate::healer::{HealerConfig, last_coordinator_sign};
use crate::reboot::ObservedNode;

/// The longest out first. A node that is being remediated has another task.
pub(super) fn overdue_tasks(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> Vec<PersonTask> {
    let is_remediated = |row: &&OutNodeRow| {
        let mut remediations = view.remediations.iter().filter(|it| it.under_way);
        remediations.any(|it| it.node.as_deref() == Some(row.name.as_str()))
    };
    // The first deadline is known, and most rows end here without a search for their Nodes.
    let is_late = |row: &&OutNodeRow| row.deadline.is_some_and(|deadline| deadline < now.wall);
    let rows = view
        .out
        .iter()
        .filter(|row| is_late(row) && !is_remediated(row));
    rows.filter_map(|row| {
        let mut nodes = fleet.iter_nodes();
        let node = nodes.find(|node| node.name.as_str() == row.name)?;
        is_overdue(fleet, node, now).then(|| overdue_task(fleet, row, now))
    })
    .collect()
}

/// The deadline has passed, and for as long as a healer waits for a dead coordinator nobody has
/// written on the Node. A coordinator that lives ends the phase by itself, by flags that are not on
/// the cluster.
fn is_overdue(fleet: &FleetSnapshot, node: &ObservedNode, now: Now) -> bool {
    let Some(record) = node.record.get() else {
        return false;
    };
    let rule = fleet.rule_of_node(node);
    let end = last_phase_deadline(record, rule.policy, rule.config.reboot_attempts);
    let patience = HealerConfig::default().heal_after;
    let is_long_ago = |at| now.elapsed_since(at) > patience;
    end.is_some_and(is_long_ago) && last_coordinator_sign(node).is_none_or(is_long_ago)
}

fn overdue_task(fleet: &FleetSnapshot, row: &OutNodeRow, now: Now) -> PersonTask {
    let since = format_time(row.since);
    let end = row.deadline.map(format_time).unwrap_or_default();
    let healer = if fleet.controller.is_without_leader(now) {
        "no controller leads, so no healer ends it"
    } else {
        "no healer has ended it"
    };
    PersonTask {
        subject: format!("node/{}", row.name),
        reason: "Overdue".to_owned(),
        message: format!(
            "{} since {since}, which should have ended at {end}; its coordinator gives no sign, and {healer}",
            row.phase
        ),
        next_step: Some(
            "look at the machine and at its coordinator; its lock stays held until then".to_owned(),
        ),
        command: Some(format!("dogwatch explain node/{}", row.name)),
    }
}
