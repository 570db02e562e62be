//! The state of the fleet in a few sentences.

use jiff::{SignedDuration, Timestamp};

use super::{FleetEstimate, FleetView};
use crate::Now;
use crate::explain::FleetSnapshot;
use crate::policy::Policy;
use crate::reboot::RebootPhase;

/// Within this time, a weekday and a clock time name one moment.
const WEEKDAY_IS_CLEAR: SignedDuration = SignedDuration::from_hours(6 * 24);

/// `view` is complete but for its sentence.
pub(super) fn fleet_sentence(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> String {
    let mut sentences = vec![describe_progress(view)];
    sentences.extend(describe_pauses(fleet, view, now));
    sentences.extend(describe_end(view, now));
    sentences.push(describe_tasks(view));
    if !view.unreadable.is_empty() {
        sentences.push("Not everything could be read.".to_owned());
    }
    sentences.join(" ")
}

fn describe_progress(view: &FleetView) -> String {
    let counts = &view.counts;
    let held = count_held(view);
    let remediated = view.remediations.iter().filter(|row| row.under_way).count();
    let mut text = if counts.out + counts.waiting > 0 {
        let held = match held {
            0 => String::new(),
            held => format!(" ({held} held)"),
        };
        format!(
            "{} of {} done, {} out{held}, {} {}.",
            counts.done,
            counts.rollout,
            counts.out,
            counts.waiting,
            if counts.waiting == 1 { "waits" } else { "wait" }
        )
    } else if counts.requested > 0 {
        "No reboot is under way.".to_owned()
    } else if counts.nodes > 0 {
        "No reboot is under way, and none waits.".to_owned()
    } else if view.unreadable.is_empty() {
        "This cluster has no Nodes.".to_owned()
    } else {
        "No Nodes have been read.".to_owned()
    };
    match counts.requested {
        0 => {}
        1 => text.push_str(" 1 requested reboot has not reached its node."),
        more => {
            let more = format!(" {more} requested reboots have not reached their nodes.");
            text.push_str(&more);
        }
    }
    match remediated {
        0 => {}
        1 => text.push_str(" 1 remediation is under way."),
        more => {
            let more = format!(" {more} remediations are under way.");
            text.push_str(&more);
        }
    }
    text
}

fn count_held(view: &FleetView) -> usize {
    let holding = RebootPhase::Holding.as_str();
    view.out.iter().filter(|node| node.phase == holding).count()
}

/// Pauses that hold up nodes that wait.
fn describe_pauses(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> Option<String> {
    let is_waited_for = |policy: &&Policy| {
        let mut groups = view.groups.iter();
        groups.any(|group| group.name == policy.name.as_str() && group.waiting > 0)
    };
    let policies = fleet.policies.known_policies().iter();
    let paused = policies.filter(is_waited_for).filter_map(|policy| {
        let pause = policy.active_pause(now.wall)?;
        Some(match pause.until {
            Some(until) => format!(
                "{} is paused until {}.",
                policy.name,
                format_moment(until, now)
            ),
            None => format!(
                "{} is paused until somebody types: dogwatch resume {}.",
                policy.name, policy.name
            ),
        })
    });
    let paused: Vec<String> = paused.collect();
    (!paused.is_empty()).then(|| paused.join(" "))
}

fn describe_end(view: &FleetView, now: Now) -> Option<String> {
    let held = count_held(view);
    if view.counts.out + view.counts.waiting == held {
        // Nothing is under way, or only holds, which last until somebody releases them.
        return None;
    }
    let Some(estimate) = &view.estimate else {
        return Some("There is no estimate of the end yet.".to_owned());
    };
    Some(match estimate.finish {
        Some(finish) => describe_finish(finish, estimate, now),
        None => "While nothing changes, it is never finished.".to_owned(),
    })
}

fn describe_finish(finish: Timestamp, estimate: &FleetEstimate, now: Now) -> String {
    let about = format_moment(finish, now);
    let latest = estimate.latest_finish.map(|at| format_moment(at, now));
    match latest.filter(|latest| *latest != about) {
        Some(latest) => format!("Finished about {about} (at the latest {latest})."),
        None => format!("Finished about {about}."),
    }
}

fn describe_tasks(view: &FleetView) -> String {
    let Some(first) = view.needs_person.first() else {
        let text = if view.unreadable.is_empty() {
            "Nothing needs you."
        } else {
            "Nothing that could be read needs you."
        };
        return text.to_owned();
    };
    let count = match view.needs_person.len() {
        1 => format!("{} needs you", first.subject),
        more => format!("{more} things need you, first {}", first.subject),
    };
    let command = match &first.command {
        Some(command) => format!("; type: {command}"),
        None => ".".to_owned(),
    };
    format!("{count} ({}){command}", first.reason)
}

/// `Thu 03:40 UTC`, or the date where a weekday would not be clear.
fn format_moment(at: Timestamp, now: Now) -> String {
    let is_near = at.duration_since(now.wall).abs() < WEEKDAY_IS_CLEAR;
    let pattern = if is_near {
        "%a %H:%M UTC"
    } else {
        "%Y-%m-%d %H:%M UTC"
    };
    at.strftime(pattern).to_string()
}
