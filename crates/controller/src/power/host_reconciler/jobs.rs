//! The jobs that run beside a host's loop, and their results.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power::{
    BmcFault, BmcInfo, CommandAnswer, HostName, HostSnapshot, KubeletLeases, LevelReading,
    StatusWrite,
};
use tracing::warn;

use super::super::bmc_concurrency::{BmcCallPermit, Priority};
use super::super::bmc_connections::BmcSecretState;
use super::super::host_store::HostStoreError;
use super::super::services::PowerServices;
use super::super::write_limiter::WritePermit;
use super::write_permits::WritePermitSource;

pub(super) enum HostJobResult {
    Read {
        read: LevelReading,
        is_urgent: bool,
        epoch: u64,
    },
    /// A check of power control.
    Checked {
        level: usize,
        found: Result<BmcInfo, BmcFault>,
        asked: std::time::Duration,
        epoch: u64,
    },
    /// The kubelet Leases of the host's Nodes. `asked`: when the read began.
    SignsOfLife {
        answer: Result<KubeletLeases, String>,
        asked: std::time::Duration,
    },
    Commanded {
        /// The intention's id.
        id: String,
        how: Result<CommandAnswer, BmcFault>,
    },
    /// A permit for a command to this level.
    Placed { level: usize, place: BmcCallPermit },
    /// A permit for a reporting write.
    Turn(WritePermit),
    /// Secrets that were read for a check of a level, or because some were missing.
    Secrets {
        found: BTreeMap<String, BmcSecretState>,
        check: Option<usize>,
    },
    /// A write that was answered, or failed.
    Wrote {
        answer: Result<HostSnapshot, HostStoreError>,
        /// The id of the command that the write added to the host.
        intention: Option<String>,
        /// Events to send after a successful write.
        events: Vec<DecisionEvent>,
    },
    /// The host, read afresh. `asked`: when the read began.
    Fresh {
        answer: Result<Option<HostSnapshot>, String>,
        asked: std::time::Duration,
    },
    /// Events were sent, or could not be sent.
    Said,
}

pub(super) struct StatusWriteJob {
    pub(super) services: Arc<PowerServices>,
    pub(super) host: Arc<HostSnapshot>,
    pub(super) write: StatusWrite,
    pub(super) conditions: Vec<ConditionWrite>,
    pub(super) intention: Option<String>,
    pub(super) events: Vec<DecisionEvent>,
    pub(super) turn: WritePermitSource,
}

impl StatusWriteJob {
    pub(super) async fn run_write(self) -> HostJobResult {
        let services = &self.services;
        let answer = match acquire_write_permit(services, self.turn).await {
            Ok(_turn) => {
                let (now, hosts) = (services.clock.now(), &services.hosts);
                let write = hosts.write_status(&self.host, &self.write, &self.conditions, now);
                write.await
            }
            Err(error) => Err(error),
        };
        HostJobResult::Wrote {
            answer,
            intention: self.intention,
            events: self.events,
        }
    }
}

/// Waits for a write permit. If the lead is lost meanwhile, nothing is written.
async fn acquire_write_permit(
    services: &PowerServices,
    whose: WritePermitSource,
) -> Result<WritePermit, HostStoreError> {
    let turn = match whose {
        WritePermitSource::Acquired(turn) => turn,
        WritePermitSource::Urgent => services.write_limiter.acquire_urgent().await,
        WritePermitSource::AfterFailure => services.write_limiter.acquire_after_failure().await,
    };
    let leads = services.leadership.current_term().is_some();
    let lost = || HostStoreError::Failed("this process is no longer the leader".to_owned());
    leads.then_some(turn).ok_or_else(lost)
}

pub(super) async fn remove_annotations(
    services: Arc<PowerServices>,
    host: Arc<HostSnapshot>,
    names: Vec<String>,
    events: Vec<DecisionEvent>,
    whose: WritePermitSource,
) -> HostJobResult {
    let answer = match acquire_write_permit(&services, whose).await {
        Ok(_turn) => services.hosts.remove_annotations(&host, &names).await,
        Err(error) => Err(error),
    };
    HostJobResult::Wrote {
        answer,
        intention: None,
        events,
    }
}

pub(super) async fn read_fresh_host(services: Arc<PowerServices>, name: HostName) -> HostJobResult {
    let asked = services.clock.now().mono;
    HostJobResult::Fresh {
        answer: services.hosts.read_host(&name).await,
        asked,
    }
}

pub(super) async fn read_signs_of_life(
    services: Arc<PowerServices>,
    host: Arc<HostSnapshot>,
) -> HostJobResult {
    let asked = services.clock.now().mono;
    HostJobResult::SignsOfLife {
        answer: services.hosts.read_signs_of_life(&host).await,
        asked,
    }
}

pub(super) async fn report_events(
    services: Arc<PowerServices>,
    host: Arc<HostSnapshot>,
    events: Vec<DecisionEvent>,
) -> HostJobResult {
    let _turn = services.write_limiter.acquire_reporting().await;
    for event in &events {
        let now = services.clock.now();
        if let Err(error) = services.hosts.report_event(&host, event, now).await {
            warn!(host = %host.name, reason = event.reason, error, "failed to write an Event");
        }
    }
    HostJobResult::Said
}

pub(super) async fn read_secrets(
    services: Arc<PowerServices>,
    errand: Priority,
    namespace: String,
    names: Vec<String>,
    check: Option<usize>,
) -> HostJobResult {
    let _turn = services.concurrency.acquire_secret_permit(errand).await;
    let mut found = BTreeMap::new();
    for name in names {
        let secret = services.hosts.read_secret(&namespace, &name).await;
        found.insert(name, secret);
    }
    HostJobResult::Secrets { found, check }
}
