//! Which machine answers behind a level's address, and whether another one answers now. Source:
//! specification §4.1.

use std::time::Duration;

use super::PowerReason;
use super::bmc::{BmcFault, BmcInfo};
use super::context::PowerContext;
use super::decide::PowerObserve;
use super::host::{PendingCommand, PowerLevel};
use super::level_digest::digest_level;
use super::power_off::level_name;
use super::readings::next_poll_at;
use super::snapshot::{LevelReading, PowerMemory, PowerSnapshot};
use super::step::PowerStep;
use super::system_id::{SystemId, SystemMatch, compare_system_uuids};
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

/// Another machine answers behind a level's address than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineChange {
    /// When its first answer was requested.
    pub asked: Duration,
    /// The UUID that was reported before.
    pub former_uuid: String,
    /// Whether the machine that answers now is meant.
    pub kind: MachineChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineChangeKind {
    /// Nobody is known to have wanted it.
    Unexpected,
    /// The former UUID was a senior host's: a person corrected the address, or the UUID.
    Corrected,
    /// The machine that the power-off was meant for answers again.
    Returned,
}

impl PowerSnapshot {
    /// Adds a reading that ended.
    pub fn record_reading(&mut self, read: LevelReading) {
        let level = read.level;
        let before = self.memory.identity_before(level);
        self.memory.record_reading(read);
        self.mark_correction(level, &before);
    }

    /// Adds a check that was requested at `asked` and ended `at`.
    pub fn record_check(
        &mut self,
        level: usize,
        found: Result<BmcInfo, BmcFault>,
        asked: Duration,
        at: Duration,
    ) {
        let before = self.memory.identity_before(level);
        self.memory.record_check(level, found, asked, at);
        self.mark_correction(level, &before);
    }

    /// Call this after an answer was recorded, and before `same_system` is found anew: only a change
    /// that this answer made can be a correction, and only from the UUID that was shared.
    fn mark_correction(&mut self, level: usize, before: &IdentityBefore) {
        let is_shared = level == 0 && !self.same_system.is_empty();
        let change = self.memory.machine_changes.get_mut(level);
        let Some(change) = change.filter(|_| is_shared) else {
            return;
        };
        let is_new = before.changed != Some(change.asked);
        let is_former_shared = before.uuid.as_ref() == Some(&change.former_uuid);
        if is_new && is_former_shared && change.kind == MachineChangeKind::Unexpected {
            change.kind = MachineChangeKind::Corrected;
        }
    }
}

/// What was known of a level's machine before an answer was recorded.
struct IdentityBefore {
    uuid: Option<String>,
    /// When the last change was requested.
    changed: Option<Duration>,
}

impl PowerMemory {
    /// The system UUID in the newest readings of the level, or in its last check. `None`: they have
    /// none, whatever was reported before.
    pub(super) fn known_system_uuid(&self, level: usize) -> Option<&str> {
        let mut readings = self.readings.iter().filter(|read| read.level == level);
        let read = readings.find_map(|read| read.system_uuid.as_deref());
        let checked = || self.bmc_infos.get(level)?.system_uuid.as_deref();
        read.or_else(checked)
    }

    fn identity_before(&self, level: usize) -> IdentityBefore {
        IdentityBefore {
            uuid: self.last_system_uuids.get(level).cloned(),
            changed: self.machine_changes.get(level).map(|change| change.asked),
        }
    }

    /// Call this before an answer with this UUID is recorded. If it is another machine's than the
    /// earlier ones, what they said of the level is forgotten. Returns false for a late answer of
    /// a machine that answers no more: it is not to be recorded.
    pub(super) fn observe_system_uuid(
        &mut self,
        level: usize,
        answered: Option<&str>,
        asked: Duration,
    ) -> bool {
        let Some(answered) = answered else {
            return true;
        };
        let is_current = self.observe_machine_change(level, answered, asked);
        // An answer without a UUID, or with a dummy, does not end the knowledge of the machine.
        if is_current && SystemId::parse(answered).is_some() {
            self.last_system_uuids.insert(level, answered.to_owned());
        }
        is_current
    }

    fn observe_machine_change(&mut self, level: usize, answered: &str, asked: Duration) -> bool {
        let last = self.machine_changes.get(level);
        let meant = last.filter(|last| self.is_change_of_need(last));
        let meant = meant.map(|first| first.former_uuid.as_str());
        let known = self.last_system_uuids.get(level).map(String::as_str);
        let is = |uuid: Option<&str>, how| {
            uuid.is_some_and(|uuid| compare_system_uuids(uuid, answered) == how)
        };
        let is_return = is(meant, SystemMatch::Same);
        let is_other = is(known, SystemMatch::Different);
        let Some(former_uuid) = meant.or(known).filter(|_| is_return || is_other) else {
            return true;
        };
        if last.is_some_and(|last| asked < last.asked) {
            return false;
        }
        let change = MachineChange {
            asked,
            former_uuid: former_uuid.to_owned(),
            kind: if is_return {
                MachineChangeKind::Returned
            } else {
                MachineChangeKind::Unexpected
            },
        };
        self.forget_level(level);
        self.machine_changes.insert(level, change);
        true
    }

