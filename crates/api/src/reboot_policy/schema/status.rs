//! Schema of `status`, without rules: the controller that writes it must never be refused.

use serde_json::Value;

use super::super::status::STATUS_LIST_LIMIT;
use super::words::{
    conditions_schema, list_schema, object_schema, observed_generation_schema, status_count_schema,
    status_text_schema, status_time_schema,
};

pub(super) fn status_schema() -> Value {
    object_schema(
        "What the controller saw. Each list has at most 10 entries beside its true length.",
        &[],
        [
            ("observedGeneration", observed_generation_schema()),
            ("nodes", status_count_schema("How many nodes it rules.")),
            (
                "ready",
                status_count_schema("How many of them are Ready and schedulable."),
            ),
            (
                "blocked",
                status_count_schema(
                    "How many of them wait, held back by this policy and not only by the lock.",
                ),
            ),
            (
                "outTotal",
                status_count_schema("How many of them are out of service on Dogwatch's account."),
            ),
            ("out", out_nodes_schema()),
            (
                "waitingTotal",
                status_count_schema("How many of them wait to be rebooted."),
            ),
            ("waiting", waiting_nodes_schema()),
            ("conflicts", conflicts_schema()),
            (
                "conditions",
                conditions_schema(
                    "Accepted: whether it is understood. Progressing: whether a node is out. \
                 Blocked: whether nodes wait and none may go.",
                    "Accepted, Progressing or Blocked.",
                ),
            ),
        ],
    )
}

fn out_nodes_schema() -> Value {
    status_list_schema(
        "Those that have been out longest.",
        &object_schema(
            "A node that is out of service on Dogwatch's account.",
            &["node", "phase"],
            [
                ("node", status_text_schema("The Node's name.")),
                (
                    "phase",
                    status_text_schema(
                        "draining, rebooting or returning; locked through the lock API; remediation while its machine is being remediated.",
                    ),
                ),
                (
                    "since",
                    status_time_schema("Since when it is in that phase."),
                ),
                ("reason", status_text_schema("Why it was to be rebooted.")),
            ],
        ),
    )
}

fn waiting_nodes_schema() -> Value {
    status_list_schema(
        "Those that wait longest.",
        &object_schema(
            "A node that waits to be rebooted.",
            &["node", "reason"],
            [
                ("node", status_text_schema("The Node's name.")),
                ("since", status_time_schema("Since when it waits.")),
                ("reason", status_text_schema("For what, in one word.")),
                ("message", status_text_schema("For what, in a sentence.")),
            ],
        ),
    )
}

fn conflicts_schema() -> Value {
    status_list_schema(
        "Policies that rule nodes which this one matches too.",
        &object_schema(
            "A policy that this one lost nodes to.",
            &["policy", "nodes", "example"],
            [
                ("policy", status_text_schema("The one that rules them.")),
                ("nodes", status_count_schema("How many nodes.")),
                ("example", status_text_schema("One of them.")),
            ],
        ),
    )
}

fn status_list_schema(description: &str, item: &Value) -> Value {
    list_schema(description, 0, STATUS_LIST_LIMIT, item)
}
