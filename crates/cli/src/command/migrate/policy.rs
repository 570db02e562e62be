//! Builds the RebootPolicy object.

use dogwatch_api::reboot_policy::{
    self as api, DrainSpec, MaxUnavailable, PodsGateSpec, RebootPolicy, RebootPolicySpec,
};
use dogwatch_core::duration;
use dogwatch_core::kured::KuredTranslation;
use dogwatch_core::policy::window::WindowSpec;
use dogwatch_core::policy::{PolicyGate, PrometheusGate, PrometheusQuery};
use dogwatch_core::reboot::DrainTimeoutAction;

/// The API server rejects longer reasons.
const MAX_REASON_CHARS: usize = 256;

pub fn build_policy(name: &str, plan: &KuredTranslation) -> RebootPolicy {
    let gates: Vec<api::GateSpec> = plan.gates.iter().map(build_gate).collect();
    let windows: Vec<api::PolicyWindow> = plan.windows.iter().map(build_window).collect();
    let spec = RebootPolicySpec {
        node_selector: (!plan.nodes.match_labels.is_empty()).then(|| plan.nodes.clone()),
        max_unavailable: Some(MaxUnavailable::Count(i64::from(plan.max_unavailable))),
        paused: Some(build_paused(plan)),
        windows: (!windows.is_empty()).then_some(windows),
        drain: build_drain(plan),
        gates: (!gates.is_empty()).then_some(gates),
        ..RebootPolicySpec::default()
    };
    RebootPolicy::new(name, spec)
}

/// Always paused: kured and Dogwatch do not see each other's lock, so only one of them may act.
fn build_paused(plan: &KuredTranslation) -> api::PausedSpec {
    let reason = match &plan.paused {
        Some(why) => format!("kured is still running; {why}"),
        None => "kured is still running".to_owned(),
    };
    api::PausedSpec {
        reason: Some(reason.chars().take(MAX_REASON_CHARS).collect()),
        until: None,
    }
}

fn build_drain(plan: &KuredTranslation) -> Option<DrainSpec> {
    let drain = DrainSpec {
        timeout: plan.drain_timeout.map(duration::format_duration),
        on_timeout: plan.on_timeout.map(|on| match on {
            DrainTimeoutAction::Abort => api::OnDrainTimeoutSpec::Abort,
            DrainTimeoutAction::Delete => api::OnDrainTimeoutSpec::Delete,
            DrainTimeoutAction::Force => api::OnDrainTimeoutSpec::Force,
        }),
        volume_detach_timeout: None,
        exclude: plan.exclude.clone(),
        rules: None,
        honor: None,
    };
    (drain != DrainSpec::default()).then_some(drain)
}

fn build_window(window: &WindowSpec) -> api::PolicyWindow {
    let dates = window.excluded_dates.clone();
    api::PolicyWindow {
        days: window.days.clone(),
        start: window.start.clone(),
        end: window.end.clone(),
        time_zone: window.time_zone.clone(),
        rrule: window.rrule.clone(),
        excluded_dates: (!dates.is_empty()).then_some(dates),
    }
}

fn build_gate(gate: &PolicyGate) -> api::GateSpec {
    match gate {
        PolicyGate::Pods { selector } => api::GateSpec {
            pods: Some(PodsGateSpec {
                selector: selector.clone(),
            }),
            prometheus: None,
        },
        PolicyGate::Prometheus(PrometheusGate { url, ask }) => {
            let (query, alerts) = match ask {
                PrometheusQuery::Query(query) => (Some(query.clone()), None),
                PrometheusQuery::Alerts(alerts) => (
                    None,
                    Some(api::AlertsSpec {
                        ignore: alerts.ignore.clone(),
                        only: alerts.only.clone(),
                        firing_only: alerts.firing_only.then_some(true),
                    }),
                ),
            };
            api::GateSpec {
                pods: None,
                prometheus: Some(api::PrometheusGateSpec {
                    url: url.clone(),
                    query,
                    alerts,
                }),
            }
        }
    }
}
