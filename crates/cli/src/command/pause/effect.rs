//! Describes what a pause means for the nodes.

use std::io::{self, Write};

use dogwatch_core::Now;
use dogwatch_core::explain::{FleetSnapshot, join_first_names};
use dogwatch_core::policy::Policy;
use dogwatch_core::reboot::{ObservedNode, RebootPhase};

use super::{decide, nodes_ruled_by};

const MAX_NAMED_NODES: usize = 8;

/// Writes which nodes are paused, which drains are undone, which reboots go on, and which nodes are
/// not paused.
pub fn write_pause_effect(out: &mut impl Write, fleet: &FleetSnapshot, now: Now) -> io::Result<()> {
    let paused = fleet
        .policies
        .known_policies()
        .iter()
        .filter(|policy| is_pause_active(policy, now));
    for policy in paused {
        let nodes = nodes_ruled_by(fleet, &policy.name);
        writeln!(
            out,
            "  {}: {}",
            policy.name,
            format_paused_count(nodes.len())
        )?;
        write_nodes_in_phase(
            out,
            &nodes,
            &[RebootPhase::Draining],
            "draining; Dogwatch undoes the drain",
        )?;
        write_nodes_in_phase(
            out,
            &nodes,
            &[RebootPhase::Rebooting, RebootPhase::Returning],
            "rebooting or returning; the reboot finishes",
        )?;
        write_nodes_in_phase(
            out,
            &nodes,
            &[RebootPhase::Holding],
            "held out of service; stays held until it is released",
        )?;
        write_nodes_in_phase(
            out,
            &nodes,
            &[RebootPhase::Waiting],
            "waiting; keeps waiting until the pause ends",
        )?;
    }
    let others: Vec<&ObservedNode> = fleet
        .policies
        .known_policies()
        .iter()
        .filter(|policy| !is_pause_active(policy, now))
        .flat_map(|policy| nodes_ruled_by(fleet, &policy.name))
        .collect();
    write_node_names(out, &others, "not paused (their policies are not paused)")?;
    let rest = decide::nodes_without_policy(fleet);
    write_node_names(
        out,
        &rest,
        "not paused (no policy selects them; --all pauses them too)",
    )
}

/// Writes which nodes may go on.
pub fn write_resume_effect(
    out: &mut impl Write,
    fleet: &FleetSnapshot,
    now: Now,
) -> io::Result<()> {
    let waiting = fleet
        .iter_nodes()
        .filter(|node| is_in_phase(node, &[RebootPhase::Waiting]));
    let (held, free): (Vec<&ObservedNode>, Vec<&ObservedNode>) = waiting.partition(|node| {
        let policy = fleet.rule_of_node(node).policy;
        policy.is_some_and(|policy| is_pause_active(policy, now))
    });
    write_node_names(out, &free, "waiting; reboots in turn")?;
    write_node_names(out, &held, "waiting; still paused")
}

fn is_pause_active(policy: &Policy, now: Now) -> bool {
    let pause = policy.paused.as_ref();
    pause.is_some_and(|pause| pause.until.is_none_or(|until| until > now.wall))
}

fn is_in_phase(node: &ObservedNode, phases: &[RebootPhase]) -> bool {
    node.record
        .get()
        .is_some_and(|record| phases.contains(&record.phase))
}

fn write_nodes_in_phase(
    out: &mut impl Write,
    nodes: &[&ObservedNode],
    phases: &[RebootPhase],
    what: &str,
) -> io::Result<()> {
    let these: Vec<&ObservedNode> = nodes
        .iter()
        .copied()
        .filter(|node| is_in_phase(node, phases))
        .collect();
    if these.is_empty() {
        return Ok(());
    }
    write!(out, "  ")?;
    write_node_names(out, &these, what)
}

fn write_node_names(out: &mut impl Write, nodes: &[&ObservedNode], what: &str) -> io::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = nodes.iter().map(|node| node.name.to_string()).collect();
    writeln!(
        out,
        "  {what}: {}",
        join_first_names(&names, MAX_NAMED_NODES)
    )
}

fn format_paused_count(nodes: usize) -> String {
    match nodes {
        1 => "1 node is paused".into(),
        many => format!("{many} nodes are paused"),
    }
}
