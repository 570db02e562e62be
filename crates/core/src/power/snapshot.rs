//! The input of a power decision: the host object, and what this process observed and did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::PowerReason;
use super::annotations::{HostRebootAnnotation, reboot_annotations};
use super::bmc::{BmcFault, BmcInfo, CallCost, CommandAnswer, PowerReading};
use super::bmc_crosscheck::PSU_HOLD_UP;
use super::by_level::ByLevel;
use super::confirmation_annotation::CONFIRMED_OFF_ANNOTATION;
use super::host::{HostName, HostSnapshot, PendingCommandEnd};
use super::machine_change::MachineChange;
use super::node_liveness::{KubeletLeaseHistory, KubeletLeases};
use super::provisioner_work::is_state_newer;
use crate::Now;

#[derive(Debug, Clone, PartialEq)]
pub struct PowerSnapshot {
    /// The object. Shared with other readers of the same version.
    pub host: Arc<HostSnapshot>,
    pub owner: HostOwner,
    /// Senior hosts ([`super::HostSeniority`]) that name one of this host's devices: they keep it.
    pub shared_with: Vec<HostName>,
    /// Senior hosts whose BMCs report the same system UUID ([`super::SharedSystemIds`]): this
    /// host's address leads to their machine.
    pub same_system: Vec<HostName>,
    /// Whether each level's BMCs can be called, by level.
    pub access: Vec<LevelAccess>,
    pub memory: PowerMemory,
}

impl PowerSnapshot {
    /// The object for changes that other readers do not see.
    pub fn host_mut(&mut self) -> &mut HostSnapshot {
        Arc::make_mut(&mut self.host)
    }

    /// Takes in the host and its owner as they are now. Call it before each decision.
    pub fn observe_host(&mut self, now: Now) {
        let is_metal3s = match self.owner {
            HostOwner::Metal3 { .. } => true,
            HostOwner::Ours | HostOwner::NotYetKnown => is_state_newer(&self.host),
        };
        if is_metal3s {
            self.memory.owned_by_metal3 = Some(now.mono);
        }
        self.memory.observe_host(&self.host, now);
    }
}

/// Who owns a host. Source: specification §3.2, "Whose hosts".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostOwner {
    Ours,
    /// A live baremetal-operator: Dogwatch writes nothing, and reads the BMC.
    Metal3 {
        /// The holder of its leader Lease.
        leader: String,
    },
    /// Not known yet whether a baremetal-operator lives: nothing is done.
    NotYetKnown,
}

/// Whether the devices of a level can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LevelAccess {
    Ready {
        cost: CallCost,
    },
    /// The credentials are being read.
    NotYet,
    /// The credentials cannot be had, or the address is invalid.
    Missing {
        reason: PowerReason,
        /// A sentence without secrets that says what to do.
        message: String,
    },
}

/// What this process observed and did since it leads. Nothing of it outlives the process or its
/// lead; the next leader begins with [`PowerMemory::default`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PowerMemory {
    /// The two newest readings of each level, newest first.
    pub readings: Vec<LevelReading>,
    pub command: Option<SentCommand>,
    /// The id of a write that was not answered: its command was never sent, whether or not the
    /// write succeeded.
    pub unanswered_write: Option<String>,
    /// A command of another process on the host: its id, and when this process first saw it.
    pub foreign_command: Option<(String, Duration)>,
    /// When the newest command of unknown end was given up, or first seen if another process sent
    /// it.
    pub unsettled_since: Option<Duration>,
    /// The need that the command on the host belongs to.
    pub need: Option<PowerNeed>,
    /// The last check of each level, by level.
    pub checks: Vec<Option<LevelCheck>>,
    /// What the last successful check of each level found.
    pub bmc_infos: ByLevel<BmcInfo>,
    /// When the last successful check of each level was requested.
    pub identified: ByLevel<Duration>,
    /// For each level: the digest of the address that the next two fields are about.
    pub level_digests: ByLevel<String>,
    /// For each level: the last reported system UUID that can be compared.
    pub last_system_uuids: ByLevel<String>,
    /// For each level: the last time that another machine answered than before.
    pub machine_changes: ByLevel<MachineChange>,
    /// For each level whose last reading said off: when the first of the unbroken readings of off
    /// was requested.
    pub off_since: ByLevel<Duration>,
    /// For each level that has not said off since: when the newest reading was requested that
    /// showed that the machine may run. Failed readings do not clear it.
    pub last_running: ByLevel<Duration>,
    /// For each further level: when the BMC was last asked while that level was off, and said that
    /// the machine runs.
    pub contradicted: ByLevel<Duration>,
    /// The kubelet Leases of the host's Nodes.
    pub kubelet_leases: Option<KubeletLeaseHistory>,
    /// When a live baremetal-operator was last seen to own the host, or its work to have gone on.
    pub owned_by_metal3: Option<Duration>,
    /// When each reboot annotation was first seen with its value, by
    /// [`super::HostRebootAnnotation::id`].
    pub keys: BTreeMap<String, Duration>,
    /// A person's confirmation ([`super::OffConfirmation`]) as it stands on the host, and when it
    /// was first seen.
    pub manual_confirmation: Option<(String, Duration)>,
}

