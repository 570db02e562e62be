//! Applies the results of finished jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::power::{
    BmcFault, BmcInfo, CommandAnswer, FaultClass, HostSnapshot, KubeletLeases, LevelAccess,
    LevelReading, PowerReason,
};
use futures::FutureExt as _;
use tracing::{error, info, warn};

use super::super::bmc_connections::BmcSecretState;
use super::super::host_store::HostStoreError;
use super::jobs::{self, HostJobResult};
use super::write_permits::ReportingPermitState;
use super::{HOST_RETRY_PAUSES, HostReconciler, is_newer_host};

impl HostReconciler {
    /// Applies a result; the loop decides anew afterwards.
    pub(super) fn handle_job_result(&mut self, done: HostJobResult) {
        self.jitter = self.services.jitter.next_fraction();
        match done {
            HostJobResult::Read {
                read,
                is_urgent,
                epoch,
            } => self.on_reading(read, is_urgent, epoch),
            HostJobResult::Checked {
                level,
                found,
                asked,
                epoch,
            } => {
                self.under_way.checks.remove(&level);
                self.reread_refused_password(found.as_ref().err());
                if epoch == self.epoch {
                    self.on_check_result(level, found, asked);
                }
            }
            HostJobResult::SignsOfLife { answer, asked } => self.on_signs_of_life(answer, asked),
            HostJobResult::Commanded { id, how } => self.on_command_result(&id, how),
            HostJobResult::Placed { level, place } => {
                self.under_way.place = None;
                self.place = Some((level, place));
            }
            HostJobResult::Turn(turn) => {
                self.reporting_permit = ReportingPermitState::Acquired(turn);
            }
            HostJobResult::Secrets { found, check } => self.on_secrets_read(&found, check),
            HostJobResult::Wrote {
                answer,
                intention,
                events,
            } => match answer {
                Ok(host) => self.on_write_done(host, intention, events),
                Err(error) => self.on_write_failed(&error),
            },
            HostJobResult::Fresh { answer, asked } => self.on_fresh_read(answer, asked),
            HostJobResult::Said => {}
        }
    }

    fn on_reading(&mut self, read: LevelReading, is_urgent: bool, epoch: u64) {
        let under_way = if is_urgent {
            &mut self.under_way.urgent
        } else {
            &mut self.under_way.polls
        };
        under_way.remove(&read.level);
        self.reread_refused_password(read.result.as_ref().err());
        let seen = &mut self.entry.lock_state().seen;
        if epoch != self.epoch {
            return;
        }
        if let (0, Some(uuid)) = (read.level, &read.system_uuid) {
            self.entry.record_system_uuid(&seen.host.name, Some(uuid));
        }
        self.decision_log.log_reading(&read);
        seen.record_reading(read);
    }

    fn on_check_result(&mut self, level: usize, found: Result<BmcInfo, BmcFault>, asked: Duration) {
        let now = self.monotonic_now();
        let mut spot = self.entry.lock_state();
        if let (0, Ok(about)) = (level, &found) {
            let name = &spot.seen.host.name;
            self.entry
                .record_system_uuid(name, about.system_uuid.as_deref());
        }
        spot.seen.record_check(level, found, asked, now);
    }

    fn on_signs_of_life(&mut self, answer: Result<KubeletLeases, String>, asked: Duration) {
        self.under_way.signs_of_life = false;
        match answer {
            Ok(signs) => {
                self.signs_of_life.reset();
                let memory = &mut self.entry.lock_state().seen.memory;
                memory.record_kubelet_leases(asked, signs);
            }
            Err(error) => {
                let host = self.entry.lock_state().seen.host.name.clone();
                warn!(%host, error, "failed to read the Node of a host");
                let now = self.monotonic_now();
                self.signs_of_life
                    .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
            }
        }
    }

    fn on_command_result(&mut self, id: &str, how: Result<CommandAnswer, BmcFault>) {
        self.under_way.command = false;
        self.decision_log.log_ended_command(id, &how);
        self.reread_refused_password(how.as_ref().err());
        let now = self.monotonic_now();
        let mut spot = self.entry.lock_state();
        match &how {
            Ok(answer) => info!(host = %spot.seen.host.name, ?answer, "a BMC answered a command"),
            Err(fault) => {
                warn!(host = %spot.seen.host.name, reason = %fault.class.power_reason(), error = fault.message, "a command failed");
            }
        }
        spot.seen.memory.record_command_end(id, how, now);
    }

    /// A refused password may have been changed: the Secret is read again. The BMC is not called
    /// again with the same password.
    fn reread_refused_password(&mut self, fault: Option<&BmcFault>) {
        let is_refused = fault.is_some_and(|fault| fault.class == FaultClass::WrongCredentials);
        if is_refused && !self.under_way.secrets && !self.is_finishing {
            self.read_secrets(None);
        }
    }

    fn on_secrets_read(&mut self, found: &BTreeMap<String, BmcSecretState>, check: Option<usize>) {
        self.under_way.secrets = false;
        if self
            .connections
            .apply_secrets(found, &self.services.connect)
        {
            self.epoch += 1;
            self.entry.lock_state().seen.memory.forget_bmc();
        }
        let now = self.monotonic_now();
        if self.connections.lacks_connection() {
            self.secrets
                .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
        } else {
            self.secrets.reset();
        }
        if let Some(level) = check {
            self.start_check(level);
        }
    }

