//! Schema of `status`, without rules: the controller that writes it must never be refused.

use serde_json::Value;

use super::super::status::STATUS_LIST_LIMIT;
use super::words::{
    conditions_schema, list_schema, object_schema, observed_generation_schema, status_count_schema,
    status_text_schema, status_time_schema,
};

pub(super) fn status_schema() -> Value {
    object_schema(
        "What the controller observed. Each list has at most 10 entries; its true length is given beside it.",
        &[],
        [
            ("observedGeneration", observed_generation_schema()),
            (
                "nodes",
                status_count_schema("How many nodes the policy applies to."),
            ),
            (
                "ready",
                status_count_schema("How many of these nodes are Ready and schedulable."),
            ),
            (
                "blocked",
                status_count_schema(
                    "How many nodes wait because of this policy and not only for the lock.",
                ),
            ),
            (
                "outTotal",
                status_count_schema("How many nodes are unavailable because of Dogwatch."),
            ),
            ("out", out_nodes_schema()),
            (
                "waitingTotal",
                status_count_schema("How many nodes wait to be rebooted."),
            ),
            ("waiting", waiting_nodes_schema()),
            ("conflicts", conflicts_schema()),
            (
                "conditions",
                conditions_schema(
                    "Accepted: whether the policy is valid. Progressing: whether a node is \
                 unavailable because of Dogwatch. Blocked: whether nodes wait and none may begin.",
                    "Accepted, Progressing or Blocked.",
                ),
            ),
        ],
    )
}

fn out_nodes_schema() -> Value {
    status_list_schema(
        "The nodes that have been unavailable longest.",
        &object_schema(
            "A node that is unavailable because of Dogwatch.",
            &["node", "phase"],
            [
                ("node", status_text_schema("The Node's name.")),
                (
                    "phase",
                    status_text_schema(
                        "draining, rebooting or returning; locked while the lock API holds it; \
                         remediation while its machine is being remediated.",
                    ),
                ),
                (
                    "since",
                    status_time_schema("Since when it is in that phase."),
                ),
                (
                    "reason",
                    status_text_schema("Why the reboot was requested."),
                ),
            ],
        ),
    )
}

fn waiting_nodes_schema() -> Value {
    status_list_schema(
        "The nodes that have waited longest.",
        &object_schema(
            "A node that waits to be rebooted.",
            &["node", "reason"],
            [
                ("node", status_text_schema("The Node's name.")),
                ("since", status_time_schema("Since when it waits.")),
                (
                    "reason",
                    status_text_schema("What it waits for, in one word."),
                ),
                (
                    "message",
                    status_text_schema("What it waits for, in a sentence."),
                ),
            ],
        ),
    )
}

fn conflicts_schema() -> Value {
    status_list_schema(
        "Policies that apply, in place of this one, to nodes that this one matches too.",
        &object_schema(
            "A policy that overrides this one on some nodes.",
            &["policy", "nodes", "example"],
            [
                (
                    "policy",
                    status_text_schema("The policy that applies to them."),
                ),
                ("nodes", status_count_schema("How many nodes.")),
                ("example", status_text_schema("One of them.")),
            ],
        ),
    )
}

fn status_list_schema(description: &str, item: &Value) -> Value {
    list_schema(description, 0, STATUS_LIST_LIMIT, item)
}
