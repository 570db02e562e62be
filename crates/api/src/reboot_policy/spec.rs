//! `spec`, with unparsed texts: `dogwatch_k8s::policy` converts it to the types that decisions use.
//! The comments are what `kubectl explain` shows.
//!
//! An unknown field is an error and is not ignored: the API server keeps only fields of the
//! installed schema, so an unknown one is a rule that this program would break.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::drain_rules::only_the_last_rule_matches_all;
use super::drain_rules::{DrainRuleSpec, HonoredMark};
use super::return_spec::ReturnSpec;
use super::rollout::RolloutSpec;
#[cfg(test)]
use crate::schema::{self, pattern_rule, validation_rule};
use crate::selector::LabelSelector;

/// Every part is optional; where it is missing, the coordinator's flags apply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootPolicySpec {
    /// The nodes to which the policy applies. Default: every node. A control-plane node keeps its
    /// own group of one unless this selector names its role label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// If several policies match a node, the one with the highest priority applies; of equal ones,
    /// the first by name. Default: 0.
    #[cfg_attr(test, schemars(range(min = -1_000_000_000, max = 1_000_000_000)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How many nodes of the group may be unavailable at once, including nodes that are not Ready
    /// or were cordoned by others: a number, or a percentage of the group (rounded down, but at
    /// least one node). Default: the coordinator's --max-unavailable.
    #[cfg_attr(test, schemars(schema_with = "max_unavailable"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<MaxUnavailable>,
    /// A number of nodes beside maxUnavailable, if that is a percentage: the smaller of both rules.
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable_nodes: Option<i64>,
    /// A node label, like topology.kubernetes.io/zone. A node that is done lets nodes with the same
    /// value go first. This is an order, not a barrier: if a lock is free, a new node takes it,
    /// whatever its value. Default: none.
    #[cfg_attr(test, schemars(schema_with = "schema::label_key"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_key: Option<String>,
    /// In which steps a wave of reboots goes through the nodes: canaries, a soak, a ramp, a halt
    /// after failures. Needs the controller: nothing begins beyond what it wrote in the status.
    /// Default: maxUnavailable rules from the first node on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutSpec>,
    /// While it is set, no reboot begins and a drain under way is undone; a node that is already
    /// rebooting comes back into service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedSpec>,
    /// When reboots may happen: in any of these. Default: always. A reboot whose drain could
    /// outlast its window does not begin; a window that closes undoes a drain.
    #[cfg_attr(test, schemars(length(min = 1, max = 16)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<PolicyWindow>>,
    /// How long after the end of one reboot of a node its next reboot may begin. Default: 0s.
    #[cfg_attr(test, schemars(schema_with = "schema::duration_text"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_interval: Option<String>,
    /// How the node is emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainSpec>,
    /// The reboot itself. The command is set by the coordinator's flag, never by a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<RebootSpec>,
    /// What happens after the boot.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub on_return: Option<ReturnSpec>,
    /// Gates that must be open before a node's reboot begins, and again right before the command. A
    /// gate that cannot be checked is closed.
    #[cfg_attr(test, schemars(length(min = 1, max = 16)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateSpec>>,
}

/// A number of nodes (`2`), or a percentage of the group (`"10%"`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxUnavailable {
    /// A number of nodes.
    Count(i64),
    /// A percentage, with the sign.
    Percent(String),
}

#[cfg(test)]
fn max_unavailable(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let number_or_percentage = validation_rule(
        "type(self) == int ? (self >= 1 && self <= 10000) : self.matches(r'^([1-9][0-9]?|100)%$')",
        "write a number of nodes from 1 to 10000, or a percentage from \"1%\" to \"100%\"; to let \
         no node reboot, set paused",
    );
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 16,
        "x-kubernetes-validations": [number_or_percentage],
    })
}

/// `spec.paused`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PausedSpec {
    /// The reason; shown wherever the pause delays something.
    #[cfg_attr(test, schemars(length(max = 512), extend("x-default" = "no reason given")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the pause ends by itself, like 2026-12-24T18:00:00Z. Default: never; the pause ends
    /// when this field is removed.
    #[cfg_attr(test, schemars(length(max = 40), extend("x-kubernetes-validations" = [pattern_rule(
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        "write a time and its offset like 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00",
    )])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// A part of some days. A window belongs to the day on which it starts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(
    extend("minProperties" = 1),
    extend("x-kubernetes-validations" = [schema::days_or_rrule(), validation_rule(
        "has(self.start) == has(self.end)",
        "write both start and end, or neither for whole days",
    )]),
))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyWindow {
    /// The days on which the window starts. Default: every day.
    #[cfg_attr(test, schemars(schema_with = "schema::weekday_set"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// When it starts, like 22:00. Default, with end: the whole day.
    #[cfg_attr(test, schemars(schema_with = "schema::start_time"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When it ends, like 04:00, or 24:00. If the end is not later than the start, it is on the
    /// next day.
    #[cfg_attr(test, schemars(length(max = 5), extend("x-kubernetes-validations" = [pattern_rule(
        "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
        "write a time of day like 04:00",
    )])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The time zone, as an IANA name like Europe/Berlin. Default: UTC.
    #[cfg_attr(test, schemars(schema_with = "schema::time_zone"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The days on which the window starts, as a rule of RFC 5545 like FREQ=MONTHLY;BYDAY=2TU. A
    /// first line DTSTART:YYYYMMDD gives the day from which INTERVAL and COUNT count; without it
    /// INTERVAL counts from Monday, 2024-01-01.
    #[cfg_attr(test, schemars(schema_with = "schema::recurrence_rule"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// Days on which the window does not start: 2026-12-24, 12-25 (each year), or a span of either
    /// like 12-20..01-06.
    #[cfg_attr(test, schemars(schema_with = "schema::excluded_dates"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_dates: Option<Vec<String>>,
}

