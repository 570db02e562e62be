//! Converts a policy's `spec` into what decisions use. Whatever cannot be understood becomes a
//! problem that names its field.

use dogwatch_api::label::CONTROL_PLANE;
use dogwatch_api::reboot_policy::{self as api, MaxUnavailable, policy_name_problem};
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::window::{MaintenanceWindow, WindowSpec};
use dogwatch_core::policy::{Policy, PolicyPause, RebootRules};
use dogwatch_core::selector::{LabelOperator, LabelSelector};
use kube::ResourceExt as _;
use serde_json::Value;

use super::drain_rules::parse_drain_rules;
use super::fields::SpecFields;
use super::{PolicyObject, gates, labels, return_rules, rollout};

/// Maximum number of slots in a group: each is an object on the cluster.
const MOST_NODES: i64 = 10_000;
/// Maximum of reboot command attempts.
const MOST_ATTEMPTS: u32 = 10;

/// Converts a policy with what its status and its annotations say about its rollout.
pub fn convert_policy_object(object: &PolicyObject) -> Policy {
    let mut policy = convert_policy(&object.name_any(), &object.spec);
    rollout::read_rollout_state(object, &mut policy.rollout);
    policy
}

/// Converts any `spec`, also an invalid one. Nothing is known about its rollout, so nothing begins
/// if it has one: see [`convert_policy_object`].
///
/// A policy whose selector or priority cannot be read takes precedence over all others, for every
/// node: it might be the one that should hold reboots back.
pub fn convert_policy(name: &str, spec: &Value) -> Policy {
    let mut fields = SpecFields::from_spec(spec);
    let (selector, priority) = parse_selector_and_priority(&mut fields);
    let mut problems = name_problems(name, &selector);
    let mut policy = Policy {
        name: policy_group(name),
        selector,
        priority,
        max_unavailable: parse_max_unavailable(&mut fields),
        max_unavailable_nodes: parse_max_unavailable_nodes(&mut fields),
        topology_key: parse_topology_key(&mut fields),
        rollout: rollout::parse_rollout(&mut fields),
        paused: parse_pause(&mut fields),
        windows: parse_windows(&mut fields),
        min_interval: parse_min_interval(&mut fields),
        drain: parse_drain_rules(&mut fields),
        reboot: parse_reboot_rules(&mut fields),
        on_return: return_rules::parse_return_rules(&mut fields),
        gates: gates::parse_gates(&mut fields),
        problems: Vec::new(),
    };
    problems.extend(fields.into_problems());
    policy.problems = problems;
    policy
}

fn parse_selector_and_priority(fields: &mut SpecFields) -> (LabelSelector, i32) {
    let every_node = (LabelSelector::default(), i32::MAX);
    if fields.is_unreadable() {
        return every_node;
    }
    let selector = parse_selector(fields);
    let priority = fields.try_take_field::<i32>("priority");
    match (selector, priority) {
        (Ok(selector), Ok(priority)) => (selector, priority.unwrap_or(0)),
        (Ok(selector), Err(())) => (selector, i32::MAX),
        (Err(()), Ok(_) | Err(())) => every_node,
    }
}

fn parse_selector(fields: &mut SpecFields) -> Result<LabelSelector, ()> {
    let selector = fields
        .try_take_field::<LabelSelector>("nodeSelector")?
        .unwrap_or_default();
    match labels::selector_problem(&selector) {
        None => Ok(selector),
        Some(problem) => {
            fields.add_problem("nodeSelector", problem);
            Err(())
        }
    }
}

fn name_problems(name: &str, selector: &LabelSelector) -> Vec<String> {
    let rule = policy_name_problem(name).map(|rule| format!("metadata.name: {rule}"));
    let is_control_plane = name == GroupName::control_plane_group().as_str();
    let role = (is_control_plane && !has_control_plane_label(selector)).then(|| {
        format!(
            "spec.nodeSelector: a policy called control-plane must select by the label \
             {CONTROL_PLANE}: its group is that of the control plane"
        )
    });
    rule.into_iter().chain(role).collect()
}

fn has_control_plane_label(selector: &LabelSelector) -> bool {
    let by_expression = selector.match_expressions.iter().any(|part| {
        part.key == CONTROL_PLANE
            && matches!(part.operator, LabelOperator::In | LabelOperator::Exists)
    });
    by_expression || selector.match_labels.contains_key(CONTROL_PLANE)
}