    /// Whether the need of the newest command was there before this change, and nobody is known to
    /// have wanted the change.
    fn is_change_of_need(&self, change: &MachineChange) -> bool {
        let is_later = self.need.is_none_or(|need| change.asked >= need.seen);
        is_later && change.kind == MachineChangeKind::Unexpected
    }

    /// The Secret or the spec changed: results obtained with the old ones mean nothing. Which
    /// machine answered stays known until the level's address changes: a new password, or another
    /// level, does not make another machine the right one. A command to the old address is
    /// recognized by its [`PendingCommand::target`].
    pub fn forget_bmc(&mut self) {
        self.readings.clear();
        self.checks.clear();
        self.bmc_infos.clear();
        self.identified.clear();
        self.off_since.clear();
        self.last_running.clear();
        self.contradicted.clear();
    }

    /// Forgets which machine answered at a level whose address changed.
    pub(super) fn observe_levels(&mut self, levels: &[PowerLevel]) {
        for (level, devices) in levels.iter().enumerate() {
            let digest = digest_level(devices);
            let known = self.level_digests.get(level);
            if known == Some(&digest) {
                continue;
            }
            if known.is_some() {
                self.last_system_uuids.remove(level);
                self.machine_changes.remove(level);
            }
            self.level_digests.insert(level, digest);
        }
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
        // Only the BMC contradicts: another machine at a further level takes nothing back.
        if level == 0 {
            self.contradicted.clear();
        }
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

    /// Whether the BMC's address leads to another machine since the newest command's need: what the
    /// BMC says then is not about this host.
    pub(super) fn is_bmc_other_machine(&self) -> bool {
        let command = self.pending_command();
        command.is_some_and(|command| self.unaccepted_change(command, 0).is_some())
    }

    /// Like [`Self::machine_change`], for any level, and only while the change is not accepted.
    pub(super) fn unaccepted_change(
        &self,
        command: &PendingCommand,
        level: usize,
    ) -> Option<(usize, &MachineChange)> {
        let change = self.seen.memory.machine_changes.get(level)?;
        let is_later = change.asked >= self.need_seen_at(command);
        (is_later && !self.is_change_accepted(change)).then_some((level, change))
    }

    /// Whether the machine that answers now is meant: a person corrected the address or the UUID, the
    /// former machine answers again, or an obeyed reboot annotation was first seen after the change.
    pub(super) fn is_change_accepted(&self, change: &MachineChange) -> bool {
        let mut requests = self.obeyed_annotations();
        change.kind != MachineChangeKind::Unexpected
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
    format!(
        "{}: another machine answers at its address, so Dogwatch sends it no power-off; correct the address; if \
         the host's board was replaced, set a reboot annotation anew",
        describe_both_uuids(ctx, level, change)
    )
}

/// Says why the other machine's off proves nothing, where another power controller switches the host.
pub(super) fn warn_of_other_machine(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    level: usize,
    change: &MachineChange,
) {
    let text = format!(
        "{}: another machine answers at its address, so its off proves nothing of this host's; correct the address; \
         if the host's board was replaced, set the annotation that holds it off anew",
        describe_both_uuids(ctx, level, change)
    );
    let reason = PowerReason::OtherMachineAnswers;
    step.add_event(EventSeverity::Warning, reason, text);
}

fn describe_both_uuids(ctx: &PowerContext<'_>, level: usize, change: &MachineChange) -> String {
    let known = ctx.seen.memory.last_system_uuids.get(level);
    format!(
        "{} reports system UUID {}, and reported {} before",
        level_name(level),
        known.map_or("nothing", String::as_str),
        change.former_uuid
    )
}

/// Warns, where a host need not be off any more, that the machine that was switched off is not the
/// one that answers: a power-on goes to the machine that answers, which may be a new board.
pub(super) fn warn_of_former_machine(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let command = ctx.pending_command();
    let change = command.and_then(|command| ctx.unaccepted_change(command, 0));
    let Some((level, change)) = change else {
        return;
    };
    let text = format!(
        "the host need not be off any more, but {}: the former machine may have been left off; correct the address, \
         or switch that machine on; if the host's board was replaced, all is well",
        describe_both_uuids(ctx, level, change)
    );
    step.add_event(
        EventSeverity::Warning,
        PowerReason::OtherMachineAnswers,
        text,
    );
}
