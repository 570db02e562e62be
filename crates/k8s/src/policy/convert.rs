//! From what a policy's `spec` says to what decisions use. Whatever cannot be understood becomes a
//! problem that names its field.

use dogwatch_api::label::CONTROL_PLANE;
use dogwatch_api::reboot_policy::{self as api, MaxUnavailable, name_problem};
use dogwatch_core::limit::Limit;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::window::{Window, WindowSpec};
use dogwatch_core::policy::{DrainRules, Paused, Policy, RebootRules, ReturnRules};
use dogwatch_core::reboot::{OnGateTimeout, OnTimeout};
use dogwatch_core::selector::{LabelSelector, Operator};
use serde_json::Value;

use super::fields::Fields;
use super::{gates, labels};

/// How many slots a group may have at most: each is an object on the cluster.
const MOST_NODES: i64 = 10_000;
/// How often the reboot command may be run at most.
const MOST_ATTEMPTS: u32 = 10;

/// The policy of this name, whatever its `spec` is.
///
/// One whose selector or priority cannot be read goes before all others, for every node: it might
/// be the one that was to hold them back.
pub fn convert(name: &str, spec: &Value) -> Policy {
    let mut fields = Fields::of(spec);
    let (selector, priority) = whom(&mut fields);
    let mut problems = name_problems(name, &selector);
    let mut policy = Policy {
        name: group(name),
        selector,
        priority,
        max_unavailable: limit(&mut fields),
        topology_key: topology_key(&mut fields),
        paused: paused(&mut fields),
        windows: windows(&mut fields),
        min_interval: min_interval(&mut fields),
        drain: drain(&mut fields),
        reboot: reboot(&mut fields),
        on_return: on_return(&mut fields),
        gates: gates::read(&mut fields),
        problems: Vec::new(),
    };
    problems.extend(fields.problems());
    policy.problems = problems;
    policy
}

fn whom(fields: &mut Fields) -> (LabelSelector, i32) {
    let every_node = (LabelSelector::default(), i32::MAX);
    if fields.is_unreadable() {
        return every_node;
    }
    let selector = selector(fields);
    let priority = fields.try_take::<i32>("priority");
    match (selector, priority) {
        (Ok(selector), Ok(priority)) => (selector, priority.unwrap_or(0)),
        (Ok(selector), Err(())) => (selector, i32::MAX),
        (Err(()), Ok(_) | Err(())) => every_node,
    }
}

fn selector(fields: &mut Fields) -> Result<LabelSelector, ()> {
    let selector = fields
        .try_take::<LabelSelector>("nodeSelector")?
        .unwrap_or_default();
    match labels::selector_problem(&selector) {
        None => Ok(selector),
        Some(problem) => {
            fields.problem("nodeSelector", problem);
            Err(())
        }
    }
}

fn name_problems(name: &str, selector: &LabelSelector) -> Vec<String> {
    let rule = name_problem(name).map(|rule| format!("metadata.name: {rule}"));
    let is_control_plane = name == GroupName::control_plane().as_str();
    let role = (is_control_plane && !asks_for_the_role(selector)).then(|| {
        format!(
            "spec.nodeSelector: a policy called control-plane must select by the label \
             {CONTROL_PLANE}: its group is that of the control plane"
        )
    });
    rule.into_iter().chain(role).collect()
}

fn asks_for_the_role(selector: &LabelSelector) -> bool {
    let by_expression = selector.match_expressions.iter().any(|part| {
        part.key == CONTROL_PLANE && matches!(part.operator, Operator::In | Operator::Exists)
    });
    by_expression || selector.match_labels.contains_key(CONTROL_PLANE)
}

/// The group of a policy. Where its name is none, the policy has a problem and its group is never
/// asked for a lock; it only needs to be told from others.
fn group(name: &str) -> GroupName {
    let label: String = name.replace('.', "-").chars().take(63).collect();
    GroupName::new(name)
        .or_else(|_| GroupName::new(label.trim_end_matches('-')))
        .unwrap_or_else(|_| GroupName::default_group())
}

