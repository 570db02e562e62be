//! Whoever asks the gates that are neither pods nor the API server: the real one, or one of a test.

use dogwatch_core::policy::PrometheusGate;
use futures::future::{BoxFuture, FutureExt as _};

use crate::Prometheus;

/// Whoever can ask a Prometheus.
pub trait Gatekeeper: Send + Sync + 'static {
    /// What keeps this gate shut, in words; empty is open. What cannot be asked within a time limit
    /// well below 10 s is shut, with the reason.
    fn prometheus<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>>;
}

impl Gatekeeper for Prometheus {
    fn prometheus<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        self.shut(gate).boxed()
    }
}

/// Asks nobody: every gate of this kind is shut.
#[derive(Debug, Clone, Copy, Default)]
pub struct CannotAsk;

impl Gatekeeper for CannotAsk {
    fn prometheus<'a>(&'a self, gate: &'a PrometheusGate) -> BoxFuture<'a, Vec<String>> {
        let why = format!("there is nobody here who could ask {}", gate.url);
        Box::pin(std::future::ready(vec![why]))
    }
}