/// `spec.drain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainSpec {
    /// How long the drain may take. Default: the coordinator's --drain-timeout.
    #[cfg_attr(test, schemars(schema_with = "schema::time_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What happens after the timeout. abort: undo the drain, release the lock, queue again.
    /// delete: delete the remaining pods with their grace periods. force: reboot anyway. Default:
    /// the coordinator's --on-drain-timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnDrainTimeoutSpec>,
    /// How long the volumes of the drained pods may take to detach; after that the reboot
    /// continues, and an Event reports it. Default: the coordinator's --volume-detach-timeout.
    #[cfg_attr(test, schemars(schema_with = "schema::duration_text"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_detach_timeout: Option<String>,
    /// Pods that are not evicted; the reboot stops them. Default: none.
    #[cfg_attr(test, schemars(extend("x-kubernetes-validations" = [schema::names_a_label()])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<LabelSelector>,
    /// What happens to which pods; the first rule that matches a pod decides. Default: every pod is
    /// evicted. exclude comes before the rules.
    #[cfg_attr(test, schemars(
        length(min = 1, max = 16),
        extend("x-kubernetes-validations" = [only_the_last_rule_matches_all()]),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<DrainRuleSpec>>,
    /// Labels and annotations of other tools that count; what they say about a pod comes before
    /// exclude and rules. A pod that they protect is waited for until drain.timeout. With
    /// cluster.x-k8s.io/drain, the MachineDrainRules of the node's Machine count, too, where the
    /// cluster has them. Default: none.
    #[cfg_attr(test, schemars(
        length(min = 1, max = 3),
        extend("x-kubernetes-list-type" = "set"),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub honor: Option<Vec<HonoredMark>>,
}

/// What happens after a drain that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnDrainTimeoutSpec {
    /// Undo the drain, release the lock, wait again.
    Abort,
    /// Delete the pods that are left.
    Delete,
    /// Reboot all the same.
    Force,
}

/// `spec.reboot`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootSpec {
    /// How long to wait for a new boot after the command. Default: the coordinator's
    /// --reboot-timeout.
    #[cfg_attr(test, schemars(schema_with = "schema::time_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How often the command may be run in total. Default: the coordinator's --reboot-attempts.
    #[cfg_attr(test, schemars(range(min = 1, max = 10), extend("format" = "int32")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether the power controller takes over a reboot that does not happen. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<bool>,
    /// Whether a soft reboot of systemd, which keeps the kernel, counts as a reboot. It never counts
    /// as a power cycle. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_soft: Option<bool>,
    /// Whether a node has label k8saas.nvidia.com/ManagedByNVSentinel=false, which keeps NVSentinel
    /// from acting on it, from its drain until it is back. Default: false.
    #[serde(
        default,
        rename = "muteNVSentinel",
        skip_serializing_if = "Option::is_none"
    )]
    pub mute_nvsentinel: Option<bool>,
}

/// One check that must be open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [validation_rule(
    "has(self.pods) != has(self.prometheus)",
    "write either pods or prometheus",
)])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateSpec {
    /// Open while no pod on the node that is Pending or Running has these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsGateSpec>,
    /// Open while the answer is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusGateSpec>,
}

/// `spec.gates[].pods`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsGateSpec {
    /// Which pods, in any namespace.
    #[cfg_attr(test, schemars(extend("x-kubernetes-validations" = [schema::names_a_label()])))]
    pub selector: LabelSelector,
}

/// `spec.gates[].prometheus`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [validation_rule(
    "has(self.query) != has(self.alerts)",
    "write either query or alerts",
)])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrometheusGateSpec {
    /// The server's address, like https://prometheus.monitoring.svc:9090. Credentials are given to
    /// the coordinator: --prometheus-token-file.
    #[cfg_attr(test, schemars(length(max = 1024), extend("x-kubernetes-validations" = [
        pattern_rule(
            r"^https?://[^/?#\s]",
            "write an address that begins with http:// or https://, like \
             https://prometheus.monitoring.svc:9090",
        ),
        validation_rule(
            "!self.contains('@')",
            "leave user and password out of the address: give the coordinator --prometheus-token-file",
        ),
        validation_rule(
            r"!self.matches(r'[?#\s]')",
            "leave '?' and '#', the text after them, and blanks out of the address",
        ),
    ])))]
    pub url: String,
    /// A PromQL expression.
    #[cfg_attr(test, schemars(length(min = 1, max = 4096)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Open while no alert is active, except ignored ones; {} counts every alert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<AlertsSpec>,
}

/// `spec.gates[].prometheus.alerts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AlertsSpec {
    /// A regular expression. Alerts are ignored if any part of their name matches (kured's
    /// --alert-filter-regexp).
    #[cfg_attr(test, schemars(schema_with = "schema::regular_expression"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// A regular expression. Only alerts count of which any part of the name matches (kured's
    /// --alert-filter-match-only).
    #[cfg_attr(test, schemars(schema_with = "schema::regular_expression"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// Whether pending alerts are ignored (kured's --alert-firing-only). Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firing_only: Option<bool>,
}
