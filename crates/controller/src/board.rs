//! What the controller shows of itself to Prometheus and the kubelet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dogwatch_process::health::Heart;
use dogwatch_process::http::Shown;

use crate::metrics::Metrics;

/// Where components say how they are. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Board {
    metrics: Metrics,
    said: Arc<Mutex<Said>>,
}

#[derive(Debug, Default)]
struct Said {
    hearts: BTreeMap<&'static str, Heart>,
    unready: BTreeMap<&'static str, String>,
}

impl Board {
    /// A board that shows these metrics.
    pub fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            said: Arc::default(),
        }
    }

    /// The heart of one loop: `/healthz` says when it is stuck. It counts as begun now.
    pub fn heart(&self, part: &'static str) -> Heart {
        let mut said = self.lock();
        said.hearts.entry(part).or_default().clone()
    }

    /// Whether one part is ready, or why not; `/readyz` says so once all are that ever said they
    /// were not.
    pub fn ready(&self, part: &'static str, ready: Result<(), String>) {
        let mut said = self.lock();
        match ready {
            Ok(()) => said.unready.remove(part),
            Err(why) => said.unready.insert(part, why),
        };
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown for Board {
    fn metrics(&self) -> String {
        self.metrics.render()
    }

    fn health(&self) -> Result<(), String> {
        self.lock()
            .hearts
            .iter()
            .try_for_each(|(part, heart)| heart.check().map_err(|stuck| format!("{part}: {stuck}")))
    }

    fn ready(&self) -> Result<(), String> {
        let said = self.lock();
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
        let board = Board::default();
        board.ready("watches", Err("no list yet".into()));
        board.ready("lock", Err("no socket".into()));
        let why = Shown::ready(&board).unwrap_err();
        assert_eq!(why, "lock: no socket; watches: no list yet");
        board.ready("watches", Ok(()));
        board.ready("lock", Ok(()));
        assert_eq!(Shown::ready(&board), Ok(()));
    }
}
