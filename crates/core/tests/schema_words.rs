//! The schemas of the kinds name the words that decisions know.

use dogwatch_api::{bare_metal_host, power_remediation};
use dogwatch_core::power::{PowerCommand, PowerState};
use dogwatch_core::remediation::RemediationStep;
use serde_json::Value;

fn status_properties(crd: &Value) -> &Value {
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    &schema["properties"]["status"]["properties"]
}

#[test]
fn decisions_know_every_power_state_and_command_of_the_schema() {
    let crd = bare_metal_host::host_crd();
    let power = &status_properties(&crd)["power"]["properties"];
    for state in power["state"]["enum"].as_array().unwrap() {
        let known = PowerState::from_text(state.as_str().unwrap());
        assert!(known.is_some(), "{state}");
    }
    let command = &power["command"]["properties"]["command"];
    for command in command["enum"].as_array().unwrap() {
        let known = PowerCommand::from_text(command.as_str().unwrap());
        assert!(known.is_some(), "{command}");
    }
}

#[test]
fn the_schema_names_every_step_that_a_timeline_has() {
    let crd = power_remediation::remediation_crd();
    let timeline = &status_properties(&crd)["timeline"];
    let text = timeline["items"]["properties"]["what"]["description"].as_str();
    for step in [
        RemediationStep::Requested,
        RemediationStep::KeyAdded,
        RemediationStep::OffProved,
        RemediationStep::Released,
        RemediationStep::KeyRemoved,
        RemediationStep::PoweredOn,
        RemediationStep::NodeReady,
        RemediationStep::Withdrawn,
        RemediationStep::Failed,
    ] {
        assert!(text.unwrap().contains(step.as_str()), "{step:?}");
    }
}
