//! A Prometheus whose answers a script sets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_coordinator::agent::GateChecker;
use dogwatch_core::policy::{BlockingAlerts, PrometheusGate, PrometheusQuery};
use futures::FutureExt as _;
use futures::future::BoxFuture;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertState {
    /// The alert's condition is true, but not yet for long enough.
    Pending,
    Firing,
}

/// One Prometheus for all nodes, at any address. Clones share it.
///
/// Alert filters may only be names and alternatives of names (`A|B`). Full regular expressions are
/// tested with the real client.
#[derive(Clone, Default)]
pub struct SimPrometheus(Arc<Mutex<PrometheusState>>);

#[derive(Default)]
struct PrometheusState {
    away: bool,
    alerts: BTreeMap<String, AlertState>,
    found: BTreeMap<String, String>,
}

impl SimPrometheus {
    /// Makes Prometheus unreachable, or reachable again.
    pub fn set_unreachable(&self, away: bool) {
        self.lock_state().away = away;
    }

    /// Sets the state of an alert; `None`: it is neither pending nor firing.
    pub fn set_alert(&self, name: &str, alert: Option<AlertState>) {
        match alert {
            Some(alert) => self.lock_state().alerts.insert(name.to_owned(), alert),
            None => self.lock_state().alerts.remove(name),
        };
    }

    /// Sets the result of a query; `None`: an empty result.
    pub fn set_query_result(&self, query: &str, what: Option<&str>) {
        match what {
            Some(what) => self
                .lock_state()
                .found
                .insert(query.to_owned(), what.to_owned()),
            None => self.lock_state().found.remove(query),
        };
    }

    fn blocking_findings(&self, gate: &PrometheusGate) -> Vec<String> {
        let state = self.lock_state();
        if state.away {
            return vec![format!("{} does not answer: connection refused", gate.url)];
        }
        match &gate.ask {
            PrometheusQuery::Query(query) => {
                let found = state.found.get(query);
                let found = found.map(|what| format!("{query} finds {what}"));
                found.into_iter().collect()
            }
            PrometheusQuery::Alerts(filter) => blocking_alerts(&state.alerts, filter),
        }
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, PrometheusState> {
        self.0.lock().expect("nothing panics while it is scripted")
    }
}

fn blocking_alerts(alerts: &BTreeMap<String, AlertState>, filter: &BlockingAlerts) -> Vec<String> {
    let is_named = |names: &String, name: &str| names.split('|').any(|one| one == name);
    let counts = |(name, alert): &(&String, &AlertState)| {
        let ignored = filter
            .ignore
            .as_ref()
            .is_some_and(|names| is_named(names, name));
        let meant = filter
            .only
            .as_ref()
            .is_none_or(|names| is_named(names, name));
        meant && !ignored && (!filter.firing_only || **alert == AlertState::Firing)
    };
    let words = |(name, alert): (&String, &AlertState)| match alert {
        AlertState::Pending => format!("alert {name} is pending"),
        AlertState::Firing => format!("alert {name} is firing"),
    };
    alerts.iter().filter(counts).map(words).collect()
}

impl GateChecker for SimPrometheus {
    fn list_shut_reasons<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        std::future::ready(self.blocking_findings(gate)).boxed()
    }
}
