//! `gates` of a policy.

use dogwatch_api::reboot_policy as api;
use dogwatch_core::policy::{Alerts, Gate, PrometheusGate, PrometheusQuery};
use http::Uri;
use regex::RegexBuilder;

use super::fields::Fields;
use super::labels;

/// What a compiled expression may take, in bytes; the same where it is used (dogwatch-prometheus).
const LARGEST_REGEX: usize = 1 << 20;

/// Those that can be understood. One that cannot is a problem, which keeps everything from
/// beginning: that it is missing here lets nothing through.
pub(super) fn read(fields: &mut Fields) -> Vec<Gate> {
    let gates: Vec<api::Gate> = fields.take("gates").unwrap_or_default();
    let mut known = Vec::new();
    for (index, gate) in gates.into_iter().enumerate() {
        match understood(gate) {
            Ok(gate) => known.push(gate),
            Err((part, problem)) => fields.problem(&format!("gates[{index}]{part}"), problem),
        }
    }
    known
}

/// Where in a gate, and what.
type Problem = (&'static str, String);

fn understood(gate: api::Gate) -> Result<Gate, Problem> {
    match (gate.pods, gate.prometheus) {
        (Some(pods), None) => match labels::some_problem(&pods.selector) {
            None => Ok(Gate::Pods {
                selector: pods.selector,
            }),
            Some(problem) => Err((".pods.selector", problem)),
        },
        (None, Some(prometheus)) => prometheus_gate(prometheus).map(Gate::Prometheus),
        (Some(_), Some(_)) | (None, None) => {
            Err(("", "write either `pods` or `prometheus`".to_owned()))
        }
    }
}

fn prometheus_gate(gate: api::PrometheusGate) -> Result<PrometheusGate, Problem> {
    if let Some(problem) = url_problem(&gate.url) {
        return Err((".prometheus.url", problem.to_owned()));
    }
    let ask = match (gate.query, gate.alerts) {
        (Some(query), None) if !query.trim().is_empty() => PrometheusQuery::Query(query),
        (None, Some(alerts)) => PrometheusQuery::Alerts(alerts_gate(alerts)?),
        (Some(_), None) => return Err((".prometheus.query", "it is empty".to_owned())),
        (Some(_), Some(_)) | (None, None) => {
            let text = "write either `query` or `alerts`";
            return Err((".prometheus", text.to_owned()));
        }
    };
    Ok(PrometheusGate { url: gate.url, ask })
}

fn alerts_gate(alerts: api::Alerts) -> Result<Alerts, Problem> {
    for (part, text) in [
        (".prometheus.alerts.ignore", &alerts.ignore),
        (".prometheus.alerts.only", &alerts.only),
    ] {
        if let Some(problem) = text.as_deref().and_then(regex_problem) {
            return Err((part, problem));
        }
    }
    Ok(Alerts {
        ignore: alerts.ignore,
        only: alerts.only,
        firing_only: alerts.firing_only.unwrap_or(false),
    })
}

/// Admission reads expressions by RE2; what asks Prometheus by this crate, which knows a little less.
fn regex_problem(text: &str) -> Option<String> {
    let compiled = RegexBuilder::new(text)
        .size_limit(LARGEST_REGEX)
        .dfa_size_limit(LARGEST_REGEX)
        .build();
    let error = compiled.err()?.to_string();
    // The crate draws the expression with an arrow below it; the reason is the last line.
    let reason = error.lines().last().unwrap_or_default();
    Some(format!(
        "{text:?} is no regular expression: {}",
        reason.trim_start_matches("error: ")
    ))
}

/// The address is never quoted: there may be a password in it.
fn url_problem(url: &str) -> Option<&'static str> {
    let Ok(uri) = url.parse::<Uri>() else {
        return Some("it is no address: write it like https://prometheus.monitoring.svc:9090");
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
        return Some("leave out what follows '?' or '#'");
    }
    None
}
