//! What `/metrics`, `/healthz` and `/readyz` show of the coordinator.
//!
//! **For:** the loop writes it on a [`Board`]; [`Server`] reads it there.
//! **May touch:** nothing.
//! **Promises:** `/healthz` is 503 with the reason when the loop is stuck.

use std::sync::{Arc, Mutex, PoisonError};

pub use dogwatch_process::http::{HttpError, Server};

use crate::health::Heart;
use crate::metrics::{MetricsView, render};

/// What the loop shows to the outside. Clones are the same board.
#[derive(Debug, Clone, Default)]
pub struct Board {
    /// The loop's heartbeat.
    pub heart: Heart,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Debug, Default)]
struct Shown {
    metrics: MetricsView,
    unready: Option<String>,
}

impl Board {
    /// A board for a loop that is not ready yet.
    pub fn new() -> Self {
        let board = Self::default();
        board.ready(Err("the coordinator has not seen its Node yet".to_owned()));
        board
    }

    /// What `/metrics` shows from now on.
    pub fn show(&self, metrics: MetricsView) {
        self.lock().metrics = metrics;
    }

    /// Changes what `/metrics` shows.
    pub fn update(&self, change: impl FnOnce(&mut MetricsView)) {
        change(&mut self.lock().metrics);
    }

    /// What `/readyz` says from now on: ready, or why not.
    pub fn ready(&self, ready: Result<(), String>) {
        self.lock().unready = ready.err();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl dogwatch_process::http::Shown for Board {
    fn metrics(&self) -> String {
        render(&self.lock().metrics)
    }

    fn health(&self) -> Result<(), String> {
        self.heart.check().map_err(|stuck| stuck.to_string())
    }

    fn ready(&self) -> Result<(), String> {
        self.lock().unready.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
