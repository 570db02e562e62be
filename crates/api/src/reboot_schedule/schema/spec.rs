//! Schema of `spec`.

use serde_json::{Value, json};

use crate::reboot_policy::schema::selector::selector_schema;
use crate::reboot_policy::schema::window::{
    days_schema, excluded_dates_schema, rrule_schema, start_time_schema, time_zone_schema,
};
use crate::schema_parts::{
    cel_rule, enum_schema, min_time_limit_schema, object_schema, pattern_schema, set_schema,
    text_schema, with_keyword, with_rules,
};

/// How many names may be listed; for more targets there is the selector.
const MAX_TARGET_NAMES: usize = 500;

/// RFC 3339, with or without an offset.
const TIME_PATTERN: &str = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$";
const NAME_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

pub(super) fn spec_schema() -> Value {
    with_rules(spec_fields_schema(), spec_rules())
}

fn spec_fields_schema() -> Value {
    let suspend = json!({
        "type": "boolean",
        "description": "Whether the schedule is suspended. Occurrences in that time are not \
                        repeated later, except a time given by at. Default: false.",
    });
    object_schema(
        "The desired schedule. A change applies at once; it does not create occurrences in the past.",
        &[],
        [
            ("at", at_schema()),
            ("recurrence", recurrence_schema()),
            ("timeZone", time_zone_schema()),
            ("startingDeadline", starting_deadline_schema()),
            ("suspend", suspend),
            ("reason", reason_schema()),
            (
                "mode",
                enum_schema(
                    "How hosts without a Node are switched off. soft: the operating system is \
                     asked to shut down first. hard: the power is cut at once. Default: soft.",
                    &["soft", "hard"],
                ),
            ),
            (
                "nodes",
                targets_schema(
                    "Nodes to reboot as planned, with lock, drain and policy. Only in Dogwatch's own namespace.",
                ),
            ),
            (
                "hosts",
                targets_schema(
                    "BareMetalHosts in this namespace. A host that runs a Node (annotation dogwatch.dev/node) is \
                     rebooted as that Node; a host that nothing uses is rebooted by its power.",
                ),
            ),
        ],
    )
}

fn spec_rules() -> [Value; 4] {
    [
        cel_rule(
            "has(self.at) != has(self.recurrence)",
            "write either at or recurrence",
        ),
        cel_rule(
            "has(self.nodes) || has(self.hosts)",
            "write nodes or hosts, or both",
        ),
        cel_rule(
            "!(has(self.timeZone) && has(self.at) && self.at.matches(r'(Z|[+-][0-9:]+)$'))",
            "leave out timeZone, or the offset of at",
        ),
        cel_rule(
            "!has(self.mode) || has(self.hosts)",
            "leave out mode: it is for hosts only; nodes shut themselves down",
        ),
    ]
}

fn at_schema() -> Value {
    pattern_schema(
        "Once, at this time: with its offset like 2026-12-24T03:00:00Z, or on the clock of timeZone like \
         2026-12-24T03:00.",
        30,
        TIME_PATTERN,
        "write a time like 2026-12-24T03:00:00Z, or 2026-12-24T03:00 on the clock of timeZone",
    )
}

fn recurrence_schema() -> Value {
    let recurrence = object_schema(
        "Repeatedly, from the creation of the schedule on.",
        &["start"],
        [
            ("days", days_schema()),
            (
                "start",
                start_time_schema("At what time of day, like 03:00."),
            ),
            ("rrule", rrule_schema()),
            ("excludedDates", excluded_dates_schema()),
        ],
    );
    with_rules(
        recurrence,
        [cel_rule(
            "!(has(self.days) && has(self.rrule))",
            "write either days or rrule; an rrule can name days by BYDAY",
        )],
    )
}

fn starting_deadline_schema() -> Value {
    min_time_limit_schema(
        "How late an occurrence may begin; a later one is recorded as missed and is not repeated. Default: 1h.",
        "1m",
        "write at least 1m: another replica may have to take over first",
    )
}

fn reason_schema() -> Value {
    with_keyword(
        text_schema(
            "The reason; it is written into each request and shown wherever the request waits.",
            512,
        ),
        "default",
        json!("scheduled reboot"),
    )
}

fn targets_schema(description: &str) -> Value {
    let name = pattern_schema(
        "A name.",
        253,
        NAME_PATTERN,
        "write a name of lower-case letters, digits, '-' and '.'",
    );
    let chosen = object_schema(
        description,
        &[],
        [
            ("names", set_schema("By name.", 1, MAX_TARGET_NAMES, &name)),
            (
                "selector",
                selector_schema(
                    "By labels, read at the time of the occurrence; {} selects all of them.",
                ),
            ),
        ],
    );
    with_keyword(chosen, "minProperties", json!(1))
}
