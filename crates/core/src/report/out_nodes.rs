//! The nodes that Dogwatch has taken out of service.

use std::collections::BTreeMap;

use super::OutNodeRow;
use super::phase_bars::bars_under_way;
use crate::explain::{FleetSnapshot, NodeStatusRow, describe_trigger, phase_deadline};
use crate::reboot::{ObservedNode, RebootPhase, RebootRecord};

/// The longest out first. `rows` are the rows of all nodes.
pub(super) fn out_nodes(fleet: &FleetSnapshot, rows: &[NodeStatusRow]) -> Vec<OutNodeRow> {
    let rows: BTreeMap<&str, &NodeStatusRow> =
        rows.iter().map(|row| (row.name.as_str(), row)).collect();
    let out = fleet.iter_nodes().filter_map(|node| {
        let record = node.record.get()?;
        let row = rows.get(node.name.as_str())?;
        (record.phase != RebootPhase::Waiting).then(|| out_node(fleet, node, record, row))
    });
    let mut out: Vec<OutNodeRow> = out.collect();
    out.sort_by(|a, b| (out_since(a), &a.name).cmp(&(out_since(b), &b.name)));
    out
}

fn out_node(
    fleet: &FleetSnapshot,
    node: &ObservedNode,
    record: &RebootRecord,
    row: &NodeStatusRow,
) -> OutNodeRow {
    OutNodeRow {
        name: row.name.clone(),
        group: row.group.clone(),
        phase: record.phase.as_str(),
        since: record.since,
        deadline: phase_deadline(record, fleet.rule_of_node(node).policy),
        asked: describe_trigger(&record.trigger),
        reason: row.reason.clone(),
        message: row.message.clone(),
        bars: bars_under_way(record),
    }
}

/// Since when the node is out of service: the beginning of its first phase after the wait.
fn out_since(node: &OutNodeRow) -> jiff::Timestamp {
    let mut bars = node.bars.iter().rev();
    let waited = RebootPhase::Waiting.as_str();
    let first = bars.by_ref().take_while(|bar| bar.phase != waited).last();
    first.map_or(node.since, |bar| bar.from)
}
