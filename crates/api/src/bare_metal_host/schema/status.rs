//! `status`. No rules: controllers write it, and must always be able to. What metal3 requires of its
//! own controller is not required here.

use serde_json::{Value, json};

use super::open;
use crate::schema_words::{conditions, count, list, object, one_of, said, time};

/// As many as `core::power::HISTORY`.
const HISTORY: usize = 10;
/// More keys than the 256 KiB of a host's annotations hold: a status that could not be written would leave
/// the host as it is for ever.
const KEYS: usize = 16_384;

pub(super) fn status() -> Value {
    open(object(
        "What is known of the host.",
        &[],
        [
            (
                "poweredOn",
                json!({
                    "type": "boolean",
                    "description": "False only while its BMC says off; true also where that is not known.",
                }),
            ),
            ("power", power()),
            ("provisioning", provisioning()),
            (
                "operationalStatus",
                one_of(
                    "metal3's word for its health.",
                    &[
                        "",
                        "OK",
                        "discovered",
                        "error",
                        "delayed",
                        "detached",
                        "servicing",
                    ],
                ),
            ),
            (
                "errorType",
                said("metal3's word for the most recent error."),
            ),
            ("errorMessage", said("The most recent error.")),
            ("errorCount", count("How often in a row.")),
            (
                "conditions",
                conditions(
                    "PowerControlReady: whether power control would work now. PowerAsWanted: whether the \
                 power is where it should be. HeldOff: whether reboot annotations keep it off.",
                    "PowerControlReady, PowerAsWanted, HeldOff, or metal3's.",
                ),
            ),
        ],
    ))
}

fn provisioning() -> Value {
    open(object(
        "Where it stands in metal3's life of a host.",
        &[],
        [
            (
                "state",
                said("provisioned, externally provisioned, available, …"),
            ),
            ("ID", said("metal3's id of it.")),
            (
                "lastPoweredOn",
                time(
                    "When it was last powered on by us, written before that: what ran before is dead.",
                ),
            ),
            (
                "pendingRebootSince",
                time("Since when a reboot is due; done once lastPoweredOn is later."),
            ),
        ],
    ))
}

fn power() -> Value {
    object(
        "Its power, as Dogwatch sees and commands it.",
        &[],
        [
            (
                "state",
                one_of(
                    "What was last said of it.",
                    &["On", "Off", "PoweringOn", "PoweringOff", "Unknown"],
                ),
            ),
            ("observedAt", time("When that was.")),
            (
                "offConfirmedAt",
                time(
                    "When off was confirmed, after our own command; absent once that may no longer hold.",
                ),
            ),
            (
                "confirmedFor",
                list(
                    "The reboot annotations that stood there then, KEY=DIGEST.",
                    0,
                    KEYS,
                    &said("One of them."),
                ),
            ),
            ("command", command()),
            (
                "obeyedIn",
                said("The provisioning state that was last acted upon."),
            ),
            (
                "externallyProvisioned",
                json!({
                    "type": "boolean",
                    "description": "What spec.externallyProvisioned last said.",
                }),
            ),
            ("history", history()),
        ],
    )
}

fn command() -> Value {
    object(
        "The newest command: it stands here before it is sent.",
        &[],
        [
            ("id", said("PROCESS/NUMBER, never twice the same.")),
            ("command", what()),
            ("level", count("On which level, from 0.")),
            (
                "target",
                said("A digest of that level's devices: another BMC's answer proves nothing."),
            ),
            (
                "since",
                time("When the first command of this need was decided."),
            ),
            ("at", time("When it was decided.")),
            (
                "attempt",
                count("The how-manieth of its kind on its level, from 1."),
            ),
            (
                "before",
                count("How many commands of this need went before."),
            ),
            (
                "afterUnknown",
                json!({
                    "type": "boolean",
                    "description": "Whether the BMC could still run an earlier command then.",
                }),
            ),
            ("why", said("Why, in one word.")),
            (
                "end",
                one_of(
                    "How it ended: not written down yet, answered, failed, or nobody knows.",
                    &["Open", "Answered", "Failed", "Unknown"],
                ),
            ),
            ("endedAt", time("When.")),
            ("message", said("What went wrong.")),
        ],
    )
}

fn history() -> Value {
    let done = object(
        "One change of power.",
        &[],
        [
            ("what", what()),
            ("why", said("Why, in one word.")),
            ("at", time("When it was decided.")),
            ("outcome", said("How it ended, in one word.")),
            ("took", said("How long that took, like 4.2s.")),
            ("attempts", count("How many commands it took.")),
        ],
    );
    list("What was done, the newest first.", 0, HISTORY, &done)
}

fn what() -> Value {
    one_of("What was sent.", &["PowerOn", "SoftPowerOff", "PowerOff"])
}