/// The age of a need, independent of clock changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerNeed {
    /// [`super::PendingCommand::since`].
    pub since: Timestamp,
    /// When this process first saw the need.
    pub seen: Duration,
    /// The need's age at that moment, by the wall clock.
    pub age: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelReading {
    pub level: usize,
    pub asked: Duration,
    /// When it was answered, or given up.
    pub answered: Duration,
    pub result: Result<PowerReading, BmcFault>,
    /// The system UUID of the machine that was read, if the same answer contains one that can be
    /// compared.
    pub system_uuid: Option<String>,
}

impl LevelReading {
    pub(super) fn is_off(&self) -> bool {
        self.result == Ok(PowerReading::Off)
    }

    /// Whether it shows that the machine may run. A failed reading shows nothing.
    pub(super) fn shows_running(&self) -> bool {
        match self.result {
            Ok(PowerReading::On | PowerReading::PoweringOn | PowerReading::PoweringOff) => true,
            Ok(PowerReading::Off) | Err(_) => false,
        }
    }
}

/// A command that this process recorded on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCommand {
    /// [`super::PendingCommand::id`].
    pub id: String,
    /// When the API server confirmed the record.
    pub written: Duration,
    /// When it was sent. `None`: not yet.
    pub sent: Option<Duration>,
    pub ended: Option<(Duration, Result<CommandAnswer, BmcFault>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelCheck {
    pub asked: Duration,
    /// When it was answered, or given up.
    pub at: Duration,
    pub found: Result<(), BmcFault>,
}

/// Whether the BMC may still run a command that ended this way.
fn may_still_run(how: &Result<CommandAnswer, BmcFault>) -> bool {
    match how {
        Ok(CommandAnswer::AcceptedWithoutTask) => true,
        Ok(CommandAnswer::Accepted | CommandAnswer::AlreadyThere) => false,
        Err(fault) => fault.may_have_run,
    }
}

const READINGS_PER_LEVEL: usize = 2;

impl PowerMemory {
    pub fn record_reading(&mut self, read: LevelReading) {
        let level = read.level;
        if !self.observe_system_uuid(level, read.system_uuid.as_deref(), read.asked) {
            return;
        }
        self.record_running(&read);
        // In order of request: a late answer is an old one.
        let place = self
            .readings
            .partition_point(|other| other.asked > read.asked);
        self.readings.insert(place, read);
        let mut kept = 0;
        self.readings.retain(|read| {
            let is_same = read.level == level;
            kept += usize::from(is_same);
            !is_same || kept <= READINGS_PER_LEVEL
        });
        self.record_off_since(level);
    }

    fn record_running(&mut self, read: &LevelReading) {
        let known = self.last_running.get(read.level).copied();
        if read.shows_running() {
            let newest = known.map_or(read.asked, |known| known.max(read.asked));
            self.last_running.insert(read.level, newest);
        } else if read.is_off() && known.is_some_and(|known| known < read.asked) {
            self.last_running.remove(read.level);
        }
        if read.level == 0 {
            self.record_contradiction(read);
        }
    }

    /// Records what the BMC says about the other levels that are off.
    fn record_contradiction(&mut self, read: &LevelReading) {
        if read.is_off() {
            self.contradicted.clear();
        }
        if !read.shows_running() {
            return;
        }
        let off = self.off_since.iter().filter(|(level, _)| *level > 0);
        for (level, since) in off {
            if read.asked >= since.saturating_add(PSU_HOLD_UP) {
                self.contradicted.insert(level, read.asked);
            }
        }
    }

    /// Records since when the level has said off without a break.
    fn record_off_since(&mut self, level: usize) {
        let mut of_level = self.readings.iter().filter(|read| read.level == level);
        let newest = of_level.next().filter(|read| read.is_off());
        let Some(newest) = newest else {
            self.off_since.remove(level);
            return;
        };
        let older = of_level.next().filter(|read| read.is_off());
        let since = older.map_or(newest.asked, |older| {
            let known = self.off_since.get(level);
            known.map_or(older.asked, |known| older.asked.min(*known))
        });
        self.off_since.insert(level, since);
    }

    /// Call this before a status with a new command is written. If the write is not answered, a
    /// command of this id on the host is then known never to have been sent.
    pub fn record_write_begun(&mut self, id: impl Into<String>) {
        self.unanswered_write = Some(id.into());
    }

    /// The write of the status with the new command was confirmed: `id` may be sent now.
    pub fn record_write_done(&mut self, id: impl Into<String>, now: Duration) {
        self.unanswered_write = None;
        self.command = Some(SentCommand {
            id: id.into(),
            written: now,
            sent: None,
            ended: None,
        });
    }

    pub fn record_command_sent(&mut self, now: Duration) {
        if let Some(command) = &mut self.command {
            command.sent = Some(now);
        }
    }

    /// The command of this id ended. If it is not the newest any more, only the fact that the BMC
    /// may still run it is kept.
    pub fn record_command_end(
        &mut self,
        id: &str,
        how: Result<CommandAnswer, BmcFault>,
        now: Duration,
    ) {
        if may_still_run(&how) {
            self.unsettled_since = Some(now);
        }
        if let Some(command) = self.command.as_mut().filter(|newest| newest.id == id) {
            command.ended = Some((now, how));
        }
    }

    /// Adds a check that was requested at `asked` and ended `at`.
    pub fn record_check(
        &mut self,
        level: usize,
        found: Result<BmcInfo, BmcFault>,
        asked: Duration,
        at: Duration,
    ) {
        let about = found.as_ref().ok();
        let uuid = about.and_then(|about| about.system_uuid.as_deref());
        if !self.observe_system_uuid(level, uuid, asked) {
            return;
        }
        if self.checks.len() <= level {
            self.checks.resize(level + 1, None);
        }
        let found = found.map(|about| {
            self.bmc_infos.insert(level, about);
            self.identified.insert(level, asked);
        });
        self.checks[level] = Some(LevelCheck { asked, at, found });
    }

    /// Adds a read of the kubelet Leases that was requested at `asked`.
    pub fn record_kubelet_leases(&mut self, asked: Duration, signs: KubeletLeases) {
        self.kubelet_leases = Some(KubeletLeaseHistory::updated_with(
            self.kubelet_leases.take(),
            asked,
            signs,
        ));
    }

    /// Takes in the host as it is now. A command that this process did not write, a key and a
    /// person's confirmation began at an unknown earlier time: their time counts from now.
    pub fn observe_host(&mut self, host: &HostSnapshot, now: Now) {
        self.observe_levels(&host.levels);
        self.observe_keys(host, now.mono);
        self.observe_command(host, now);
    }

    fn observe_keys(&mut self, host: &HostSnapshot, now: Duration) {
        let there = reboot_annotations(host);
        let ids = there.iter().map(HostRebootAnnotation::id);
        self.keys = ids
            .map(|id| {
                let since = self.keys.get(&id).copied().unwrap_or(now);
                (id, since)
            })
            .collect();
        let known = self.manual_confirmation.take();
        let word = host.annotations.get(CONFIRMED_OFF_ANNOTATION);
        self.manual_confirmation = word.map(|text| {
            known
                .filter(|(known, _)| known == text)
                .unwrap_or_else(|| (text.clone(), now))
        });
    }

    fn observe_command(&mut self, host: &HostSnapshot, now: Now) {
        let Some(standing) = &host.status.power.command else {
            return;
        };
        if self.need.is_none_or(|need| need.since != standing.since) {
            self.need = Some(PowerNeed {
                since: standing.since,
                seen: now.mono,
                age: now.elapsed_since(standing.since),
            });
        }
        let is_ours = self
            .command
            .as_ref()
            .is_some_and(|ours| ours.id == standing.id);
        let is_known = self
            .foreign_command
            .as_ref()
            .is_some_and(|(id, _)| *id == standing.id);
        if is_ours || is_known || self.unanswered_write.as_ref() == Some(&standing.id) {
            return;
        }
        self.foreign_command = Some((standing.id.clone(), now.mono));
        let has_unknown_end = matches!(
            standing.end,
            PendingCommandEnd::Open | PendingCommandEnd::Unknown { .. }
        );
        if has_unknown_end || standing.after_unknown {
            self.unsettled_since = Some(now.mono);
        }
    }
}
