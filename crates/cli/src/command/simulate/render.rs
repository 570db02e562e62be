//! Prints the outcome of the simulation.

use std::io::{self, Write};
use std::time::Duration;

use dogwatch_core::duration::format_duration;
use dogwatch_sim::plan::{GroupOutcome, RolloutOutcome, RolloutPlan, UsedWindow};
use jiff::Timestamp;
use serde_json::json;

/// Windows of a group that are listed; a rollout of a year has more.
const MAX_LISTED_WINDOWS: usize = 20;

pub(super) fn write_table(
    out: &mut impl Write,
    plan: &RolloutPlan,
    outcome: &RolloutOutcome,
    wide: bool,
) -> io::Result<()> {
    let time = |time| format_duration(round_to_seconds(time));
    let grouped = !plan.groups.is_empty() || !plan.policies.is_empty();
    if grouped {
        write_groups(out, plan, outcome)?;
    } else {
        let (nodes, control_plane) = (plan.nodes, plan.control_plane);
        let budget = outcome.budget;
        writeln!(
            out,
            "{nodes} nodes and {control_plane} control-plane nodes, at most {budget} unavailable at once"
        )?;
    }
    writeln!(out)?;
    writeln!(out, "the rollout takes        {}", time(outcome.took))?;
    if let Some((begin, end)) = clock_times(plan, outcome) {
        writeln!(out, "it begins                {}", format_clock(begin))?;
        writeln!(out, "it ends                  {}", format_clock(end))?;
    }
    writeln!(
        out,
        "longest wait             {} ({})",
        time(outcome.longest_wait.time),
        outcome.longest_wait.node
    )?;
    writeln!(
        out,
        "median wait              {}",
        time(outcome.median_wait)
    )?;
    writeln!(
        out,
        "longest out of service   {} ({})",
        time(outcome.longest_out.time),
        outcome.longest_out.node
    )?;
    if !grouped {
        writeln!(
            out,
            "most unavailable at once {} of {}, control plane {} of 1",
            outcome.most_out, outcome.budget, outcome.most_control_plane_out
        )?;
    }
    writeln!(
        out,
        "largest overtaking       {} (a node rebooted before one that had waited longer)",
        time(outcome.worst_inversion)
    )?;
    writeln!(
        out,
        "calls to the API server  {} ({:.1} a second)",
        outcome.calls.total_calls(),
        calls_per_second(outcome)
    )?;
    if wide {
        for (what, calls) in outcome.calls.calls_by_kind() {
            writeln!(out, "  {what:<23}{calls}")?;
        }
    }
    Ok(())
}

/// One line for each group, and one more for each group that never finishes.
fn write_groups(
    out: &mut impl Write,
    plan: &RolloutPlan,
    outcome: &RolloutOutcome,
) -> io::Result<()> {
    let begins = if plan.start == Timestamp::UNIX_EPOCH {
        String::new()
    } else {
        format!(", beginning at {}", plan.start)
    };
    writeln!(out, "{} nodes{begins}", plan.count_nodes())?;
    writeln!(out)?;
    writeln!(
        out,
        "{:<16} {:>6} {:>7} {:>9} {:>10} {:>12} {:>12} {:>8}",
        "GROUP",
        "NODES",
        "BUDGET",
        "MOST OUT",
        "DONE AFTER",
        "LONGEST WAIT",
        "MEDIAN WAIT",
        "WINDOWS"
    )?;
    for group in &outcome.groups {
        let done = if group.rebooted + group.held == group.nodes {
            format_duration(round_to_seconds(group.took))
        } else {
            format!("never ({})", group.rebooted)
        };
        writeln!(
            out,
            "{:<16} {:>6} {:>7} {:>9} {:>10} {:>12} {:>12} {:>8}",
            group.group,
            group.nodes,
            group.budget,
            group.most_out,
            done,
            format_duration(round_to_seconds(group.longest_wait.time)),
            format_duration(round_to_seconds(group.median_wait)),
            group
                .windows
                .map_or_else(|| "-".to_owned(), |windows| windows.to_string()),
        )?;
    }
    write_used_windows(out, outcome)
}