/// The group of a policy. If the name is no valid group name, the policy has a problem and its
/// group never gets a lock; the group only has to differ from the others.
fn policy_group(name: &str) -> GroupName {
    let label: String = name.replace('.', "-").chars().take(63).collect();
    GroupName::new(name)
        .or_else(|_| GroupName::new(label.trim_end_matches('-')))
        .unwrap_or_else(|_| GroupName::default_group())
}

fn parse_max_unavailable(fields: &mut SpecFields) -> Option<UnavailabilityLimit> {
    let name = "maxUnavailable";
    match fields.take_field(name)? {
        MaxUnavailable::Count(count @ 1..=MOST_NODES) => Some(UnavailabilityLimit::Count(
            u32::try_from(count).expect("in the range"),
        )),
        MaxUnavailable::Percent(text) if text.ends_with('%') => text
            .parse()
            .map_err(|error| fields.add_problem(name, error))
            .ok(),
        MaxUnavailable::Count(_) | MaxUnavailable::Percent(_) => {
            fields.add_problem(
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

fn parse_max_unavailable_nodes(fields: &mut SpecFields) -> Option<u32> {
    let name = "maxUnavailableNodes";
    let count: i64 = fields.take_field(name)?;
    let count = Some(count).filter(|count| (1..=MOST_NODES).contains(count));
    if count.is_none() {
        let problem = format!("write a number of nodes from 1 to {MOST_NODES}");
        fields.add_problem(name, problem);
    }
    count.and_then(|count| u32::try_from(count).ok())
}

fn parse_topology_key(fields: &mut SpecFields) -> Option<String> {
    let key: String = fields.take_field("topologyKey")?;
    match labels::key_problem(&key) {
        None => Some(key),
        Some(problem) => {
            fields.add_problem("topologyKey", problem);
            None
        }
    }
}

fn parse_pause(fields: &mut SpecFields) -> Option<PolicyPause> {
    let paused: api::PausedSpec = fields.take_field("paused")?;
    let until = paused.until.and_then(|until| {
        let bad = |_| {
            let text = format!("{until:?} is not a time: write it like 2026-12-24T18:00:00Z");
            fields.add_problem("paused.until", text);
        };
        until.parse().map_err(bad).ok()
    });
    Some(PolicyPause {
        reason: paused.reason.unwrap_or_default(),
        until,
    })
}

fn parse_windows(fields: &mut SpecFields) -> Vec<MaintenanceWindow> {
    let windows: Vec<api::PolicyWindow> = fields.take_field("windows").unwrap_or_default();
    let mut known = Vec::new();
    for (index, window) in windows.into_iter().enumerate() {
        match parse_window(window) {
            Ok(window) => known.push(window),
            Err(error) => fields.add_problem(&format!("windows[{index}]"), error),
        }
    }
    known
}

fn parse_window(window: api::PolicyWindow) -> Result<MaintenanceWindow, String> {
    let spec = WindowSpec {
        days: window.days,
        start: window.start,
        end: window.end,
        time_zone: window.time_zone,
        rrule: window.rrule,
        excluded_dates: window.excluded_dates.unwrap_or_default(),
    };
    MaintenanceWindow::new(&spec).map_err(|error| error.to_string())
}

fn parse_min_interval(fields: &mut SpecFields) -> Option<std::time::Duration> {
    let text: Option<String> = fields.take_field("minInterval");
    fields.parse_duration("minInterval", text.as_ref())
}

fn parse_reboot_rules(fields: &mut SpecFields) -> RebootRules {
    let reboot: api::RebootSpec = fields.take_field("reboot").unwrap_or_default();
    let attempts = reboot.attempts.filter(|attempts| {
        let fits = (1..=MOST_ATTEMPTS).contains(attempts);
        if !fits {
            fields.add_problem("reboot.attempts", "write a number from 1 to 10");
        }
        fits
    });
    RebootRules {
        timeout: fields.parse_positive_duration("reboot.timeout", reboot.timeout.as_ref()),
        attempts,
        accept_soft: reboot.accept_soft.unwrap_or(false),
        mute_nvsentinel: reboot.mute_nvsentinel.unwrap_or(false),
        escalate: reboot.escalate.unwrap_or(false),
    }
}
