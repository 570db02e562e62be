//! Schema of `spec`.

use serde_json::{Value, json};

use super::gate::gate_schema;
use super::selector::{label_key_schema, nonempty_selector_schema, selector_schema};
use super::window::window_schema;
use super::words::{
    cel_rule, duration_schema, enum_schema, list_schema, object_schema, pattern_schema, set_schema,
    text_schema, time_limit_schema, with_keyword, with_rules,
};

const MAX_WINDOWS_OR_GATES: usize = 16;

pub(super) fn spec_schema() -> Value {
    object_schema(
        "The desired rules. Changes apply at once, also to reboots under way.",
        &[],
        [
            (
                "nodeSelector",
                selector_schema(
                    "The nodes to which the policy applies. Default: every node. A control-plane \
                     node keeps its own group of one unless this selector names its role label.",
                ),
            ),
            ("priority", priority_schema()),
            ("maxUnavailable", max_unavailable_schema()),
            (
                "topologyKey",
                label_key_schema(
                    "A node label, like topology.kubernetes.io/zone. A node that is done lets \
                     nodes with the same value go first. This is an order, not a barrier: if a \
                     lock is free, a new node takes it, whatever its value. Default: none.",
                ),
            ),
            ("paused", paused_schema()),
            (
                "windows",
                list_schema(
                    "When reboots may happen: in any of these. Default: always. A reboot whose drain \
                     could outlast its window does not begin; a window that closes undoes a drain.",
                    1,
                    MAX_WINDOWS_OR_GATES,
                    &window_schema(),
                ),
            ),
            (
                "minInterval",
                duration_schema(
                    "How long after the end of one reboot of a node its next reboot may begin. Default: 0s.",
                ),
            ),
            ("drain", drain_schema()),
            ("reboot", reboot_schema()),
            ("return", return_schema()),
            (
                "gates",
                list_schema(
                    "Gates that must be open before a node's reboot begins, and again right \
                     before the command. A gate that cannot be checked is closed.",
                    1,
                    MAX_WINDOWS_OR_GATES,
                    &gate_schema(),
                ),
            ),
        ],
    )
}

fn priority_schema() -> Value {
    json!({
        "type": "integer",
        "format": "int32",
        "minimum": -1_000_000_000,
        "maximum": 1_000_000_000,
        "description": "If several policies match a node, the one with the highest priority \
                        applies; of equal ones, the first by name. Default: 0.",
    })
}

fn max_unavailable_schema() -> Value {
    with_rules(
        json!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 16,
            "description": "How many nodes of the group may be unavailable at once, including nodes that are not Ready \
                            or were cordoned by others: a number, or a percentage of the group (rounded down, but at \
                            least one node). Default: the coordinator's --max-unavailable.",
        }),
        [cel_rule(
            "type(self) == int ? (self >= 1 && self <= 10000) : self.matches(r'^([1-9][0-9]?|100)%$')",
            "write a number of nodes from 1 to 10000, or a percentage from \"1%\" to \"100%\"; to let \
             no node reboot, set paused",
        )],
    )
}

fn paused_schema() -> Value {
    let until = pattern_schema(
        "When the pause ends by itself, like 2026-12-24T18:00:00Z. Default: never; the pause ends \
         when this field is removed.",
        40,
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        "write a time and its offset like 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00",
    );
    object_schema(
        "While it is set, no reboot begins and a drain under way is undone; a node that is \
         already rebooting comes back into service.",
        &[],
        [
            (
                "reason",
                with_keyword(
                    text_schema(
                        "The reason; shown wherever the pause delays something.",
                        512,
                    ),
                    "default",
                    json!("no reason given"),
                ),
            ),
            ("until", until),
        ],
    )
}

fn drain_schema() -> Value {
    object_schema(
        "How the node is emptied.",
        &[],
        [
            (
                "timeout",
                time_limit_schema(
                    "How long the drain may take. Default: the coordinator's --drain-timeout.",
                ),
            ),
            (
                "onTimeout",
                enum_schema(
                    "What happens after the timeout. abort: undo the drain, release the lock, \
                     queue again. delete: delete the remaining pods with their grace periods. \
                     force: reboot anyway. Default: the coordinator's --on-drain-timeout.",
                    &["abort", "delete", "force"],
                ),
            ),
            (
                "volumeDetachTimeout",
                duration_schema(
                    "How long the volumes of the drained pods may take to detach; after that the reboot continues, and \
                     an Event reports it. Default: the coordinator's --volume-detach-timeout.",
                ),
            ),
            (
                "exclude",
                nonempty_selector_schema(
                    "Pods that are not evicted; the reboot stops them. Default: none.",
                ),
            ),
        ],
    )
}

fn reboot_schema() -> Value {
    let attempts = json!({
        "type": "integer",
        "format": "int32",
        "minimum": 1,
        "maximum": 10,
        "description": "How often the command may be run in total. Default: the coordinator's --reboot-attempts.",
    });
    let escalate = json!({
        "type": "boolean",
        "description": "Whether the power controller takes over a reboot that does not happen. Default: false.",
    });
    object_schema(
        "The reboot itself. The command is set by the coordinator's flag, never by a policy.",
        &[],
        [
            (
                "timeout",
                time_limit_schema(
                    "How long to wait for a new boot after the command. Default: the coordinator's --reboot-timeout.",
                ),
            ),
            ("attempts", attempts),
            ("escalate", escalate),
        ],
    )
}

fn return_schema() -> Value {
    object_schema(
        "What happens after the boot.",
        &[],
        [
            (
                "settle",
                duration_schema(
                    "How long the Node must be Ready before it is uncordoned. Default: the \
                     coordinator's --settle.",
                ),
            ),
            (
                "gates",
                set_schema(
                    "Return gates that must be open before the lock is released; an empty list \
                     means none. Default: all of them.",
                    0,
                    3,
                    &enum_schema(
                        "DaemonSetPods: the node's DaemonSet pods are ready. DisruptionBudgets: no PodDisruptionBudget \
                         that covered a drained pod lacks healthy pods. Volumes: the node's volumes are attached.",
                        &["DaemonSetPods", "DisruptionBudgets", "Volumes"],
                    ),
                ),
            ),
            (
                "gateTimeout",
                time_limit_schema("How long the return may take. Default: 15m."),
            ),
            (
                "onGateTimeout",
                enum_schema(
                    "What happens after the timeout. keep: the lock stays held, and a Warning \
                     Event reports it. release: the lock is released. Default: keep.",
                    &["keep", "release"],
                ),
            ),
        ],
    )
}
