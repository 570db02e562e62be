//! The services that all host reconcilers of one process share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dogwatch_core::power::PowerConfig;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::jitter::JitterSource;

use super::bmc_concurrency::BmcConcurrency;
use super::bmc_connections::ConnectDriver;
use super::host_store::HostStore;
use super::power_metrics::PowerMetrics;
use super::write_limiter::WriteLimiter;
use crate::decision_log::ControllerDecisionLog;
use crate::leader::LeadershipHandle;

#[derive(Clone)]
pub(super) struct PowerServices {
    pub(super) hosts: Arc<dyn HostStore>,
    pub(super) clock: ProcessClock,
    pub(super) leadership: LeadershipHandle,
    pub(super) config: PowerConfig,
    pub(super) concurrency: BmcConcurrency,
    pub(super) write_limiter: WriteLimiter,
    pub(super) connect: ConnectDriver,
    pub(super) metrics: PowerMetrics,
    pub(super) jitter: JitterSource,
    pub(super) ids: CommandIds,
    pub(super) decision_log: ControllerDecisionLog,
}

/// Makes command ids: `PROCESS/N`, each of them once.
#[derive(Clone)]
pub(super) struct CommandIds {
    process: Arc<str>,
    next: Arc<AtomicU64>,
}

impl CommandIds {
    pub(super) fn of(process: &str) -> Self {
        Self {
            process: process.into(),
            next: Arc::default(),
        }
    }

    pub(super) fn next_id(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}/{number}", self.process)
    }
}
