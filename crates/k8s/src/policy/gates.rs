//! Parses `gates` of a policy.

use dogwatch_api::reboot_policy as api;
use dogwatch_core::policy::{BlockingAlerts, PolicyGate, PrometheusGate, PrometheusQuery};
use http::Uri;
use regex::RegexBuilder;

use super::fields::SpecFields;
use super::labels;

/// Size limit of a compiled expression in bytes; dogwatch-prometheus, which uses it, has the same
/// limit.
const REGEX_SIZE_LIMIT: usize = 1 << 20;

/// The valid gates. An invalid one is left out here and recorded as a problem, which blocks every
/// reboot.
pub(super) fn parse_gates(fields: &mut SpecFields) -> Vec<PolicyGate> {
    let gates: Vec<api::GateSpec> = fields.take_field("gates").unwrap_or_default();
    let mut known = Vec::new();
    for (index, gate) in gates.into_iter().enumerate() {
        match parse_gate(gate) {
            Ok(gate) => known.push(gate),
            Err((part, problem)) => fields.add_problem(&format!("gates[{index}]{part}"), problem),
        }
    }
    known
}

/// The field inside a gate, and what is wrong with it.
type GateProblem = (&'static str, String);

fn parse_gate(gate: api::GateSpec) -> Result<PolicyGate, GateProblem> {
    match (gate.pods, gate.prometheus) {
        (Some(pods), None) => match labels::nonempty_selector_problem(&pods.selector) {
            None => Ok(PolicyGate::Pods {
                selector: pods.selector,
            }),
            Some(problem) => Err((".pods.selector", problem)),
        },
        (None, Some(prometheus)) => parse_prometheus_gate(prometheus).map(PolicyGate::Prometheus),
        (Some(_), Some(_)) | (None, None) => {
            Err(("", "write either `pods` or `prometheus`".to_owned()))
        }
    }
}

fn parse_prometheus_gate(gate: api::PrometheusGateSpec) -> Result<PrometheusGate, GateProblem> {
    if let Some(problem) = url_problem(&gate.url) {
        return Err((".prometheus.url", problem.to_owned()));
    }
    let ask = match (gate.query, gate.alerts) {
        (Some(query), None) if !query.trim().is_empty() => PrometheusQuery::Query(query),
        (None, Some(alerts)) => PrometheusQuery::Alerts(parse_alerts_gate(alerts)?),
        (Some(_), None) => return Err((".prometheus.query", "it is empty".to_owned())),
        (Some(_), Some(_)) | (None, None) => {
            let text = "write either `query` or `alerts`";
            return Err((".prometheus", text.to_owned()));
        }
    };
    Ok(PrometheusGate { url: gate.url, ask })
}

fn parse_alerts_gate(alerts: api::AlertsSpec) -> Result<BlockingAlerts, GateProblem> {
    for (part, text) in [
        (".prometheus.alerts.ignore", &alerts.ignore),
        (".prometheus.alerts.only", &alerts.only),
    ] {
        if let Some(problem) = text.as_deref().and_then(regex_problem) {
            return Err((part, problem));
        }
    }
    Ok(BlockingAlerts {
        ignore: alerts.ignore,
        only: alerts.only,
        firing_only: alerts.firing_only.unwrap_or(false),
    })
}

/// Admission checks expressions with RE2. Gates use this crate, which supports slightly less.
fn regex_problem(text: &str) -> Option<String> {
    let compiled = RegexBuilder::new(text)
        .size_limit(REGEX_SIZE_LIMIT)
        .dfa_size_limit(REGEX_SIZE_LIMIT)
        .build();
    let error = compiled.err()?.to_string();
    // The crate's error draws the expression with an arrow below it; the reason is in the last
    // line.
    let reason = error.lines().last().unwrap_or_default();
    Some(format!(
        "{text:?} is not a regular expression: {}",
        reason.trim_start_matches("error: ")
    ))
}

/// The message never contains the address: it may contain a password.
fn url_problem(url: &str) -> Option<&'static str> {
    let Ok(uri) = url.parse::<Uri>() else {
        return Some("it is not an address: write it like https://prometheus.monitoring.svc:9090");
    };
    let scheme = uri.scheme_str().unwrap_or_default();
    let Some(authority) = uri
        .authority()
        .filter(|_| matches!(scheme, "http" | "https"))
    else {
        return Some("begin it with http:// or https://");
    };
    if authority.as_str().contains('@') {
        return Some(
            "it must not carry a user or password: give the coordinator --prometheus-token-file",
        );
    }
    if uri.query().is_some() || url.contains('#') {
        return Some("leave out '?' and '#', and the text after them");
    }
    None
}
