//! The policy as an object.

use dogwatch_api::reboot_policy::{
    self as api, Drain, MaxUnavailable, PodsGate, RebootPolicy, RebootPolicySpec,
};
use dogwatch_core::duration;
use dogwatch_core::kured::Plan;
use dogwatch_core::policy::window::WindowSpec;
use dogwatch_core::policy::{Gate, PrometheusGate, PrometheusQuery};
use dogwatch_core::reboot::OnTimeout;

/// The API server takes no longer reason.
const LONGEST_REASON: usize = 256;

/// Of a plan.
pub fn policy(name: &str, plan: &Plan) -> RebootPolicy {
    let gates: Vec<api::Gate> = plan.gates.iter().map(gate).collect();
    let windows: Vec<api::Window> = plan.windows.iter().map(window).collect();
    let spec = RebootPolicySpec {
        node_selector: (!plan.nodes.match_labels.is_empty()).then(|| plan.nodes.clone()),
        max_unavailable: Some(MaxUnavailable::Count(i64::from(plan.max_unavailable))),
        paused: Some(paused(plan)),
        windows: (!windows.is_empty()).then_some(windows),
        drain: drain(plan),
        gates: (!gates.is_empty()).then_some(gates),
        ..RebootPolicySpec::default()
    };
    RebootPolicy::new(name, spec)
}

/// Always: kured and Dogwatch do not see each other's lock, so that both must not act.
fn paused(plan: &Plan) -> api::Paused {
    let reason = match &plan.paused {
        Some(why) => format!("kured still runs; {why}"),
        None => "kured still runs".to_owned(),
    };
    api::Paused {
        reason: Some(reason.chars().take(LONGEST_REASON).collect()),
        until: None,
    }
}

fn drain(plan: &Plan) -> Option<Drain> {
    let drain = Drain {
        timeout: plan.drain_timeout.map(duration::format),
        on_timeout: plan.on_timeout.map(|on| match on {
            OnTimeout::Abort => api::OnTimeout::Abort,
            OnTimeout::Delete => api::OnTimeout::Delete,
            OnTimeout::Force => api::OnTimeout::Force,
        }),
        volume_detach_timeout: None,
        exclude: plan.exclude.clone(),
    };
    (drain != Drain::default()).then_some(drain)
}

fn window(window: &WindowSpec) -> api::Window {
    let dates = window.excluded_dates.clone();
    api::Window {
        days: window.days.clone(),
        start: window.start.clone(),
        end: window.end.clone(),
        time_zone: window.time_zone.clone(),
        rrule: window.rrule.clone(),
        excluded_dates: (!dates.is_empty()).then_some(dates),
    }
}

fn gate(gate: &Gate) -> api::Gate {
    match gate {
        Gate::Pods { selector } => api::Gate {
            pods: Some(PodsGate {
                selector: selector.clone(),
            }),
            prometheus: None,
        },
        Gate::Prometheus(PrometheusGate { url, ask }) => {
            let (query, alerts) = match ask {
                PrometheusQuery::Query(query) => (Some(query.clone()), None),
                PrometheusQuery::Alerts(alerts) => (
                    None,
                    Some(api::Alerts {
                        ignore: alerts.ignore.clone(),
                        only: alerts.only.clone(),
                        firing_only: alerts.firing_only.then_some(true),
                    }),
                ),
            };
            api::Gate {
                pods: None,
                prometheus: Some(api::PrometheusGate {
                    url: url.clone(),
                    query,
                    alerts,
                }),
            }
        }
    }
}
