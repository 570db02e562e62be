//! What each cell says.

use dogwatch_core::report::{FleetView, GroupView, NodeEstimate};
use jiff::Timestamp;

use super::columns::{CellInput, StyledText};
use super::styles::{
    DELAYED_STYLE, PERSON_STYLE, PLAIN_STYLE, QUIET_STYLE, UNDER_WAY_STYLE, WELL_STYLE, phase_style,
};
use super::times::{age_text, clock_text, left_text};
use crate::pane::PaneRow;

fn absent_cell() -> StyledText {
    ("-".to_owned(), QUIET_STYLE)
}

pub fn name_cell(input: &CellInput<'_>) -> StyledText {
    let name = match input.row {
        PaneRow::Host(host) => format!("{}/{}", host.namespace, host.name),
        PaneRow::WaitingHost(host) => host.caller.clone(),
        PaneRow::Remediation(row) if row.needs_somebody => {
            return (format!("! {}", row.subject), PERSON_STYLE);
        }
        PaneRow::Remediation(row) => row.subject.clone(),
        PaneRow::Group(group) => group.name.clone(),
        PaneRow::Out(_)
        | PaneRow::Waiting(_)
        | PaneRow::Timeline(_)
        | PaneRow::Recent(_)
        | PaneRow::Node(_) => input.row.node_name().unwrap_or_default().to_owned(),
    };
    (name, PLAIN_STYLE)
}

pub fn group_cell(input: &CellInput<'_>) -> StyledText {
    match input.row.group_name() {
        Some(group) => (group.to_owned(), PLAIN_STYLE),
        None => absent_cell(),
    }
}

pub fn phase_cell(input: &CellInput<'_>) -> StyledText {
    let phase = match input.row {
        PaneRow::Out(out) => Some(out.phase),
        PaneRow::Node(node) => node.phase,
        PaneRow::Waiting(_)
        | PaneRow::WaitingHost(_)
        | PaneRow::Timeline(_)
        | PaneRow::Group(_)
        | PaneRow::Host(_)
        | PaneRow::Remediation(_)
        | PaneRow::Recent(_) => None,
    };
    phase.map_or_else(absent_cell, |phase| (phase.to_owned(), phase_style(phase)))
}

pub fn since_cell(input: &CellInput<'_>) -> StyledText {
    let since = match input.row {
        PaneRow::Out(out) => Some(out.since),
        PaneRow::Waiting(waiting) => Some(waiting.since),
        PaneRow::WaitingHost(host) => Some(host.since),
        PaneRow::Remediation(row) => row.since,
        PaneRow::Node(node) => node.since,
        PaneRow::Timeline(_) | PaneRow::Group(_) | PaneRow::Host(_) | PaneRow::Recent(_) => None,
    };
    since.map_or_else(absent_cell, |since| {
        (age_text(since, input.now), PLAIN_STYLE)
    })
}

pub fn left_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Out(out) = input.row else {
        return absent_cell();
    };
    match out.deadline {
        Some(deadline) if deadline < input.now => (left_text(deadline, input.now), DELAYED_STYLE),
        Some(deadline) => (left_text(deadline, input.now), PLAIN_STYLE),
        None => absent_cell(),
    }
}

pub fn asked_cell(input: &CellInput<'_>) -> StyledText {
    let asked = match input.row {
        PaneRow::Out(out) => &out.asked,
        PaneRow::Waiting(waiting) => &waiting.asked,
        PaneRow::Recent(ended) => &ended.asked,
        PaneRow::WaitingHost(_)
        | PaneRow::Timeline(_)
        | PaneRow::Group(_)
        | PaneRow::Host(_)
        | PaneRow::Remediation(_)
        | PaneRow::Node(_) => return absent_cell(),
    };
    (asked.clone(), PLAIN_STYLE)
}

