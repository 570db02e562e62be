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
        "What a person wrote. Changes hold at once, also for reboots under way.",
        &[],
        [
            (
                "nodeSelector",
                selector_schema(
                    "Which nodes it rules. Default: every node. A control-plane node keeps its group \
                     of one unless this names its role label.",
                ),
            ),
            ("priority", priority_schema()),
            ("maxUnavailable", max_unavailable_schema()),
            (
                "topologyKey",
                label_key_schema(
                    "A node label, like topology.kubernetes.io/zone: a node that is done calls nodes with \
                     its own value first. An order, not a barrier: a node that comes while a lock is free takes \
                     it, whatever its value. Default: none.",
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
                    "How long after the end of one reboot of a node its next may begin. Default: 0s.",
                ),
            ),
            ("drain", drain_schema()),
            ("reboot", reboot_schema()),
            ("return", return_schema()),
            (
                "gates",
                list_schema(
                    "What must be so before a node's reboot begins, and again right before the \
                     command. What cannot be asked is shut.",
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
        "description": "Of several policies that match a node the one with the highest priority \
                        rules it; of equals the first by name. Default: 0.",
    })
}

fn max_unavailable_schema() -> Value {
    with_rules(
        json!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 16,
            "description": "How many nodes of the group may be out of service at once, those that \
                            are not Ready or cordoned by others included: a number, or a percentage \
                            of the group (rounded down, but at least one node). Default: the \
                            coordinator's --max-unavailable.",
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
        "When the pause ends by itself, like 2026-12-24T18:00:00Z. Default: when it is taken out.",
        40,
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        "write a time and its offset like 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00",
    );
    object_schema(
        "While it is there nothing begins, and a drain under way is undone; a node that reboots \
         comes back.",
        &[],
        [
            (
                "reason",
                with_keyword(
                    text_schema("Why; shown wherever the pause holds something up.", 512),
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
                    "How long it may take. Default: the coordinator's --drain-timeout.",
                ),
            ),
            (
                "onTimeout",
                enum_schema(
                    "What then. abort: undo it, give the lock back, queue again. delete: delete what \
                     is left, with its grace. force: reboot all the same. Default: the coordinator's \
                     --on-drain-timeout.",
                    &["abort", "delete", "force"],
                ),
            ),
            (
                "volumeDetachTimeout",
                duration_schema(
                    "How long the volumes of the drained pods may take to detach; then the reboot goes on, \
                     and it is said. Default: the coordinator's --volume-detach-timeout.",
                ),
            ),
            (
                "exclude",
                nonempty_selector_schema(
                    "Pods that stay, and are stopped by the reboot. Default: none.",
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
        "description": "How often the command may be run in all. Default: the coordinator's \
                        --reboot-attempts.",
    });
    let escalate = json!({
        "type": "boolean",
        "description": "Whether a reboot that does not happen is handed over to the power \
                        controller. Default: false.",
    });
    object_schema(
        "The reboot itself. The command is the coordinator's flag and never a policy's.",
        &[],
        [
            (
                "timeout",
                time_limit_schema(
                    "How long after the command a new boot is waited for. Default: the \
                     coordinator's --reboot-timeout.",
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
                    "What must be so before the lock goes to the next one; an empty list is nothing. \
                     Default: all of them.",
                    0,
                    3,
                    &enum_schema(
                        "DaemonSetPods: the node's DaemonSet pods are ready. DisruptionBudgets: no \
                         budget that covered a drained pod is short. Volumes: the node's volumes are \
                         attached.",
                        &["DaemonSetPods", "DisruptionBudgets", "Volumes"],
                    ),
                ),
            ),
            (
                "gateTimeout",
                time_limit_schema("How long that may take. Default: 15m."),
            ),
            (
                "onGateTimeout",
                enum_schema(
                    "What then. keep: the lock stays, and it is said loudly. release: it goes. \
                     Default: keep.",
                    &["keep", "release"],
                ),
            ),
        ],
    )
}
