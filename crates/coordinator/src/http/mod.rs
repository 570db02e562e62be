//! The state that `/metrics`, `/healthz` and `/readyz` show.
//!
//! **For:** the loop writes a [`CoordinatorHttpState`], and the health server reads it.
//! **May touch:** nothing.
//! **Promises:** `/healthz` is 503 with the reason when the loop is stuck.

use std::sync::{Arc, Mutex};

pub use dogwatch_runtime::http::{HealthServer, HttpError};

use dogwatch_runtime::mutex::lock_ignoring_poison;

use crate::health::LoopHeartbeat;
use crate::metrics::{MetricsView, render_metrics};

/// The published state of the loop. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct CoordinatorHttpState {
    pub heart: LoopHeartbeat,
    shown: Arc<Mutex<ServedState>>,
}

#[derive(Debug, Default)]
struct ServedState {
    metrics: MetricsView,
    unready: Option<String>,
}

impl CoordinatorHttpState {
    /// Not ready yet.
    pub fn new() -> Self {
        let board = Self::default();
        board.set_ready(Err("the coordinator has not read its Node yet".to_owned()));
        board
    }

    pub fn set_metrics(&self, metrics: MetricsView) {
        self.lock_state().metrics = metrics;
    }

    pub fn update_metrics(&self, change: impl FnOnce(&mut MetricsView)) {
        change(&mut self.lock_state().metrics);
    }

    /// `Err`: why `/readyz` is not ready.
    pub fn set_ready(&self, ready: Result<(), String>) {
        self.lock_state().unready = ready.err();
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, ServedState> {
        lock_ignoring_poison(&self.shown)
    }
}

impl dogwatch_runtime::http::HealthSource for CoordinatorHttpState {
    fn render_metrics(&self) -> String {
        render_metrics(&self.lock_state().metrics)
    }

    fn check_health(&self) -> Result<(), String> {
        self.heart
            .check_progress()
            .map_err(|stuck| stuck.to_string())
    }

    fn check_readiness(&self) -> Result<(), String> {
        self.lock_state().unready.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
