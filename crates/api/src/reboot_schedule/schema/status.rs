//! `status`. No rules: the controller writes it, and must always be able to.

use dogwatch_core::schedule::{HISTORY, TARGETS_LISTED};
use serde_json::Value;

use crate::schema_words::{conditions, count, generation, list, object, said, time};

pub(super) fn status() -> Value {
    object(
        "What the controller did.",
        &[],
        [
            ("observedGeneration", generation()),
            ("nextOccurrence", time("When it issues next.")),
            (
                "lastOccurrence",
                time("The newest occurrence that was begun or missed."),
            ),
            ("current", current()),
            (
                "history",
                list(
                    "Past occurrences, the newest first.",
                    0,
                    HISTORY,
                    &occurrence(),
                ),
            ),
            (
                "conditions",
                conditions(
                    "Accepted: whether it is understood. Active: whether an occurrence lies ahead or \
                 is being issued. LastOccurrenceIssued: whether the last one reached everybody.",
                    "Accepted, Active or LastOccurrenceIssued.",
                ),
            ),
        ],
    )
}

fn current() -> Value {
    object(
        "The occurrence that is being issued: it stands here before the first request goes out.",
        &["at", "begun"],
        [
            ("at", time("The appointed time.")),
            ("begun", time("When that was written down.")),
        ],
    )
}

fn occurrence() -> Value {
    object(
        "A past occurrence.",
        &["at", "ended", "outcome"],
        [
            ("at", time("The appointed time.")),
            ("ended", time("When it was done with.")),
            (
                "outcome",
                said("Requested, PartlyRequested, Failed, Missed, Cancelled or NoTargets."),
            ),
            ("requested", count("How many targets were asked.")),
            (
                "alreadyRequested",
                count("How many had a request already, which was left as it is."),
            ),
            ("failed", count("How many could not be asked.")),
            (
                "targets",
                list(
                    "Some of them, those that failed first.",
                    0,
                    TARGETS_LISTED,
                    &target(),
                ),
            ),
            ("message", said("A sentence.")),
        ],
    )
}

fn target() -> Value {
    object(
        "A node or a host.",
        &["kind", "name", "result"],
        [
            ("kind", said("Node or BareMetalHost.")),
            ("name", said("Its name.")),
            ("result", said("Requested, AlreadyRequested or Failed.")),
            ("message", said("Why.")),
        ],
    )
}
