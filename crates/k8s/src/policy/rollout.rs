//! `spec.rollout`, `status.rollout`, and the annotation by which a person ends a halt.

use dogwatch_api::annotation::ROLLOUT_RESUMED;
use dogwatch_api::reboot_policy::{PolicyRolloutState, RolloutSpec};
use dogwatch_core::policy::rollout::{
    PolicyRollout, RolloutCanary, RolloutHalt, RolloutPhase, RolloutShape,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use super::PolicyObject;
use super::fields::SpecFields;

/// Maximum length of a ramp, and of each of its numbers.
const MAX_RAMP_STEPS: usize = 20;
const MAX_RAMP_NODES: u32 = 10_000;
/// Maximum of canaries, and of failures that are counted.
const MAX_CANARIES: u32 = 100;
const MAX_FAILURES: u32 = 100;

/// The shape only; see [`read_rollout_state`].
pub(super) fn parse_rollout(fields: &mut SpecFields) -> PolicyRollout {
    let Some(spec) = fields.take_field::<RolloutSpec>("rollout") else {
        return PolicyRollout::default();
    };
    if spec == RolloutSpec::default() {
        fields.add_problem("rollout", "write canary, ramp or haltAfterFailures");
    }
    let shape = RolloutShape {
        canary: parse_canary(fields, &spec),
        ramp: parse_ramp(fields, &spec),
        halt_after_failures: spec.halt_after_failures,
    };
    if spec
        .halt_after_failures
        .is_some_and(|count| !(1..=MAX_FAILURES).contains(&count))
    {
        let text = format!("write a number from 1 to {MAX_FAILURES}");
        fields.add_problem("rollout.haltAfterFailures", text);
    }
    PolicyRollout {
        shape: Some(shape),
        ..PolicyRollout::default()
    }
}

fn parse_canary(fields: &mut SpecFields, spec: &RolloutSpec) -> Option<RolloutCanary> {
    let canary = spec.canary.as_ref()?;
    if canary.nodes > MAX_CANARIES {
        let text = format!("write a number from 0 to {MAX_CANARIES}");
        fields.add_problem("rollout.canary.nodes", text);
    }
    let soak = fields.parse_duration("rollout.canary.soak", canary.soak.as_ref());
    Some(RolloutCanary {
        nodes: canary.nodes,
        soak: soak.unwrap_or_default(),
    })
}

fn parse_ramp(fields: &mut SpecFields, spec: &RolloutSpec) -> Vec<u32> {
    let Some(ramp) = &spec.ramp else {
        return Vec::new();
    };
    let is_ascending = ramp.is_sorted_by(|a, b| a < b);
    let fits = ramp
        .iter()
        .all(|nodes| (1..=MAX_RAMP_NODES).contains(nodes));
    if !is_ascending || !fits || ramp.is_empty() || ramp.len() > MAX_RAMP_STEPS {
        let text = format!(
            "write 1 to {MAX_RAMP_STEPS} ascending numbers from 1 to {MAX_RAMP_NODES}, like [1, 2, 4]"
        );
        fields.add_problem("rollout.ramp", text);
    }
    ramp.clone()
}

/// What the controller wrote last, and what a person said about a halt.
pub(super) fn read_rollout_state(object: &PolicyObject, rollout: &mut PolicyRollout) {
    let state = object.status.get("rollout");
    rollout.state = state.filter(|state| !state.is_null()).map(parse_state);
    let resumed = object.annotations().get(ROLLOUT_RESUMED);
    rollout.resumed = resumed.and_then(|text| text.parse().ok());
}

/// A state that cannot be read may say that the rollout is halted, so it counts as that.
fn parse_state(state: &Value) -> PolicyRolloutState {
    serde_json::from_value(state.clone()).unwrap_or_else(|error| PolicyRolloutState {
        halted: Some(RolloutHalt {
            since: Timestamp::UNIX_EPOCH,
            reason: format!("status.rollout cannot be read: {error}"),
        }),
        phase: RolloutPhase::Canary,
        ..RolloutShape::default().first_state()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dogwatch_core::policy::Policy;
    use serde_json::json;

    use super::super::{convert_policy, convert_policy_object};
    use super::*;

    fn policy_with(spec: &Value, status: &Value, resumed: &str) -> Policy {
        let metadata = json!({ "name": "workers", "annotations": { ROLLOUT_RESUMED: resumed } });
        let object = json!({ "metadata": metadata, "spec": spec, "status": status });
        convert_policy_object(&serde_json::from_value(object).unwrap())
    }

    fn rollout_spec() -> Value {
        json!({ "rollout": {
            "canary": { "nodes": 2, "soak": "1h" }, "ramp": [1, 2], "haltAfterFailures": 3,
        } })
    }

    #[test]
    fn the_shape_reaches_the_decisions() {
        let policy = convert_policy("workers", &rollout_spec());
        assert_eq!(policy.problems, Vec::<String>::new());
        let shape = policy.rollout.shape.unwrap();
        let canary = RolloutCanary {
            nodes: 2,
            soak: Duration::from_hours(1),
        };
        assert_eq!(shape.canary, Some(canary));
        assert_eq!(
            (shape.ramp, shape.halt_after_failures),
            (vec![1, 2], Some(3))
        );
    }

    #[test]
    fn what_the_api_server_would_refuse_is_a_problem_too() {
        for (rollout, field) in [
            (json!({}), "spec.rollout:"),
            (json!({ "ramp": [] }), "spec.rollout.ramp:"),
            (json!({ "ramp": [2, 2] }), "spec.rollout.ramp:"),
            (json!({ "ramp": [0] }), "spec.rollout.ramp:"),
            (
                json!({ "canary": { "nodes": 1, "soak": "3d" } }),
                "spec.rollout.canary.soak:",
            ),
            (
                json!({ "canary": { "nodes": 101 } }),
                "spec.rollout.canary.nodes:",
            ),
            (
                json!({ "haltAfterFailures": 0 }),
                "spec.rollout.haltAfterFailures:",
            ),
            (json!({ "canary": {} }), "spec.rollout:"),
            (json!({ "speed": 1 }), "spec.rollout:"),
        ] {
            let policy = convert_policy("workers", &json!({ "rollout": rollout }));
            let [problem] = policy.problems.as_slice() else {
                panic!("{rollout}: {:?}", policy.problems);
            };
            assert!(problem.starts_with(field), "{problem}");
        }
    }

    #[test]
    fn the_written_state_is_read_back_with_the_word_about_its_halt() {
        let policy = policy_with(&rollout_spec(), &Value::Null, "2026-01-01T00:00:00Z");
        assert_eq!(policy.rollout.state, None);
        assert_eq!(policy.rollout.resumed, "2026-01-01T00:00:00Z".parse().ok());
        let state = policy.rollout.shape.unwrap().first_state();
        let policy = policy_with(&rollout_spec(), &json!({ "rollout": state.clone() }), "now");
        assert_eq!(policy.rollout.current_state(), Some(&state));
        assert_eq!(policy.rollout.resumed, None);
    }

    #[test]
    fn a_state_that_cannot_be_read_counts_as_a_halt() {
        for state in [
            json!({ "phase": "Flying" }),
            json!("Ramping"),
            json!({ "shape": "ramp 1", "phase": "Ramping", "halted": { "since": "yesterday" } }),
        ] {
            let policy = policy_with(&rollout_spec(), &json!({ "rollout": state }), "");
            let read = policy.rollout.state.unwrap();
            assert!(read.halted.is_some(), "{state}");
        }
    }
}
