//! Asks the Prometheus of a gate, for hosts of the lock API that a policy rules.

use dogwatch_core::policy::PrometheusGate;
use dogwatch_prometheus::Prometheus;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::lock::engine::Gatekeeper;

impl Gatekeeper for Prometheus {
    fn prometheus<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        self.shut(gate).boxed()
    }
}