pub fn why_cell(input: &CellInput<'_>) -> StyledText {
    let (reason, message) = match input.row {
        PaneRow::Out(out) => (out.reason.as_deref(), out.message.as_deref()),
        PaneRow::Waiting(waiting) => (waiting.reason.as_deref(), waiting.message.as_deref()),
        PaneRow::WaitingHost(host) => (Some(&*host.reason), Some(&*host.message)),
        PaneRow::Host(host) => match &host.not_ready {
            Some(why) => (None, Some(why.as_str())),
            None => (host.reason.as_deref(), host.message.as_deref()),
        },
        PaneRow::Remediation(row) => (Some(&*row.reason), Some(&*row.message)),
        PaneRow::Node(node) => (node.reason.as_deref(), node.message.as_deref()),
        PaneRow::Timeline(_) | PaneRow::Group(_) | PaneRow::Recent(_) => (None, None),
    };
    match (reason, message) {
        (Some(reason), Some(message)) => (format!("{reason}: {message}"), PLAIN_STYLE),
        (Some(text), None) | (None, Some(text)) => (text.to_owned(), PLAIN_STYLE),
        (None, None) => absent_cell(),
    }
}

pub fn place_cell(input: &CellInput<'_>) -> StyledText {
    match input.row {
        PaneRow::Waiting(waiting) => waiting
            .place
            .map_or_else(absent_cell, |place| (place.to_string(), PLAIN_STYLE)),
        PaneRow::Out(_)
        | PaneRow::WaitingHost(_)
        | PaneRow::Timeline(_)
        | PaneRow::Group(_)
        | PaneRow::Host(_)
        | PaneRow::Remediation(_)
        | PaneRow::Recent(_)
        | PaneRow::Node(_) => absent_cell(),
    }
}

pub fn estimate_of<'a>(view: &'a FleetView, node: &str) -> Option<&'a NodeEstimate> {
    view.estimate.as_ref()?.nodes.get(node)
}

/// When it starts by the estimate, or may start at the earliest.
pub fn start_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Waiting(waiting) = input.row else {
        return absent_cell();
    };
    if let Some(estimate) = estimate_of(input.view, &waiting.name) {
        let text = format!("~{}", clock_text(estimate.start.max(input.now), input.now));
        return (text, PLAIN_STYLE);
    }
    match waiting.not_before {
        Some(at) if at > input.now => (format!("after {}", clock_text(at, input.now)), PLAIN_STYLE),
        Some(_) | None => absent_cell(),
    }
}

fn as_group(row: PaneRow<'_>) -> Option<&GroupView> {
    match row {
        PaneRow::Group(group) => Some(group),
        PaneRow::Out(_)
        | PaneRow::Waiting(_)
        | PaneRow::WaitingHost(_)
        | PaneRow::Timeline(_)
        | PaneRow::Host(_)
        | PaneRow::Remediation(_)
        | PaneRow::Recent(_)
        | PaneRow::Node(_) => None,
    }
}

fn group_text(input: &CellInput<'_>, text: fn(&GroupView) -> StyledText) -> StyledText {
    as_group(input.row).map_or_else(absent_cell, text)
}

pub fn budget_cell(input: &CellInput<'_>) -> StyledText {
    group_text(input, |group| {
        let style = if group.used >= group.allowed {
            DELAYED_STYLE
        } else {
            PLAIN_STYLE
        };
        (format!("{} of {}", group.used, group.allowed), style)
    })
}

pub fn group_out_cell(input: &CellInput<'_>) -> StyledText {
    group_text(input, |group| (group.out.to_string(), PLAIN_STYLE))
}

pub fn group_waiting_cell(input: &CellInput<'_>) -> StyledText {
    group_text(input, |group| (group.waiting.to_string(), PLAIN_STYLE))
}

pub fn others_cell(input: &CellInput<'_>) -> StyledText {
    group_text(input, |group| {
        let names: Vec<&str> = group
            .taken_by_others
            .iter()
            .map(|taken| taken.node.as_str())
            .collect();
        match names.as_slice() {
            [] => absent_cell(),
            [one] => ((*one).to_owned(), DELAYED_STYLE),
            [one, others @ ..] => (format!("{one} +{}", others.len()), DELAYED_STYLE),
        }
    })
}

pub fn window_cell(input: &CellInput<'_>) -> StyledText {
    as_group(input.row).map_or_else(absent_cell, |group| window_text(group, input.now))
}

