//! Schema of `status`, without rules: the controller that writes it must never be refused.

use dogwatch_core::remediation::RequestStatus;
use serde_json::{Value, json};

use crate::power_remediation::PowerRemediationPhase;
use crate::schema_parts::{
    conditions_schema, list_schema, object_schema, observed_generation_schema, status_text_schema,
    status_time_schema,
};

pub(super) fn status_schema() -> Value {
    object_schema(
        "What the controller did.",
        &[],
        [
            ("observedGeneration", observed_generation_schema()),
            ("phase", phase_schema()),
            ("startedAt", status_time_schema("When it was first seen.")),
            ("endedAt", status_time_schema("When it ended, well or not.")),
            ("attempt", attempt_schema()),
            ("host", host_schema()),
            ("node", node_schema()),
            (
                "taintedAt",
                status_time_schema(
                    "timeAdded of the taint node.kubernetes.io/out-of-service that this request set, until it \
                     is lifted. A taint with another time is somebody else's.",
                ),
            ),
            ("offProof", off_proof_schema()),
            (
                "timeline",
                list_schema(
                    "Its steps, the oldest first.",
                    0,
                    RequestStatus::MAX_STEPS,
                    &timeline_entry_schema(),
                ),
            ),
            (
                "conditions",
                conditions_schema(
                    "Processing: whether it is being worked on. Succeeded: True when a new boot is Ready, \
                     False when it was given up. PermanentNodeDeletionExpected: False, the Node comes back. \
                     Remediation: whether it is under way, and why it stands where it stands.",
                    "Processing, Succeeded, PermanentNodeDeletionExpected or Remediation.",
                ),
            ),
        ],
    )
}

fn phase_schema() -> Value {
    let words = PowerRemediationPhase::ALL
        .map(PowerRemediationPhase::as_str)
        .join(", ");
    status_text_schema(&format!("Where it stands, for people: one of {words}."))
}

fn attempt_schema() -> Value {
    let number = json!({
        "type": "integer",
        "format": "int32",
        "minimum": 1,
        "description": "Which, from 1.",
    });
    object_schema(
        "The attempt under way, or the last one.",
        &["number", "startedAt"],
        [
            ("number", number),
            (
                "startedAt",
                status_time_schema("When it began; its timeout counts from here."),
            ),
            (
                "keyAt",
                status_time_schema("When the reboot key was seen on the host."),
            ),
            (
                "offConfirmedAt",
                status_time_schema("When the host was proved off."),
            ),
            (
                "releasedAt",
                status_time_schema(
                    "When the Node was seen gone, or its taint seen and nothing left on it.",
                ),
            ),
            (
                "keyRemovedAt",
                status_time_schema("When the reboot key was seen gone."),
            ),
        ],
    )
}

fn host_schema() -> Value {
    object_schema(
        "The BareMetalHost that is held off. Another one later is refused.",
        &["namespace", "name", "uid"],
        [
            ("namespace", status_text_schema("Its namespace.")),
            ("name", status_text_schema("Its name.")),
            ("uid", status_text_schema("Its UID.")),
        ],
    )
}

fn node_schema() -> Value {
    object_schema(
        "The Node that is released.",
        &["name"],
        [
            ("name", status_text_schema("Its name.")),
            (
                "uid",
                status_text_schema("Its UID, as it was when this began."),
            ),
            (
                "bootID",
                status_text_schema("The boot that is to be ended."),
            ),
        ],
    )
}

fn off_proof_schema() -> Value {
    object_schema(
        "What proved the host off, in the last attempt.",
        &["source", "confirmedAt"],
        [
            (
                "source",
                status_text_schema(
                    "OurCommand: our own power-off was answered, and the BMC read off twice. \
                     TheirController: another power controller switches it, and the BMC read off twice. \
                     Person: somebody said so.",
                ),
            ),
            (
                "command",
                status_text_schema("The power command that was answered, where it was ours."),
            ),
            ("confirmedAt", status_time_schema("When it was proved.")),
            ("by", status_text_schema("Who said so, for a person.")),
            ("reason", status_text_schema("Why, for a person.")),
        ],
    )
}

fn timeline_entry_schema() -> Value {
    object_schema(
        "A step.",
        &["what", "at"],
        [
            (
                "what",
                status_text_schema(
                    "Requested, KeyAdded, OffProved, Released, KeyRemoved, PoweredOn, NodeReady, Withdrawn or \
                     Failed.",
                ),
            ),
            (
                "at",
                status_time_schema("When, by the clock of whoever led then."),
            ),
        ],
    )
}
