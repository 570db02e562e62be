//! Starts the observations that a decision asks for, concurrently.

use std::sync::Arc;

use dogwatch_api::annotation::METAL3_REBOOT;
use dogwatch_core::Now;
use dogwatch_core::power::{HostOwner, HostSnapshot, PowerObserve};
use futures::FutureExt as _;

use super::super::bmc_calls;
use super::super::bmc_concurrency::Priority;
use super::HostReconciler;
use super::jobs::{self, HostJobResult};

impl HostReconciler {
    /// Starts the observation, unless it runs already.
    pub(super) fn start_observation(&mut self, look: &PowerObserve) {
        match look {
            PowerObserve::Read { level, is_urgent } => self.start_power_read(*level, *is_urgent),
            PowerObserve::KubeletLeases => self.read_signs_of_life(),
            PowerObserve::Check { level } => {
                if !self.under_way.secrets && self.under_way.checks.insert(*level) {
                    self.read_secrets(Some(*level));
                }
            }
        }
    }

    /// At most one poll and one urgent reading of a level run at a time: an urgent reading waits
    /// for no poll.
    fn start_power_read(&mut self, number: usize, is_urgent: bool) {
        let way = &self.under_way;
        let is_read = way.urgent.contains(&number) || !is_urgent && way.polls.contains(&number);
        let Some(level) = self.connections.open_level(number).filter(|_| !is_read) else {
            return;
        };
        let (errand, under_way) = if is_urgent {
            (Priority::Urgent, &mut self.under_way.urgent)
        } else {
            (Priority::Routine, &mut self.under_way.polls)
        };
        under_way.insert(number);
        let (services, epoch) = (self.services.clone(), self.epoch);
        let job = async move {
            let within = services.config.call;
            let level = (number, level);
            let read = bmc_calls::read_power(&services, level, errand, within).await;
            HostJobResult::Read {
                read,
                is_urgent,
                epoch,
            }
        };
        self.jobs.push(job.boxed());
    }

    fn read_signs_of_life(&mut self) {
        let now = self.services.clock.now().mono;
        if self.under_way.signs_of_life || self.signs_of_life.blocked_until(now).is_some() {
            return;
        }
        self.under_way.signs_of_life = true;
        let host = Arc::clone(&self.entry.lock_state().seen.host);
        let job = jobs::read_signs_of_life(Arc::clone(&self.services), host);
        self.jobs.push(job.boxed());
    }

    /// Retries for as long as a Secret is missing.
    pub(super) fn fetch_missing_secrets(&mut self, now: Now) {
        // Hosts that another power controller manages are read as well.
        let is_known = self.entry.lock_state().seen.owner != HostOwner::NotYetKnown;
        let is_lacking = is_known && self.connections.lacks_connection();
        if is_lacking && !self.under_way.secrets && self.secrets.blocked_until(now.mono).is_none() {
            self.read_secrets(None);
        }
    }

    pub(super) fn read_secrets(&mut self, check: Option<usize>) {
        self.under_way.secrets = true;
        let (namespace, is_pressing) = {
            let host = &self.entry.lock_state().seen.host;
            (host.name.namespace.clone(), is_urgent_host(host))
        };
        let errand = if is_pressing {
            Priority::Urgent
        } else {
            Priority::Routine
        };
        let names = self.connections.secret_names();
        let services = self.services.clone();
        let job = jobs::read_secrets(services, errand, namespace, names, check);
        self.jobs.push(job.boxed());
    }

    pub(super) fn start_check(&mut self, number: usize) {
        let Some(level) = self.connections.open_level(number) else {
            self.under_way.checks.remove(&number);
            return;
        };
        let (services, epoch) = (self.services.clone(), self.epoch);
        let job = async move {
            let within = services.config.call;
            let (asked, found) = bmc_calls::check_level(&services, level, within).await;
            HostJobResult::Checked {
                level: number,
                found,
                asked,
                epoch,
            }
        };
        self.jobs.push(job.boxed());
    }
}

/// Whether work waits for this host: what the last leader left unfinished goes first.
fn is_urgent_host(host: &HostSnapshot) -> bool {
    let status = &host.status;
    let is_rebooting = status.pending_reboot_since > status.last_powered_on;
    let mut names = host.annotations.keys();
    let is_going_off = !host.online && status.power.off_confirmed_at.is_none();
    is_rebooting || is_going_off || names.any(|name| name.starts_with(METAL3_REBOOT))
}