/// For each window: how many nodes begin in it, and from when to when.
fn write_used_windows(out: &mut impl Write, outcome: &RolloutOutcome) -> io::Result<()> {
    let groups = outcome.groups.iter();
    for group in groups.filter(|group| !group.used_windows.is_empty()) {
        writeln!(out)?;
        writeln!(out, "windows of group {} (UTC)", group.group)?;
        let windows = &group.used_windows;
        for window in windows.iter().take(MAX_LISTED_WINDOWS) {
            let clock = |time: Timestamp| time.strftime("%H:%M");
            let hours = window.last_begin.duration_since(window.first_begin);
            let hours = Duration::try_from(hours).unwrap_or_default();
            writeln!(
                out,
                "  {:>6} nodes begin from {} to {} ({}); it closes at {}",
                window.nodes,
                window.first_begin.strftime("%a %Y-%m-%d %H:%M"),
                clock(window.last_begin),
                format_duration(round_to_seconds(hours)),
                clock(window.until),
            )?;
        }
        if windows.len() > MAX_LISTED_WINDOWS {
            let more = windows.len() - MAX_LISTED_WINDOWS;
            writeln!(out, "  and {more} more windows")?;
        }
    }
    Ok(())
}

/// Begin and end on the clock; `None` if the plan has no clock to speak of.
fn clock_times(plan: &RolloutPlan, outcome: &RolloutOutcome) -> Option<(Timestamp, Timestamp)> {
    if plan.start == Timestamp::UNIX_EPOCH {
        return None;
    }
    let end = plan.start.checked_add(outcome.took).ok()?;
    Some((plan.start, end))
}

fn format_clock(time: Timestamp) -> String {
    time.strftime("%a %Y-%m-%d %H:%M UTC").to_string()
}

fn window_document(window: &UsedWindow) -> serde_json::Value {
    json!({
        "firstBegin": window.first_begin.to_string(),
        "lastBegin": window.last_begin.to_string(),
        "until": window.until.to_string(),
        "nodes": window.nodes,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn calls_per_second(outcome: &RolloutOutcome) -> f64 {
    outcome.calls.total_calls() as f64 / outcome.took.as_secs_f64().max(1.0)
}

pub(super) fn outcome_document(plan: &RolloutPlan, outcome: &RolloutOutcome) -> serde_json::Value {
    let (begin, end) = clock_times(plan, outcome).unzip();
    let calls: serde_json::Map<String, serde_json::Value> = outcome
        .calls
        .calls_by_kind()
        .map(|(what, calls)| (what.to_owned(), calls.into()))
        .collect();
    let groups = outcome.groups.iter().map(group_document);
    json!({
        "begin": begin.map(|time| time.to_string()),
        "end": end.map(|time| time.to_string()),
        "tookSeconds": outcome.took.as_secs_f64(),
        "rebooted": outcome.rebooted,
        "longestWait": { "node": outcome.longest_wait.node, "seconds": outcome.longest_wait.time.as_secs_f64() },
        "medianWaitSeconds": outcome.median_wait.as_secs_f64(),
        "longestOut": { "node": outcome.longest_out.node, "seconds": outcome.longest_out.time.as_secs_f64() },
        "mostOut": outcome.most_out,
        "mostControlPlaneOut": outcome.most_control_plane_out,
        "budget": outcome.budget,
        "worstInversionSeconds": outcome.worst_inversion.as_secs_f64(),
        "calls": calls,
        "callsTotal": outcome.calls.total_calls(),
        "groups": groups.collect::<Vec<_>>(),
    })
}

fn group_document(group: &GroupOutcome) -> serde_json::Value {
    json!({
        "group": group.group,
        "nodes": group.nodes,
        "budget": group.budget,
        "mostOut": group.most_out,
        "rebooted": group.rebooted,
        "held": group.held,
        "tookSeconds": group.took.as_secs_f64(),
        "longestWait": { "node": group.longest_wait.node, "seconds": group.longest_wait.time.as_secs_f64() },
        "medianWaitSeconds": group.median_wait.as_secs_f64(),
        "windows": group.windows,
        "usedWindows": group.used_windows.iter().map(window_document).collect::<Vec<_>>(),
        "heldUp": group.held_up,
    })
}

/// Rounds to seconds unless the time is shorter than one.
pub(super) fn round_to_seconds(time: Duration) -> Duration {
    if time < Duration::from_secs(1) {
        Duration::from_millis(time.subsec_millis().into())
    } else {
        Duration::from_secs(time.as_secs())
    }
}
