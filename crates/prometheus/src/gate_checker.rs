//! The interface to Prometheus gates: the real client, or one of a test.

use dogwatch_core::policy::PrometheusGate;
use futures::future::{BoxFuture, FutureExt as _};

use crate::PrometheusClient;

pub trait GateChecker: Send + Sync + 'static {
    /// The reasons that keep this gate shut; empty means open. A gate that cannot be asked within a
    /// time limit well below 10 s is shut, with the reason.
    fn list_shut_reasons<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>>;
}

impl GateChecker for PrometheusClient {
    fn list_shut_reasons<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        self.shut_reasons_of(gate).boxed()
    }
}

/// Asks nobody: every gate of this kind is shut.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGateChecker;

impl GateChecker for NoGateChecker {
    fn list_shut_reasons<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        let why = format!("this program has no Prometheus client to ask {}", gate.url);
        Box::pin(std::future::ready(vec![why]))
    }
}
