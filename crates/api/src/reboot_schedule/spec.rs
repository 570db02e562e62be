//! `spec`, with unparsed texts: `dogwatch_k8s::schedule` converts it to the types that decisions
//! use.
//!
//! An unknown field is an error and is not ignored: it may be a reason not to reboot.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema::{self, pattern_rule, validation_rule};
use crate::selector::LabelSelector;

/// `spec` of a schedule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [
    validation_rule("has(self.at) != has(self.recurrence)", "write either at or recurrence"),
    validation_rule("has(self.nodes) || has(self.hosts)", "write nodes or hosts, or both"),
    validation_rule(
        "!(has(self.timeZone) && has(self.at) && self.at.matches(r'(Z|[+-][0-9:]+)$'))",
        "leave out timeZone, or the offset of at",
    ),
    validation_rule("!has(self.mode) || has(self.hosts)", "leave out mode: it is for hosts only; nodes shut themselves down"),
])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootScheduleSpec {
    /// Once, at this time: with its offset like 2026-12-24T03:00:00Z, or on the clock of timeZone
    /// like 2026-12-24T03:00.
    #[cfg_attr(test, schemars(length(max = 30), extend("x-kubernetes-validations" = [pattern_rule(
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$",
        "write a time like 2026-12-24T03:00:00Z, or 2026-12-24T03:00 on the clock of timeZone",
    )])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Repeatedly, from the creation of the schedule on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<RecurrenceSpec>,
    /// The time zone, as an IANA name like Europe/Berlin. Default: UTC.
    #[cfg_attr(test, schemars(schema_with = "schema::time_zone"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How late an occurrence may begin; a later one is recorded as missed and is not repeated.
    /// Default: 1h.
    #[cfg_attr(test, schemars(length(max = 32), extend("x-kubernetes-validations" = schema::min_time_limit(
        "1m",
        "write at least 1m: another replica may have to take over first",
    ))))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline: Option<String>,
    /// Whether the schedule is suspended. Occurrences in that time are not repeated later, except a
    /// time given by at. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The reason; it is written into each request and shown wherever the request waits.
    #[cfg_attr(test, schemars(length(max = 512), extend("x-default" = "scheduled reboot")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How hosts without a Node are switched off. soft: the operating system is asked to shut down
    /// first. hard: the power is cut at once. Default: soft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<HostPowerOffMode>,
    /// Nodes to reboot as planned, with lock, drain and policy. Only in Dogwatch's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<TargetsSpec>,
    /// BareMetalHosts in this namespace. A host that runs a Node (annotation dogwatch.dev/node) is
    /// rebooted as that Node; a host that nothing uses is rebooted by its power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<TargetsSpec>,
}

/// `spec.recurrence`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(
    extend("required" = ["start"]),
    extend("x-kubernetes-validations" = [schema::days_or_rrule()]),
))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecurrenceSpec {
    /// The days on which the window starts. Default: every day.
    #[cfg_attr(test, schemars(schema_with = "schema::weekday_set"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// At what time of day, like 03:00.
    #[cfg_attr(test, schemars(schema_with = "schema::start_time"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
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

/// How a host is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HostPowerOffMode {
    /// Ask its operating system to shut down first.
    Soft,
    /// Cut the power at once.
    Hard,
}

/// `spec.nodes` and `spec.hosts`: the objects with these names, and those that the selector
/// matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("minProperties" = 1)))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetsSpec {
    /// By name.
    #[cfg_attr(test, schemars(schema_with = "schema::object_names"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// By labels, read at the time of the occurrence; {} selects all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}
