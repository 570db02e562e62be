//! A Prometheus that says what a script wants.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_coordinator::agent::Gatekeeper;
use dogwatch_core::policy::{Alerts, PrometheusGate, PrometheusQuery};
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// Where an alert stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alert {
    /// It waits for its time.
    Pending,
    /// It fires.
    Firing,
}

/// One for all nodes, whatever address they ask. Clones are one.
///
/// Of an alert filter only names and alternatives of names are understood (`A|B`); regular
/// expressions are the real client's, and tested there.
#[derive(Clone, Default)]
pub struct Prometheus(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    away: bool,
    alerts: BTreeMap<String, Alert>,
    found: BTreeMap<String, String>,
}

impl Prometheus {
    /// Answers nobody from now on, or everybody again.
    pub fn set_away(&self, away: bool) {
        self.state().away = away;
    }

    /// An alert stands so from now on; `None`: it is over.
    pub fn set_alert(&self, name: &str, alert: Option<Alert>) {
        match alert {
            Some(alert) => self.state().alerts.insert(name.to_owned(), alert),
            None => self.state().alerts.remove(name),
        };
    }

    /// What a query finds from now on; `None`: nothing.
    pub fn set_found(&self, query: &str, what: Option<&str>) {
        match what {
            Some(what) => self.state().found.insert(query.to_owned(), what.to_owned()),
            None => self.state().found.remove(query),
        };
    }

    fn answer(&self, gate: &PrometheusGate) -> Vec<String> {
        let state = self.state();
        if state.away {
            return vec![format!("{} does not answer: connection refused", gate.url)];
        }
        match &gate.ask {
            PrometheusQuery::Query(query) => {
                let found = state.found.get(query);
                let found = found.map(|what| format!("{query} finds {what}"));
                found.into_iter().collect()
            }
            PrometheusQuery::Alerts(filter) => blocking(&state.alerts, filter),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it is scripted")
    }
}

fn blocking(alerts: &BTreeMap<String, Alert>, filter: &Alerts) -> Vec<String> {
    let is_named = |names: &String, name: &str| names.split('|').any(|one| one == name);
    let counts = |(name, alert): &(&String, &Alert)| {
        let ignored = filter
            .ignore
            .as_ref()
            .is_some_and(|names| is_named(names, name));
        let meant = filter
            .only
            .as_ref()
            .is_none_or(|names| is_named(names, name));
        meant && !ignored && (!filter.firing_only || **alert == Alert::Firing)
    };
    let words = |(name, alert): (&String, &Alert)| match alert {
        Alert::Pending => format!("alert {name} is pending"),
        Alert::Firing => format!("alert {name} is firing"),
    };
    alerts.iter().filter(counts).map(words).collect()
}

impl Gatekeeper for Prometheus {
    fn prometheus<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        std::future::ready(self.answer(gate)).boxed()
    }
}
