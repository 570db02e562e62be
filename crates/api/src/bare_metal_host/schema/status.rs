//! Schema of `status`, without rules: the controllers that write it must never be refused. Fields
//! that metal3 requires of its own controller are optional here.

use serde_json::{Value, json};

use super::preserve_unknown_fields;
use crate::schema_parts::{
    conditions_schema, enum_schema, list_schema, object_schema, status_count_schema,
    status_text_schema, status_time_schema,
};

/// The same as `MAX_POWER_HISTORY` in `dogwatch_core::power`.
const MAX_HISTORY_ENTRIES: usize = 10;
/// More keys than fit into the 256 KiB of a host's annotations: with a status that could not be
/// written, the host would stay as it is for ever.
const MAX_HOLDING_KEYS: usize = 16_384;

pub(super) fn status_schema() -> Value {
    preserve_unknown_fields(object_schema(
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
            ("power", power_schema()),
            ("provisioning", provisioning_schema()),
            (
                "operationalStatus",
                enum_schema(
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
                status_text_schema("metal3's word for the most recent error."),
            ),
            ("errorMessage", status_text_schema("The most recent error.")),
            ("errorCount", status_count_schema("How often in a row.")),
            (
                "conditions",
                conditions_schema(
                    "PowerControlReady: whether power control would work now. PowerAsWanted: whether the \
                 power is where it should be. HeldOff: whether reboot annotations keep it off.",
                    "PowerControlReady, PowerAsWanted, HeldOff, or metal3's.",
                ),
            ),
        ],
    ))
}

fn provisioning_schema() -> Value {
    preserve_unknown_fields(object_schema(
        "Where it stands in metal3's life of a host.",
        &[],
        [
            (
                "state",
                status_text_schema("provisioned, externally provisioned, available, …"),
            ),
            ("ID", status_text_schema("metal3's id of it.")),
            (
                "lastPoweredOn",
                status_time_schema(
                    "When it was last powered on by us, written before that: what ran before is dead.",
                ),
            ),
            (
                "pendingRebootSince",
                status_time_schema("Since when a reboot is due; done once lastPoweredOn is later."),
            ),
        ],
    ))
}

fn power_schema() -> Value {
    object_schema(
        "Its power, as Dogwatch sees and commands it.",
        &[],
        [
            (
                "state",
                enum_schema(
                    "What was last said of it.",
                    &["On", "Off", "PoweringOn", "PoweringOff", "Unknown"],
                ),
            ),
            ("observedAt", status_time_schema("When that was.")),
            (
                "offConfirmedAt",
                status_time_schema(
                    "When off was confirmed, after our own command; absent once that may no longer hold.",
                ),
            ),
            (
                "confirmedFor",
                list_schema(
                    "The reboot annotations that stood there then, KEY=DIGEST.",
                    0,
                    MAX_HOLDING_KEYS,
                    &status_text_schema("One of them."),
                ),
            ),
            ("command", command_schema()),
            (
                "obeyedIn",
                status_text_schema("The provisioning state that was last acted upon."),
            ),
            (
                "externallyProvisioned",
                json!({
                    "type": "boolean",
                    "description": "What spec.externallyProvisioned last said.",
                }),
            ),
            ("history", history_schema()),
        ],
    )
}

fn command_schema() -> Value {
    object_schema(
        "The newest command: it stands here before it is sent.",
        &[],
        [
            (
                "id",
                status_text_schema("PROCESS/NUMBER, never twice the same."),
            ),
            ("command", command_kind_schema()),
            ("level", status_count_schema("On which level, from 0.")),
            (
                "target",
                status_text_schema(
                    "A digest of that level's devices: another BMC's answer proves nothing.",
                ),
            ),
            (
                "since",
                status_time_schema("When the first command of this need was decided."),
            ),
            ("at", status_time_schema("When it was decided.")),
            (
                "attempt",
                status_count_schema("The how-manieth of its kind on its level, from 1."),
            ),
            (
                "before",
                status_count_schema("How many commands of this need went before."),
            ),
            (
                "afterUnknown",
                json!({
                    "type": "boolean",
                    "description": "Whether the BMC could still run an earlier command then.",
                }),
            ),
            ("why", status_text_schema("Why, in one word.")),
            (
                "end",
                enum_schema(
                    "How it ended: not written down yet, answered, failed, or nobody knows.",
                    &["Open", "Answered", "Failed", "Unknown"],
                ),
            ),
            ("endedAt", status_time_schema("When.")),
            ("message", status_text_schema("What went wrong.")),
        ],
    )
}

fn history_schema() -> Value {
    let done = object_schema(
        "One change of power.",
        &[],
        [
            ("what", command_kind_schema()),
            ("why", status_text_schema("Why, in one word.")),
            ("at", status_time_schema("When it was decided.")),
            ("outcome", status_text_schema("How it ended, in one word.")),
            ("took", status_text_schema("How long that took, like 4.2s.")),
            (
                "attempts",
                status_count_schema("How many commands it took."),
            ),
        ],
    );
    list_schema(
        "What was done, the newest first.",
        0,
        MAX_HISTORY_ENTRIES,
        &done,
    )
}

fn command_kind_schema() -> Value {
    enum_schema("What was sent.", &["PowerOn", "SoftPowerOff", "PowerOff"])
}
