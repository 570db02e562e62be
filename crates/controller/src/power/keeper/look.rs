//! What a decision asks to be looked at is begun, one beside the other.

use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::power::{Host, Look, Owner};
use futures::FutureExt as _;

use super::super::call;
use super::super::lanes::Errand;
use super::Keeper;
use super::work::{self, Done};

/// How reboot annotations begin.
const REBOOT: &str = "reboot.metal3.io";

impl Keeper {
    /// Begins it, unless it is under way.
    pub(super) fn look(&mut self, look: &Look) {
        match look {
            Look::Read { level, is_urgent } => self.read(*level, *is_urgent),
            Look::SignsOfLife => self.read_signs_of_life(),
            Look::Check { level } => {
                if !self.under_way.secrets && self.under_way.checks.insert(*level) {
                    self.read_secrets(Some(*level));
                }
            }
        }
    }

    /// At most one poll and one urgent reading of a level at a time: what is urgent waits for no poll.
    fn read(&mut self, number: usize, is_urgent: bool) {
        let way = &self.under_way;
        let is_read = way.urgent.contains(&number) || !is_urgent && way.polls.contains(&number);
        let Some(level) = self.links.open(number).filter(|_| !is_read) else {
            return;
        };
        let (errand, under_way) = if is_urgent {
            (Errand::Urgent, &mut self.under_way.urgent)
        } else {
            (Errand::Routine, &mut self.under_way.polls)
        };
        under_way.insert(number);
        let (services, epoch) = (self.services.clone(), self.epoch);
        let job = async move {
            let within = services.config.call;
            let level = (number, level);
            let read = call::read(&services, level, errand, within).await;
            Done::Read {
                read,
                is_urgent,
                epoch,
            }
        };
        self.jobs.push(job.boxed());
    }

    fn read_signs_of_life(&mut self) {
        let now = self.services.clock.now().mono;
        if self.under_way.signs_of_life || self.signs_of_life.waits(now) {
            return;
        }
        self.under_way.signs_of_life = true;
        let host = Arc::clone(&self.spot.lock().seen.host);
        let job = work::signs_of_life(Arc::clone(&self.services), host);
        self.jobs.push(job.boxed());
    }

    /// What is lacking is looked for again and again.
    pub(super) fn fetch_secrets(&mut self, now: Now) {
        // Theirs are read as well.
        let is_known = self.spot.lock().seen.owner != Owner::NotYetKnown;
        let is_lacking = is_known && self.links.lacks_something();
        if is_lacking && !self.under_way.secrets && !self.secrets.waits(now.mono) {
            self.read_secrets(None);
        }
    }

    pub(super) fn read_secrets(&mut self, check: Option<usize>) {
        self.under_way.secrets = true;
        let (namespace, is_pressing) = {
            let host = &self.spot.lock().seen.host;
            (host.name.namespace.clone(), is_pressing(host))
        };
        let errand = if is_pressing {
            Errand::Urgent
        } else {
            Errand::Routine
        };
        let names = self.links.secrets();
        let services = self.services.clone();
        let job = work::secrets(services, errand, namespace, names, check);
        self.jobs.push(job.boxed());
    }

    pub(super) fn check(&mut self, number: usize) {
        let Some(level) = self.links.open(number) else {
            self.under_way.checks.remove(&number);
            return;
        };
        let (services, epoch) = (self.services.clone(), self.epoch);
        let job = async move {
            let within = services.config.call;
            let found = call::check(&services, level, within).await;
            Done::Checked {
                level: number,
                found,
                epoch,
            }
        };
        self.jobs.push(job.boxed());
    }
}

/// Whether somebody waits for this host: what was not finished by whoever led before goes first.
fn is_pressing(host: &Host) -> bool {
    let status = &host.status;
    let is_rebooting = status.pending_reboot_since > status.last_powered_on;
    let mut names = host.annotations.keys();
    let is_going_off = !host.online && status.power.off_confirmed_at.is_none();
    is_rebooting || is_going_off || names.any(|name| name.starts_with(REBOOT))
}
