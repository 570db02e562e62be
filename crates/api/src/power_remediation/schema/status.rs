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
            (
                "endedAt",
                status_time_schema("When it ended, with success or not."),
            ),
            ("attempt", attempt_schema()),
            ("host", host_schema()),
            ("node", node_schema()),
            (
                "taintedAt",
                status_time_schema(
                    "timeAdded of the taint node.kubernetes.io/out-of-service that this request set, until the taint \
                     is removed. Somebody else set a taint with another time.",
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
                    "Processing: whether the controller works on it. Succeeded: True when the Node is Ready with a new \
                     boot, False when the remediation was given up. PermanentNodeDeletionExpected: False, because the \
                     Node comes back. Remediation: whether it is under way, and the reason for its current step.",
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
    status_text_schema(&format!("The current step, for people: one of {words}."))
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
                    "When the Node was seen deleted, or when its taint was seen and no workload was left on it.",
                ),
            ),
            (
                "keyRemovedAt",
                status_time_schema("When the reboot key was seen removed."),
            ),
        ],
    )
}

fn host_schema() -> Value {
    object_schema(
        "The BareMetalHost that is kept off. If a later attempt finds another host, it is refused.",
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
                status_text_schema("Its UID when this remediation began."),
            ),
            (
                "bootID",
                status_text_schema("The boot that the remediation must end."),
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
                    "OurCommand: the BMC accepted Dogwatch's power-off, and reported off twice. \
                     TheirController: another power controller switches the host, and the BMC \
                     reported off twice. Person: a person confirmed it.",
                ),
            ),
            (
                "command",
                status_text_schema("Dogwatch's power command that was answered, if there was one."),
            ),
            ("confirmedAt", status_time_schema("When it was proved.")),
            (
                "by",
                status_text_schema("The person who confirmed it, for Person."),
            ),
            (
                "reason",
                status_text_schema("The reason that the person gave, for Person."),
            ),
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
                status_time_schema("When, by the clock of the leader at that time."),
            ),
        ],
    )
}