fn limit(fields: &mut Fields) -> Option<Limit> {
    let name = "maxUnavailable";
    match fields.take(name)? {
        MaxUnavailable::Count(count @ 1..=MOST_NODES) => {
            Some(Limit::Count(u32::try_from(count).expect("in the range")))
        }
        MaxUnavailable::Percent(text) if text.ends_with('%') => text
            .parse()
            .map_err(|error| fields.problem(name, error))
            .ok(),
        MaxUnavailable::Count(_) | MaxUnavailable::Percent(_) => {
            fields.problem(
                name,
                format!(
                    "write a number of nodes from 1 to {MOST_NODES}, or a percentage like \"10%\"; \
                     to let no node reboot, set `paused`"
                ),
            );
            None
        }
    }
}

fn topology_key(fields: &mut Fields) -> Option<String> {
    let key: String = fields.take("topologyKey")?;
    match labels::key_problem(&key) {
        None => Some(key),
        Some(problem) => {
            fields.problem("topologyKey", problem);
            None
        }
    }
}

fn paused(fields: &mut Fields) -> Option<Paused> {
    let paused: api::Paused = fields.take("paused")?;
    let until = paused.until.and_then(|until| {
        let bad = |_| {
            let text = format!("{until:?} is no time: write it like 2026-12-24T18:00:00Z");
            fields.problem("paused.until", text);
        };
        until.parse().map_err(bad).ok()
    });
    Some(Paused {
        reason: paused.reason.unwrap_or_default(),
        until,
    })
}

fn windows(fields: &mut Fields) -> Vec<Window> {
    let windows: Vec<api::Window> = fields.take("windows").unwrap_or_default();
    let mut known = Vec::new();
    for (index, window) in windows.into_iter().enumerate() {
        match understood(window) {
            Ok(window) => known.push(window),
            Err(error) => fields.problem(&format!("windows[{index}]"), error),
        }
    }
    known
}

fn understood(window: api::Window) -> Result<Window, String> {
    let spec = WindowSpec {
        days: window.days,
        start: window.start,
        end: window.end,
        time_zone: window.time_zone,
        rrule: window.rrule,
        excluded_dates: window.excluded_dates.unwrap_or_default(),
    };
    Window::new(&spec).map_err(|error| error.to_string())
}

fn min_interval(fields: &mut Fields) -> Option<std::time::Duration> {
    let text: Option<String> = fields.take("minInterval");
    fields.duration("minInterval", text.as_ref())
}

fn drain(fields: &mut Fields) -> DrainRules {
    let drain: api::Drain = fields.take("drain").unwrap_or_default();
    let exclude = drain.exclude.filter(|selector| {
        let problem = labels::some_problem(selector);
        if let Some(problem) = &problem {
            fields.problem("drain.exclude", problem);
        }
        problem.is_none()
    });
    DrainRules {
        timeout: fields.positive("drain.timeout", drain.timeout.as_ref()),
        on_timeout: drain.on_timeout.map(|then| match then {
            api::OnTimeout::Abort => OnTimeout::Abort,
            api::OnTimeout::Delete => OnTimeout::Delete,
            api::OnTimeout::Force => OnTimeout::Force,
        }),
        volume_detach_timeout: fields.duration(
            "drain.volumeDetachTimeout",
            drain.volume_detach_timeout.as_ref(),
        ),
        exclude,
    }
}

fn reboot(fields: &mut Fields) -> RebootRules {
    let reboot: api::Reboot = fields.take("reboot").unwrap_or_default();
    let attempts = reboot.attempts.filter(|attempts| {
        let fits = (1..=MOST_ATTEMPTS).contains(attempts);
        if !fits {
            fields.problem("reboot.attempts", "write a number from 1 to 10");
        }
        fits
    });
    RebootRules {
        timeout: fields.positive("reboot.timeout", reboot.timeout.as_ref()),
        attempts,
        escalate: reboot.escalate.unwrap_or(false),
    }
}

fn on_return(fields: &mut Fields) -> ReturnRules {
    let on_return: api::Return = fields.take("return").unwrap_or_default();
    ReturnRules {
        settle: fields.duration("return.settle", on_return.settle.as_ref()),
        gates: on_return.gates,
        gate_timeout: fields.positive("return.gateTimeout", on_return.gate_timeout.as_ref()),
        on_gate_timeout: on_return.on_gate_timeout.map(|then| match then {
            api::OnGateTimeout::Keep => OnGateTimeout::Keep,
            api::OnGateTimeout::Release => OnGateTimeout::Release,
        }),
    }
}
