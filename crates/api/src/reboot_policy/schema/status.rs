//! `status`. No rules: the controller writes it, and must always be able to.

use serde_json::Value;

use super::super::status::STATUS_LIST_LIMIT;
use super::words::{conditions, count, generation, list, object, said, time};

pub(super) fn status() -> Value {
    object(
        "What the controller saw. Each list has at most 10 entries beside its true length.",
        &[],
        [
            ("observedGeneration", generation()),
            ("nodes", count("How many nodes it rules.")),
            (
                "ready",
                count("How many of them are Ready and schedulable."),
            ),
            (
                "blocked",
                count("How many of them wait, held back by this policy and not only by the lock."),
            ),
            (
                "outTotal",
                count("How many of them are out of service on Dogwatch's account."),
            ),
            ("out", out()),
            (
                "waitingTotal",
                count("How many of them wait to be rebooted."),
            ),
            ("waiting", waiting()),
            ("conflicts", conflicts()),
            (
                "conditions",
                conditions(
                    "Accepted: whether it is understood. Progressing: whether a node is out. \
                 Blocked: whether nodes wait and none may go.",
                    "Accepted, Progressing or Blocked.",
                ),
            ),
        ],
    )
}

fn out() -> Value {
    bounded(
        "Those that have been out longest.",
        &object(
            "A node that is out of service on Dogwatch's account.",
            &["node", "phase"],
            [
                ("node", said("The Node's name.")),
                (
                    "phase",
                    said(
                        "draining, rebooting or returning; locked through the lock API; remediation while its machine is being remediated.",
                    ),
                ),
                ("since", time("Since when it is in that phase.")),
                ("reason", said("Why it was to be rebooted.")),
            ],
        ),
    )
}

fn waiting() -> Value {
    bounded(
        "Those that wait longest.",
        &object(
            "A node that waits to be rebooted.",
            &["node", "reason"],
            [
                ("node", said("The Node's name.")),
                ("since", time("Since when it waits.")),
                ("reason", said("For what, in one word.")),
                ("message", said("For what, in a sentence.")),
            ],
        ),
    )
}

fn conflicts() -> Value {
    bounded(
        "Policies that rule nodes which this one matches too.",
        &object(
            "A policy that this one lost nodes to.",
            &["policy", "nodes", "example"],
            [
                ("policy", said("The one that rules them.")),
                ("nodes", count("How many nodes.")),
                ("example", said("One of them.")),
            ],
        ),
    )
}

fn bounded(description: &str, item: &Value) -> Value {
    list(description, 0, STATUS_LIST_LIMIT, item)
}
