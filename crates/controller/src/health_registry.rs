//! Collects the components' health for `/healthz`, `/readyz` and `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_runtime::health::LoopHeartbeat;
use dogwatch_runtime::http::HealthSource;
use dogwatch_runtime::mutex::lock_ignoring_poison;

use crate::metrics::MetricsRegistry;

#[derive(Debug, Clone, Default)]
pub struct HealthRegistry {
    metrics: MetricsRegistry,
    said: Arc<Mutex<ComponentHealth>>,
}

#[derive(Debug, Default)]
struct ComponentHealth {
    hearts: BTreeMap<&'static str, LoopHeartbeat>,
    unready: BTreeMap<&'static str, String>,
}

impl HealthRegistry {
    pub fn new(metrics: MetricsRegistry) -> Self {
        Self {
            metrics,
            said: Arc::default(),
        }
    }

    /// The heartbeat of one loop, created at the first call: `/healthz` fails when it is stuck.
    pub fn heartbeat_of(&self, part: &'static str) -> LoopHeartbeat {
        let mut said = self.lock_components();
        said.hearts.entry(part).or_default().clone()
    }

    /// Reports whether one part is ready, or why not. `/readyz` succeeds when no part is unready.
    pub fn set_readiness(&self, part: &'static str, ready: Result<(), String>) {
        let mut said = self.lock_components();
        match ready {
            Ok(()) => said.unready.remove(part),
            Err(why) => said.unready.insert(part, why),
        };
    }

    fn lock_components(&self) -> MutexGuard<'_, ComponentHealth> {
        lock_ignoring_poison(&self.said)
    }
}

impl HealthSource for HealthRegistry {
    fn render_metrics(&self) -> String {
        self.metrics.render_page()
    }

    fn check_health(&self) -> Result<(), String> {
        self.lock_components()
            .hearts
            .iter()
            .try_for_each(|(part, heart)| {
                heart
                    .check_progress()
                    .map_err(|stuck| format!("{part}: {stuck}"))
            })
    }

    fn check_readiness(&self) -> Result<(), String> {
        let said = self.lock_components();
        let whys = said.unready.iter();
        let whys: Vec<String> = whys.map(|(part, why)| format!("{part}: {why}")).collect();
        if whys.is_empty() {
            return Ok(());
        }
        Err(whys.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_said_when_every_part_is() {
        let board = HealthRegistry::default();
        board.set_readiness("watches", Err("no list yet".into()));
        board.set_readiness("lock", Err("no socket".into()));
        let why = HealthSource::check_readiness(&board).unwrap_err();
        assert_eq!(why, "lock: no socket; watches: no list yet");
        board.set_readiness("watches", Ok(()));
        board.set_readiness("lock", Ok(()));
        assert_eq!(HealthSource::check_readiness(&board), Ok(()));
    }
}
