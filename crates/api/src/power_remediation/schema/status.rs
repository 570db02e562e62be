//! `status`. No rules: the controller writes it, and must always be able to.

use dogwatch_core::remedy::RequestStatus;
use serde_json::{Value, json};

use crate::power_remediation::Phase;
use crate::schema_words::{conditions, generation, list, object, said, time};

pub(super) fn status() -> Value {
    object(
        "What the controller did.",
        &[],
        [
            ("observedGeneration", generation()),
            ("phase", phase()),
            ("startedAt", time("When it was first seen.")),
            ("endedAt", time("When it ended, well or not.")),
            ("attempt", attempt()),
            ("host", host()),
            ("node", node()),
            (
                "taintedAt",
                time(
                    "timeAdded of the taint node.kubernetes.io/out-of-service that this request set, until it \
                     is lifted. A taint with another time is somebody else's.",
                ),
            ),
            ("offProof", off_proof()),
            (
                "timeline",
                list(
                    "Its steps, the oldest first.",
                    0,
                    RequestStatus::STEPS,
                    &entry(),
                ),
            ),
            (
                "conditions",
                conditions(
                    "Processing: whether it is being worked on. Succeeded: True when a new boot is Ready, \
                     False when it was given up. PermanentNodeDeletionExpected: False, the Node comes back. \
                     Remediation: whether it is under way, and why it stands where it stands.",
                    "Processing, Succeeded, PermanentNodeDeletionExpected or Remediation.",
                ),
            ),
        ],
    )
}

fn phase() -> Value {
    let words = Phase::ALL.map(Phase::as_str).join(", ");
    said(&format!("Where it stands, for people: one of {words}."))
}

fn attempt() -> Value {
    let number = json!({
        "type": "integer",
        "format": "int32",
        "minimum": 1,
        "description": "Which, from 1.",
    });
    object(
        "The attempt under way, or the last one.",
        &["number", "startedAt"],
        [
            ("number", number),
            (
                "startedAt",
                time("When it began; its timeout counts from here."),
            ),
            ("keyAt", time("When the reboot key was seen on the host.")),
            ("offConfirmedAt", time("When the host was proved off.")),
            (
                "releasedAt",
                time("When the Node was seen gone, or its taint seen and nothing left on it."),
            ),
            ("keyRemovedAt", time("When the reboot key was seen gone.")),
        ],
    )
}

fn host() -> Value {
    object(
        "The BareMetalHost that is held off. Another one later is refused.",
        &["namespace", "name", "uid"],
        [
            ("namespace", said("Its namespace.")),
            ("name", said("Its name.")),
            ("uid", said("Its UID.")),
        ],
    )
}

fn node() -> Value {
    object(
        "The Node that is released.",
        &["name"],
        [
            ("name", said("Its name.")),
            ("uid", said("Its UID, as it was when this began.")),
            ("bootID", said("The boot that is to be ended.")),
        ],
    )
}

fn off_proof() -> Value {
    object(
        "What proved the host off, in the last attempt.",
        &["source", "confirmedAt"],
        [
            (
                "source",
                said(
                    "OurCommand: our own power-off was answered, and the BMC read off twice. \
                     TheirController: another power controller switches it, and the BMC read off twice. \
                     Person: somebody said so.",
                ),
            ),
            (
                "command",
                said("The power command that was answered, where it was ours."),
            ),
            ("confirmedAt", time("When it was proved.")),
            ("by", said("Who said so, for a person.")),
            ("reason", said("Why, for a person.")),
        ],
    )
}

fn entry() -> Value {
    object(
        "A step.",
        &["what", "at"],
        [
            (
                "what",
                said(
                    "Requested, KeyAdded, OffProved, Released, KeyRemoved, PoweredOn, NodeReady, Withdrawn or \
                     Failed.",
                ),
            ),
            ("at", time("When, by the clock of whoever led then.")),
        ],
    )
}
