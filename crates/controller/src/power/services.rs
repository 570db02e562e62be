//! What every keeper of a host is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dogwatch_core::power::Config;
use dogwatch_process::clock::Clock;
use dogwatch_process::jitter::Jitter;

use super::lanes::Lanes;
use super::links::Connect;
use super::store::HostStore;
use super::tally::Tally;
use super::turns::Turns;
use crate::leader::Leadership;

/// One process' means. Clones are the same.
#[derive(Clone)]
pub(super) struct Services {
    pub(super) hosts: Arc<dyn HostStore>,
    pub(super) clock: Clock,
    pub(super) leadership: Leadership,
    pub(super) config: Config,
    pub(super) lanes: Lanes,
    pub(super) turns: Turns,
    pub(super) connect: Connect,
    pub(super) tally: Tally,
    pub(super) jitter: Jitter,
    pub(super) ids: Ids,
}

/// Ids of commands: `PROCESS/N`, none of them twice.
#[derive(Clone)]
pub(super) struct Ids {
    process: Arc<str>,
    next: Arc<AtomicU64>,
}

impl Ids {
    /// Of this process.
    pub(super) fn of(process: &str) -> Self {
        Self {
            process: process.into(),
            next: Arc::default(),
        }
    }

    /// The next one.
    pub(super) fn draw(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}/{number}", self.process)
    }
}
