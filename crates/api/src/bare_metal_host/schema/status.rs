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
        "What is known about the host.",
        &[],
        [
            (
                "poweredOn",
                json!({
                    "type": "boolean",
                    "description": "False only while the BMC reports off; true also while the power is unknown.",
                }),
            ),
            ("power", power_schema()),
            ("provisioning", provisioning_schema()),
            (
                "operationalStatus",
                enum_schema(
                    "metal3's name for the health of the host.",
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
                status_text_schema("metal3's name for the most recent error."),
            ),
            ("errorMessage", status_text_schema("The most recent error.")),
            (
                "errorCount",
                status_count_schema("How often that error occurred in a row."),
            ),
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
        "The host's state in metal3's life cycle.",
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
                    "When Dogwatch last powered the host on. Written before the command is sent: \
                     whatever ran before this time has stopped.",
                ),
            ),
            (
                "pendingRebootSince",
                status_time_schema(
                    "Since when a reboot is pending; it is done when lastPoweredOn is later.",
                ),
            ),
        ],
    ))
}

fn power_schema() -> Value {
    object_schema(
        "The host's power, as Dogwatch reads and commands it.",
        &[],
        [
            (
                "state",
                enum_schema(
                    "The last power state that was read.",
                    &["On", "Off", "PoweringOn", "PoweringOff", "Unknown"],
                ),
            ),
            ("observedAt", status_time_schema("When it was read.")),
            (
                "offConfirmedAt",
                status_time_schema(
                    "When off was confirmed after Dogwatch's own command; absent when that may no longer hold.",
                ),
            ),
            (
                "confirmedFor",
                list_schema(
                    "The reboot annotations that the host had then, as KEY=DIGEST.",
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
                    "description": "The last value of spec.externallyProvisioned.",
                }),
            ),
            ("history", history_schema()),
        ],
    )
}

fn command_schema() -> Value {
    object_schema(
        "The newest command, written here before it is sent.",
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
                    "A digest of that level's devices: an answer of another BMC proves nothing.",
                ),
            ),
            (
                "since",
                status_time_schema("When the first command for this purpose was decided."),
            ),
            ("at", status_time_schema("When it was decided.")),
            (
                "attempt",
                status_count_schema("The number of this try on its level, from 1."),
            ),
            (
                "before",
                status_count_schema("How many commands for this purpose were sent before it."),
            ),
            (
                "afterUnknown",
                json!({
                    "type": "boolean",
                    "description": "Whether the BMC could still run an earlier command then.",
                }),
            ),
            ("why", status_text_schema("The reason, in one word.")),
            (
                "end",
                enum_schema(
                    "The result: not recorded yet, answered, failed, or unknown.",
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
            ("why", status_text_schema("The reason, in one word.")),
            ("at", status_time_schema("When it was decided.")),
            ("outcome", status_text_schema("The result, in one word.")),
            ("took", status_text_schema("How long that took, like 4.2s.")),
            (
                "attempts",
                status_count_schema("How many commands it took."),
            ),
        ],
    );
    list_schema(
        "What Dogwatch did, the newest first.",
        0,
        MAX_HISTORY_ENTRIES,
        &done,
    )
}

fn command_kind_schema() -> Value {
    enum_schema("What was sent.", &["PowerOn", "SoftPowerOff", "PowerOff"])
}
