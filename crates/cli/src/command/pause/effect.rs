//! What a pause means for the nodes, in words.

use std::io::{self, Write};

use dogwatch_core::Now;
use dogwatch_core::explain::{Fleet, some};
use dogwatch_core::policy::Policy;
use dogwatch_core::reboot::{NodeSeen, Phase};

use super::{decide, ruled};

/// How many nodes are named.
const NAMED: usize = 8;

/// Which nodes are paused, who is undone, who goes on, and who is not paused.
pub fn of_pause(out: &mut impl Write, fleet: &Fleet, now: Now) -> io::Result<()> {
    let paused = fleet
        .policies
        .known()
        .iter()
        .filter(|policy| holds(policy, now));
    for policy in paused {
        let nodes = ruled(fleet, &policy.name);
        writeln!(out, "  {}: {}", policy.name, count(nodes.len()))?;
        say(out, &nodes, &[Phase::Draining], "draining now, and undone")?;
        say(
            out,
            &nodes,
            &[Phase::Rebooting, Phase::Returning],
            "rebooting or on their way back, and left to finish",
        )?;
        say(out, &nodes, &[Phase::Waiting], "waiting, and kept waiting")?;
    }
    let others: Vec<&NodeSeen> = fleet
        .policies
        .known()
        .iter()
        .filter(|policy| !holds(policy, now))
        .flat_map(|policy| ruled(fleet, &policy.name))
        .collect();
    named(out, &others, "not paused (their policies are not)")?;
    let rest = decide::without_policy(fleet);
    named(
        out,
        &rest,
        "not paused (no policy rules them; --all pauses them too)",
    )
}

/// Who may go on.
pub fn of_resume(out: &mut impl Write, fleet: &Fleet, now: Now) -> io::Result<()> {
    let waiting = fleet
        .nodes
        .iter()
        .filter(|node| is_in(node, &[Phase::Waiting]));
    let (held, free): (Vec<&NodeSeen>, Vec<&NodeSeen>) = waiting.partition(|node| {
        let policy = fleet.rule(node).policy;
        policy.is_some_and(|policy| holds(policy, now))
    });
    named(out, &free, "waiting, and going on in their turn")?;
    named(out, &held, "waiting, and still paused")
}

fn holds(policy: &Policy, now: Now) -> bool {
    let pause = policy.paused.as_ref();
    pause.is_some_and(|pause| pause.until.is_none_or(|until| until > now.wall))
}

fn is_in(node: &NodeSeen, phases: &[Phase]) -> bool {
    node.record
        .get()
        .is_some_and(|record| phases.contains(&record.phase))
}

fn say(out: &mut impl Write, nodes: &[&NodeSeen], phases: &[Phase], what: &str) -> io::Result<()> {
    let these: Vec<&NodeSeen> = nodes
        .iter()
        .copied()
        .filter(|node| is_in(node, phases))
        .collect();
    if these.is_empty() {
        return Ok(());
    }
    write!(out, "  ")?;
    named(out, &these, what)
}

fn named(out: &mut impl Write, nodes: &[&NodeSeen], what: &str) -> io::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = nodes.iter().map(|node| node.name.to_string()).collect();
    writeln!(out, "  {what}: {}", some(&names, NAMED))
}

fn count(nodes: usize) -> String {
    match nodes {
        1 => "1 node is paused".into(),
        many => format!("{many} nodes are paused"),
    }
}
