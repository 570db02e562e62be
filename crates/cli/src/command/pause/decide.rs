//! Decides what to do with an existing pause. Pure.

use dogwatch_api::label;
use dogwatch_api::reboot_policy::PausedSpec;
use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::policy::{self, PolicyPause as InForce};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_k8s::fleet::PauseChange;
use dogwatch_k8s::policy::{PolicyObject, convert_policy, convert_policy_object};
use jiff::Timestamp;

/// Keeps an existing pause that lasts at least as long as the wanted one, because its reason
/// matters to somebody; replaces a shorter one only if `replace` is set.
pub fn decide_pause(
    object: &PolicyObject,
    wanted: &PausedSpec,
    replace: bool,
    now: Timestamp,
) -> PauseChange {
    match pause_in_force(object, now) {
        Some(there) if is_long_enough(&there, wanted) || !replace => PauseChange::Keep,
        Some(_) | None => PauseChange::Set(wanted.clone()),
    }
}

/// The pause in force now. A pause that cannot be read counts as none.
pub fn pause_in_force(object: &PolicyObject, now: Timestamp) -> Option<InForce> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let pause = convert_policy(name, &object.spec).paused?;
    pause.until.is_none_or(|until| until > now).then_some(pause)
}

/// Whether the existing pause lasts at least as long as the wanted one.
pub fn is_long_enough(there: &InForce, wanted: &PausedSpec) -> bool {
    let Some(ends) = there.until else {
        return true;
    };
    let wanted = wanted.until.as_deref();
    wanted.is_some_and(|until| until.parse::<Timestamp>().is_ok_and(|until| ends >= until))
}

/// Deletes a policy that `pause` created and that says nothing else; clears the pause of any other.
/// A rollout that is halted goes on.
pub fn decide_resume(object: &PolicyObject) -> PauseChange {
    let rollout = convert_policy_object(object).rollout;
    let halt = rollout.state.and_then(|state| state.halted);
    if let Some(halt) = halt.filter(|halt| rollout.resumed != Some(halt.since)) {
        return PauseChange::EndHalt(halt.since);
    }
    let paused = object.spec.get("paused");
    if paused.is_none_or(serde_json::Value::is_null) {
        return PauseChange::Keep;
    }
    if is_made_by_pause(object) {
        PauseChange::Delete
    } else {
        PauseChange::Clear
    }
}

fn is_made_by_pause(object: &PolicyObject) -> bool {
    let labels = object.metadata.labels.as_ref();
    let made = labels.and_then(|labels| labels.get(label::MADE_BY));
    let bare = |(field, value): (&String, &serde_json::Value)| match field.as_str() {
        "paused" | "priority" => true,
        "nodeSelector" => value.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    made.is_some_and(|made| made == label::MADE_BY_PAUSE)
        && object
            .spec
            .as_object()
            .is_some_and(|spec| spec.iter().all(bare))
}

/// A priority below all others, and at most `most`.
pub fn lowest_priority(lowest: Option<i64>, most: i32) -> i32 {
    let below = lowest.map_or(i64::from(most), |lowest| lowest.saturating_sub(1));
    i32::try_from(below.min(i64::from(most))).unwrap_or(i32::MIN)
}

pub fn nodes_without_policy(fleet: &FleetSnapshot) -> Vec<&ObservedNode> {
    let policies = fleet.policies.known_policies();
    let alone = |node: &&ObservedNode| policy::ruling_policy(policies, &node.labels).is_none();
    fleet.iter_nodes().filter(alone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(spec: &Value, made: bool) -> PolicyObject {
        let labels = if made {
            json!({ label::MADE_BY: label::MADE_BY_PAUSE })
        } else {
            json!({})
        };
        let object = json!({ "metadata": { "name": "default", "labels": labels }, "spec": spec });
        serde_json::from_value(object).unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn wanted(until: Option<&str>) -> PausedSpec {
        PausedSpec {
            reason: Some("ours".into()),
            until: until.map(str::to_owned),
        }
    }

    #[test]
    fn somebody_elses_pause_is_never_shortened_and_replaced_only_if_that_is_said() {
        let for_ever = json!({ "paused": { "reason": "theirs" } });
        let at = |hour: u8| json!({ "paused": { "until": format!("2026-11-21T{hour}:00:00Z") } });
        let set = |until| PauseChange::Set(wanted(until));
        let later = Some("2026-11-21T14:00:00Z");
        for (there, until, replace, expected) in [
            (json!({}), None, false, set(None)),
            (for_ever.clone(), later, true, PauseChange::Keep),
            (at(15), later, true, PauseChange::Keep),
            (at(13), later, false, PauseChange::Keep),
            (at(13), later, true, set(later)),
            (at(13), None, true, set(None)),
            (at(11), later, false, set(later)),
            (json!({ "paused": "yes" }), later, false, set(later)),
        ] {
            let done = decide_pause(&object(&there, false), &wanted(until), replace, now());
            assert_eq!(done, expected, "{there} {until:?} {replace}");
        }
    }

    #[test]
    fn a_halt_that_nobody_has_ended_yet_is_ended_and_a_pause_with_it() {
        let since = "2026-11-21T11:00:00Z";
        let mut halted = object(&json!({ "paused": {}, "rollout": { "ramp": [1] } }), false);
        halted.status = json!({ "rollout": {
            "shape": "ramp 1", "phase": "Ramping", "halted": { "since": since, "reason": "n1" },
        } });
        let ended = PauseChange::EndHalt(since.parse().unwrap());
        assert_eq!(decide_resume(&halted), ended);
        let mut annotate = |time: &str| {
            let name = dogwatch_api::annotation::ROLLOUT_RESUMED.to_owned();
            halted.metadata.annotations = Some([(name, time.to_owned())].into());
            decide_resume(&halted)
        };
        assert_eq!(annotate("2026-11-20T11:00:00Z"), ended, "another halt");
        assert_eq!(annotate(since), PauseChange::Clear);
    }

    #[test]
    fn only_a_policy_that_pause_made_and_that_says_nothing_else_goes_with_its_pause() {
        let made = json!({ "nodeSelector": {}, "priority": -1000, "paused": {} });
        let with = |field: &str, value: Value| {
            let mut spec = made.clone();
            spec[field] = value;
            spec
        };
        for (spec, by_pause, expected) in [
            (made.clone(), true, PauseChange::Delete),
            (made.clone(), false, PauseChange::Clear),
            (with("maxUnavailable", json!(2)), true, PauseChange::Clear),
            (
                with("nodeSelector", json!({ "matchLabels": { "a": "b" } })),
                true,
                PauseChange::Clear,
            ),
            (json!({ "nodeSelector": {} }), true, PauseChange::Keep),
        ] {
            assert_eq!(
                decide_resume(&object(&spec, by_pause)),
                expected,
                "{spec} {by_pause}"
            );
        }
    }

    #[test]
    fn the_policy_for_the_rest_comes_after_every_other() {
        for (lowest, expected) in [
            (None, -1000),
            (Some(0), -1000),
            (Some(-1000), -1001),
            (Some(-5000), -5001),
        ] {
            assert_eq!(lowest_priority(lowest, -1000), expected, "{lowest:?}");
        }
    }
}
