//! `spec`.

use serde_json::{Value, json};

use crate::reboot_policy::schema::selector::selector;
use crate::reboot_policy::schema::window::{days, excluded_dates, rrule, start, time_zone};
use crate::schema_words::{
    formed, object, one_of, rule, ruled, set, text, time_limit_of_at_least, with,
};

/// How many names may be listed; for more there are labels.
const MOST_NAMES: usize = 500;

/// With its offset, or without.
const TIME: &str = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$";
const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

pub(super) fn spec() -> Value {
    ruled(fields(), rules())
}

fn fields() -> Value {
    let suspend = json!({
        "type": "boolean",
        "description": "Whether nothing is issued. What falls into it is not made up for, but for a \
                        time given by at. Default: false.",
    });
    object(
        "What a person wrote. A change holds at once; times before it do not come by it.",
        &[],
        [
            ("at", at()),
            ("recurrence", recurrence()),
            ("timeZone", time_zone()),
            ("startingDeadline", starting_deadline()),
            ("suspend", suspend),
            ("reason", reason()),
            (
                "mode",
                one_of(
                    "How hosts that carry no Node are switched off. soft: they are asked first. hard: at \
                     once. Default: soft.",
                    &["soft", "hard"],
                ),
            ),
            (
                "nodes",
                chosen(
                    "Nodes: a planned reboot each, with lock, drain and policy. Only in Dogwatch's own \
                     namespace.",
                ),
            ),
            (
                "hosts",
                chosen(
                    "BareMetalHosts in this namespace. One that carries a Node (annotation \
                     dogwatch.dev/node) is rebooted as that Node, one that nobody uses by its power.",
                ),
            ),
        ],
    )
}

fn rules() -> [Value; 4] {
    [
        rule(
            "has(self.at) != has(self.recurrence)",
            "write either at or recurrence",
        ),
        rule(
            "has(self.nodes) || has(self.hosts)",
            "write nodes or hosts, or both",
        ),
        rule(
            "!(has(self.timeZone) && has(self.at) && self.at.matches(r'(Z|[+-][0-9:]+)$'))",
            "leave out timeZone, or the offset of at",
        ),
        rule(
            "!has(self.mode) || has(self.hosts)",
            "leave out mode: nodes are shut down by themselves",
        ),
    ]
}

fn at() -> Value {
    formed(
        "Once, at this time: with its offset like 2026-12-24T03:00:00Z, or on the clock of timeZone like \
         2026-12-24T03:00.",
        30,
        TIME,
        "write a time like 2026-12-24T03:00:00Z, or 2026-12-24T03:00 on the clock of timeZone",
    )
}

fn recurrence() -> Value {
    let recurrence = object(
        "Again and again, from the moment of its creation on.",
        &["start"],
        [
            ("days", days()),
            ("start", start("At what time of day, like 03:00.")),
            ("rrule", rrule()),
            ("excludedDates", excluded_dates()),
        ],
    );
    ruled(
        recurrence,
        [rule(
            "!(has(self.days) && has(self.rrule))",
            "write either days or rrule; an rrule can name days by BYDAY",
        )],
    )
}

fn starting_deadline() -> Value {
    time_limit_of_at_least(
        "How late is still on time; what is later is recorded as missed and not made up for. Default: 1h.",
        "1m",
        "write at least 1m: another replica may have to take over first",
    )
}

fn reason() -> Value {
    with(
        text(
            "Why; goes into each request, and is shown wherever it waits.",
            512,
        ),
        "default",
        json!("scheduled reboot"),
    )
}

fn chosen(description: &str) -> Value {
    let name = formed(
        "A name.",
        253,
        NAME,
        "write a name of lower-case letters, digits, '-' and '.'",
    );
    let chosen = object(
        description,
        &[],
        [
            ("names", set("By name.", 1, MOST_NAMES, &name)),
            (
                "selector",
                selector("By labels, looked at when the time has come; {} is all of them."),
            ),
        ],
    );
    with(chosen, "minProperties", json!(1))
}