/// The pause, or what the windows say about now.
pub fn window_text(group: &GroupView, now: Timestamp) -> StyledText {
    if let Some(reason) = &group.paused {
        return (format!("paused: {reason}"), DELAYED_STYLE);
    }
    if group.windows.is_empty() {
        return ("always open".to_owned(), QUIET_STYLE);
    }
    let next = group.windows.iter().find(|window| window.until > now);
    match next {
        Some(window) if window.from <= now => {
            let text = format!("open until {}", clock_text(window.until, now));
            (text, WELL_STYLE)
        }
        Some(window) => {
            let text = format!("opens {}", clock_text(window.from, now));
            (text, PLAIN_STYLE)
        }
        None => ("closed for a week or more".to_owned(), DELAYED_STYLE),
    }
}

pub fn power_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Host(host) = input.row else {
        return absent_cell();
    };
    match host.power {
        Some(power @ "On") => (power.to_owned(), WELL_STYLE),
        Some(power @ "Unknown") => (power.to_owned(), DELAYED_STYLE),
        Some(power) => (power.to_owned(), UNDER_WAY_STYLE),
        None => absent_cell(),
    }
}

pub fn wanted_cell(input: &CellInput<'_>) -> StyledText {
    match input.row {
        PaneRow::Host(host) => (host.wanted.to_owned(), PLAIN_STYLE),
        PaneRow::Out(_)
        | PaneRow::Waiting(_)
        | PaneRow::WaitingHost(_)
        | PaneRow::Timeline(_)
        | PaneRow::Group(_)
        | PaneRow::Remediation(_)
        | PaneRow::Recent(_)
        | PaneRow::Node(_) => absent_cell(),
    }
}

fn ago_cell(time: Option<Timestamp>, now: Timestamp) -> StyledText {
    time.map_or_else(absent_cell, |time| {
        (format!("{} ago", age_text(time, now)), PLAIN_STYLE)
    })
}

pub fn reading_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Host(host) = input.row else {
        return absent_cell();
    };
    ago_cell(host.observed_at, input.now)
}

pub fn proof_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Host(host) = input.row else {
        return absent_cell();
    };
    ago_cell(host.off_confirmed_at, input.now)
}

pub fn host_node_cell(input: &CellInput<'_>) -> StyledText {
    match input.row.node_name() {
        Some(node) => (node.to_owned(), PLAIN_STYLE),
        None => absent_cell(),
    }
}

pub fn step_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Remediation(row) = input.row else {
        return absent_cell();
    };
    let style = if row.under_way {
        UNDER_WAY_STYLE
    } else {
        QUIET_STYLE
    };
    row.step
        .map_or_else(absent_cell, |step| (step.to_owned(), style))
}

pub fn remediated_host_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Remediation(row) = input.row else {
        return absent_cell();
    };
    row.host
        .clone()
        .map_or_else(absent_cell, |host| (host, PLAIN_STYLE))
}

pub fn ended_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Recent(ended) = input.row else {
        return absent_cell();
    };
    ago_cell(Some(ended.finished), input.now)
}

pub fn outcome_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Recent(ended) = input.row else {
        return absent_cell();
    };
    let style = if ended.outcome == "Rebooted" {
        WELL_STYLE
    } else {
        DELAYED_STYLE
    };
    (ended.outcome.to_owned(), style)
}

/// Without the wait: from the first phase in which the node was out of service.
pub fn took_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Recent(ended) = input.row else {
        return absent_cell();
    };
    let start = ended.bars.iter().find(|bar| bar.phase != "waiting");
    start.map_or_else(absent_cell, |bar| {
        (age_text(bar.from, ended.finished), PLAIN_STYLE)
    })
}

pub fn status_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Node(node) = input.row else {
        return absent_cell();
    };
    let style = if node.status == "Ready" {
        PLAIN_STYLE
    } else {
        DELAYED_STYLE
    };
    (node.status.clone(), style)
}

pub fn last_reboot_cell(input: &CellInput<'_>) -> StyledText {
    let PaneRow::Node(node) = input.row else {
        return absent_cell();
    };
    node.last.as_ref().map_or_else(absent_cell, |last| {
        let age = age_text(last.finished, input.now);
        (format!("{} {age} ago", last.outcome), PLAIN_STYLE)
    })
}