    /// The answer shows the host as it is stored: the command in it may be sent now.
    fn on_write_done(
        &mut self,
        host: HostSnapshot,
        intention: Option<String>,
        events: Vec<DecisionEvent>,
    ) {
        let now = self.monotonic_now();
        self.under_way.write = false;
        self.under_way.command_write = false;
        self.writes.reset();
        self.pruned = None;
        {
            let mut spot = self.entry.lock_state();
            self.metrics.record_write(&spot.seen.host, &host, now);
            if let Some(id) = intention {
                self.decision_log.log_written_command(&id);
                spot.seen.memory.record_write_done(id, now);
            }
            spot.seen.host = Arc::new(host);
        }
        self.reported_events.record_events(&events);
        self.report_events(events);
    }

    fn on_write_failed(&mut self, error: &HostStoreError) {
        let now = self.monotonic_now();
        self.conflict = None;
        self.under_way.command_write = false;
        self.place = None;
        let host = self.entry.lock_state().seen.host.name.clone();
        match error {
            HostStoreError::Changed(answer) => self.conflict = Some(answer.clone()),
            HostStoreError::Failed(error) => {
                warn!(%host, error, "failed to write a host");
                self.writes
                    .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
            }
            HostStoreError::Pruned(_) => {
                error!(%host, error = %error, "no host can be controlled in this cluster");
                self.report_pruned(format!("{error}: install the CRD with Dogwatch's fields"));
                self.writes
                    .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
            }
        }
        self.start_fresh_read();
    }

    /// Sent as an Event, because the API server may drop conditions as well.
    fn report_pruned(&mut self, message: String) {
        if self.pruned.is_none() {
            let event = DecisionEvent {
                severity: EventSeverity::Warning,
                reason: PowerReason::CRDDropsStatus.as_str(),
                message: message.clone(),
            };
            self.report_events(vec![event]);
        }
        self.pruned = Some(message);
    }

    /// After a failed write nothing is written before the stored host was read.
    fn start_fresh_read(&mut self) {
        self.under_way.write = true;
        let name = self.entry.lock_state().seen.host.name.clone();
        let job = jobs::read_fresh_host(self.services.clone(), name);
        self.jobs.push(job.boxed());
    }

    fn on_fresh_read(&mut self, answer: Result<Option<HostSnapshot>, String>, asked: Duration) {
        let now = self.monotonic_now();
        let host = match answer {
            Ok(Some(host)) => host,
            // The host is gone; the watch will report it.
            Ok(None) => {
                self.under_way.write = false;
                self.writes
                    .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
                return;
            }
            Err(error) => {
                let name = self.entry.lock_state().seen.host.name.clone();
                warn!(host = %name, error, "failed to read a host");
                self.writes
                    .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
                let pause = self.writes.blocked_until(now).unwrap_or(now);
                let (services, clock) = (self.services.clone(), self.services.clock.clone());
                let job = async move {
                    clock.sleep_until(pause).await;
                    jobs::read_fresh_host(services, name).await
                };
                self.jobs.push(job.boxed());
                return;
            }
        };
        self.under_way.write = false;
        if !self.is_of_same_host(&host) {
            // Another host of this name was created; the watch will report it.
            self.writes
                .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
            return;
        }
        self.check_conflict(&host, now);
        let mut spot = self.entry.lock_state();
        // The write without an answer succeeded: its command is stored, and was not sent.
        let standing = host.status.power.command.as_ref();
        let standing = standing.map(|standing| standing.id.clone());
        if let Some(id) =
            standing.filter(|id| spot.seen.memory.unanswered_write.as_ref() == Some(id))
        {
            self.decision_log.log_written_command(&id);
            spot.seen.memory.record_write_done(id, asked);
        }
        spot.seen.host = Arc::new(host);
    }

    fn is_of_same_host(&self, host: &HostSnapshot) -> bool {
        self.entry.lock_state().seen.host.uid == host.uid
    }

    /// A conflict that no newer version explains is refused again, if it is written again at once: a
    /// webhook answers so. If the stored host is older than the watch's, the store was restored.
    fn check_conflict(&mut self, host: &HostSnapshot, now: Duration) {
        let written = Arc::clone(&self.entry.lock_state().seen.host);
        let Some(answer) = self.conflict.take() else {
            return;
        };
        if is_newer_host(host, &written) {
            return;
        }
        warn!(host = %host.name, error = answer, "a write was refused, although the host has not changed");
        self.writes
            .record_failure_with_jitter(HOST_RETRY_PAUSES, self.jitter, now);
        let watched = Arc::clone(&self.input.borrow().host);
        if is_newer_host(&written, host) && is_newer_host(&watched, host) {
            self.void_version = Some(watched.resource_version.clone());
        }
    }

    pub(super) fn bmc_access(&self) -> Vec<LevelAccess> {
        let levels = self.connections.access_by_level();
        let Some(message) = &self.pruned else {
            return levels;
        };
        let missing = |_| LevelAccess::Missing {
            reason: PowerReason::CRDDropsStatus,
            message: message.clone(),
        };
        levels.into_iter().map(missing).collect()
    }

    fn monotonic_now(&self) -> Duration {
        self.services.clock.now().mono
    }
}
