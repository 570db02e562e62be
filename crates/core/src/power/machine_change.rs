//! Which machine answers behind a level's address, and whether another one answers now. Source:
//! specification §4.1.

use std::time::Duration;

use super::PowerReason;
use super::bmc::{BmcFault, BmcInfo};
use super::context::PowerContext;
use super::decide::PowerObserve;
use super::host::PendingCommand;
use super::power_off::level_name;
use super::readings::next_poll_at;
use super::snapshot::{LevelReading, PowerMemory, PowerSnapshot};
use super::step::PowerStep;
use super::system_id::{SystemMatch, compare_system_uuids};
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

/// Another machine answers behind a level's address than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineChange {
    /// When its first answer was requested.
    pub asked: Duration,
    /// The UUID that was reported before.
    pub former_uuid: String,
    /// The former UUID was a senior host's: a person corrected the address, or the UUID.
    pub is_correction: bool,
}

impl PowerSnapshot {
    /// Adds a reading that ended.
    pub fn record_reading(&mut self, read: LevelReading) {
        let level = read.level;
        self.memory.record_reading(read);
        self.mark_correction(level);
    }

    /// Adds a check that was requested at `asked` and ended `at`.
    pub fn record_check(
        &mut self,
        level: usize,
        found: Result<BmcInfo, BmcFault>,
        asked: Duration,
        at: Duration,
    ) {
        self.memory.record_check(level, found, asked, at);
        self.mark_correction(level);
    }

    /// Call this after an answer was recorded, and before `same_system` is found anew.
    fn mark_correction(&mut self, level: usize) {
        let is_shared = level == 0 && !self.same_system.is_empty();
        let change = self.memory.machine_changes.get_mut(level);
        if let Some(change) = change.filter(|_| is_shared) {
            change.is_correction = true;
        }
    }
}

impl PowerMemory {
    /// The system UUID that the level's devices last reported.
    pub(super) fn known_system_uuid(&self, level: usize) -> Option<&str> {
        let mut readings = self.readings.iter().filter(|read| read.level == level);
        let read = readings.find_map(|read| read.system_uuid.as_deref());
        let checked = || self.bmc_infos.get(level)?.system_uuid.as_deref();
        read.or_else(checked)
    }

    /// Call this before an answer with this UUID is recorded. If it is another machine's than the
    /// earlier ones, what they said of the level is forgotten.
    pub(super) fn observe_system_uuid(
        &mut self,
        level: usize,
        answered: Option<&str>,
        asked: Duration,
    ) {
        let (Some(answered), Some(known)) = (answered, self.known_system_uuid(level)) else {
            return;
        };
        if compare_system_uuids(known, answered) != SystemMatch::Different {
            return;
        }
        let change = MachineChange {
            asked,
            former_uuid: known.to_owned(),
            is_correction: false,
        };
        self.forget_level(level);
        self.machine_changes.insert(level, change);
    }

    fn forget_level(&mut self, level: usize) {
        self.readings.retain(|read| read.level != level);
        if let Some(check) = self.checks.get_mut(level) {
            *check = None;
        }
        self.bmc_infos.remove(level);
        self.identified.remove(level);
        self.off_since.remove(level);
        self.last_running.remove(level);
        self.contradicted.clear();
    }
}

impl PowerContext<'_> {
    /// What changed, if another machine answers behind the level's address since this process first
    /// saw the command's need. Such a level gets no power-off and proves nothing.
    pub(super) fn machine_change(&self, command: &PendingCommand) -> Option<&MachineChange> {
        let change = self.seen.memory.machine_changes.get(command.level);
        change.filter(|change| change.asked >= self.need_seen_at(command))
    }

    /// Whether the BMC's address leads to another machine than the newest command was meant for.
    pub(super) fn is_other_machine(&self) -> bool {
        let command = self.pending_command();
        let command = command.filter(|command| command.command.is_power_off());
        command.is_some_and(|command| self.machine_change(command).is_some())
    }

    /// Whether the machine that answers now is meant: a person corrected the address or the UUID, or
    /// an obeyed reboot annotation was first seen after the change.
    pub(super) fn is_change_accepted(&self, change: &MachineChange) -> bool {
        let mut requests = self.obeyed_annotations();
        change.is_correction
            || requests.any(|request| {
                let seen_at = self.annotation_seen_at(request);
                seen_at.is_some_and(|seen_at| seen_at > change.asked)
            })
    }

    /// The system UUID of the machine that these readings of off are of. It is in their own
    /// answers, or a check found it while the level read off: an older one may be of another machine.
    pub(super) fn system_uuid_read_off(
        &self,
        [first, second]: [&LevelReading; 2],
    ) -> Option<String> {
        if first.system_uuid.is_some() && second.system_uuid.is_some() {
            return second.system_uuid.clone();
        }
        let level = second.level;
        let since = self.seen.memory.off_since.get(level)?;
        let checked = self.seen.memory.identified.get(level)?;
        if checked < since {
            return None;
        }
        self.bmc_info(level)?.system_uuid.clone()
    }
}

/// Checks a level that reads off, where its readings do not say of which machine they are. The check
/// runs beside the second reading.
pub(super) fn request_identity(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let memory = &ctx.seen.memory;
    let Some(since) = memory.off_since.get(level) else {
        return;
    };
    let is_read = ctx
        .newest_reading(level)
        .is_some_and(|read| read.system_uuid.is_some());
    // A device that reported no UUID will report none now.
    let has_uuid = ctx
        .bmc_info(level)
        .is_some_and(|about| about.system_uuid.is_some());
    let check = memory.checks.get(level).and_then(Option::as_ref);
    let was_asked = check.is_some_and(|check| check.asked >= *since);
    let look = PowerObserve::Check { level };
    let is_unknown = has_uuid && !is_read && !was_asked;
    if is_unknown && ctx.is_level_usable(level) && !step.observe.contains(&look) {
        step.observe.push(look);
    }
}

/// Sends nothing to the other machine. It may belong to somebody else, and its "off" proves nothing
/// of this host's.
pub(super) fn refuse_other_machine(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    level: usize,
    change: &MachineChange,
) {
    let text = describe_change(ctx, level, change);
    let reason = PowerReason::OtherMachineAnswers;
    step.add_event(EventSeverity::Warning, reason, text.clone());
    step.set_cause(ConditionStatus::False, reason, text);
    step.read_level_at(ctx, level, next_poll_at(ctx, level), "the next poll");
}

pub(super) fn describe_change(
    ctx: &PowerContext<'_>,
    level: usize,
    change: &MachineChange,
) -> String {
    let known = ctx.seen.memory.known_system_uuid(level);
    format!(
        "{} reports system UUID {}, and reported {} before: another machine answers at its address, so \
         Dogwatch sends it no power-off; correct the address; if the host's board was replaced, set a \
         reboot annotation anew",
        level_name(level),
        known.unwrap_or("nothing"),
        change.former_uuid
    )
}
