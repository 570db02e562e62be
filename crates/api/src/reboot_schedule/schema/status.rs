//! Schema of `status`, without rules: the controller that writes it must never be refused.

use dogwatch_core::schedule::{MAX_HISTORY_RECORDS, MAX_LISTED_TARGETS};
use serde_json::Value;

use crate::schema_parts::{
    conditions_schema, list_schema, object_schema, observed_generation_schema, status_count_schema,
    status_text_schema, status_time_schema,
};

pub(super) fn status_schema() -> Value {
    object_schema(
        "What the controller did.",
        &[],
        [
            ("observedGeneration", observed_generation_schema()),
            ("nextOccurrence", status_time_schema("When it issues next.")),
            (
                "lastOccurrence",
                status_time_schema("The newest occurrence that was begun or missed."),
            ),
            ("current", current_occurrence_schema()),
            (
                "history",
                list_schema(
                    "Past occurrences, the newest first.",
                    0,
                    MAX_HISTORY_RECORDS,
                    &occurrence_schema(),
                ),
            ),
            (
                "conditions",
                conditions_schema(
                    "Accepted: whether the schedule is valid. Active: whether an occurrence is left or is being \
                 issued. LastOccurrenceIssued: whether the last one reached all its targets.",
                    "Accepted, Active or LastOccurrenceIssued.",
                ),
            ),
        ],
    )
}

fn current_occurrence_schema() -> Value {
    object_schema(
        "The occurrence that is being issued, written here before the first request.",
        &["at", "begun"],
        [
            ("at", status_time_schema("The appointed time.")),
            ("begun", status_time_schema("When this was written.")),
        ],
    )
}

fn occurrence_schema() -> Value {
    object_schema(
        "A past occurrence.",
        &["at", "ended", "outcome"],
        [
            ("at", status_time_schema("The appointed time.")),
            ("ended", status_time_schema("When it ended.")),
            (
                "outcome",
                status_text_schema(
                    "Requested, PartlyRequested, Failed, Missed, Cancelled or NoTargets.",
                ),
            ),
            (
                "requested",
                status_count_schema("How many targets were requested."),
            ),
            (
                "alreadyRequested",
                status_count_schema(
                    "How many targets already had a request, which was left as it is.",
                ),
            ),
            (
                "failed",
                status_count_schema("How many targets could not be requested."),
            ),
            (
                "targets",
                list_schema(
                    "Some of the targets, failed ones first.",
                    0,
                    MAX_LISTED_TARGETS,
                    &target_schema(),
                ),
            ),
            ("message", status_text_schema("A sentence.")),
        ],
    )
}

fn target_schema() -> Value {
    object_schema(
        "A node or a host.",
        &["kind", "name", "result"],
        [
            ("kind", status_text_schema("Node or BareMetalHost.")),
            ("name", status_text_schema("Its name.")),
            (
                "result",
                status_text_schema("Requested, AlreadyRequested or Failed."),
            ),
            ("message", status_text_schema("Why.")),
        ],
    )
}
