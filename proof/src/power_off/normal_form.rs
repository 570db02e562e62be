//! Makes states that differ in nothing that matters equal: versions and ids are renumbered, old
//! times are all the same age, and wall-clock times keep nothing but their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::{
    HostSnapshot, HostStatus, LevelReading, PendingCommandEnd, PowerMemory, PowerReading,
};
use jiff::Timestamp;

use super::leader::{LeaderView, TICK, state_time, state_wall};
use super::world::PowerOffWorld;

/// Older than this nothing is told apart: more than every wait of `decision_config`.
const OLDEST: Duration = TICK.saturating_mul(5);
/// After so many tries the pauses between them grow no more in this world.
const MOST_TRIES: u32 = 3;

/// Everything that is remembered gets older by a tick.
pub fn pass_tick(memory: &mut PowerMemory) {
    shift_times(memory, TICK);
}

fn shift_times(memory: &mut PowerMemory, by: Duration) {
    let now = state_time().mono;
    let shift = |at: &mut Duration| *at = at.saturating_sub(by).max(now - OLDEST);
    let last_running = memory.last_running.get(0).copied();
    let readings = std::mem::take(&mut memory.readings);
    memory.off_since.clear();
    memory.last_running.clear();
    memory.contradicted.clear();
    // Since when the host is off, and when it last ran, follow from readings.
    let running = last_running.map(|asked| LevelReading {
        level: 0,
        asked,
        answered: asked,
        result: Ok(PowerReading::On),
        system_uuid: None,
    });
    for mut reading in running.into_iter().chain(readings.into_iter().rev()) {
        shift(&mut reading.asked);
        shift(&mut reading.answered);
        memory.record_reading(reading);
    }
    if let Some(command) = &mut memory.command {
        shift(&mut command.written);
        command.ended.iter_mut().for_each(|(at, _)| shift(at));
        // A call ends at the moment at which it is sent.
        command.sent = command.ended.as_ref().map(|(at, _)| *at);
    }
    if let Some((_, at)) = &mut memory.foreign_command {
        shift(at);
    }
    memory.unsettled_since.iter_mut().for_each(shift);
    forget_idle_times(memory);
    if memory.kubelet_leases.take().is_some() {
        memory.record_kubelet_leases(now, dogwatch_core::power::KubeletLeases::default());
    }
}

/// Times that no decision of this world rests on: there is one level, which is checked once, the
/// key asks for a hard power-off, and no person confirms anything.
fn forget_idle_times(memory: &mut PowerMemory) {
    let now = state_time().mono;
    if let Some(need) = &mut memory.need {
        (need.seen, need.age) = (now, Duration::ZERO);
    }
    memory.keys.values_mut().for_each(|at| *at = now);
    for check in memory.checks.iter_mut().flatten() {
        check.at = now;
    }
}

pub fn normalize_world(world: &mut PowerOffWorld<'_>) {
    forget_what_people_read(world);
    renumber_versions(world);
    renumber_ids(world);
    rank_wall_times(world);
    world.at_bmc.sort_unstable();
}

fn statuses<'a>(world: &'a mut PowerOffWorld<'_>) -> impl Iterator<Item = &'a mut HostStatus> {
    let leaders = [Some(&mut world.leader), world.deposed.as_mut()];
    let seen = leaders.into_iter().flatten();
    let seen = seen.map(|leader| &mut Arc::make_mut(&mut Arc::make_mut(leader).host).status);
    let stored = std::iter::once(&mut Arc::make_mut(&mut world.stored).status);
    let late = world.late_writes.iter_mut();
    let late = late.map(|late| &mut Arc::make_mut(late).status);
    stored.chain(seen).chain(late)
}

fn memories<'a>(world: &'a mut PowerOffWorld<'_>) -> impl Iterator<Item = &'a mut PowerMemory> {
    let leaders = [Some(&mut world.leader), world.deposed.as_mut()];
    leaders
        .into_iter()
        .flatten()
        .map(|leader| &mut Arc::make_mut(leader).memory)
}

fn forget_what_people_read(world: &mut PowerOffWorld<'_>) {
    for status in statuses(world) {
        status.power.history.clear();
        status.power.observed_at = status.power.observed_at.map(|_| state_wall());
        if let Some(command) = &mut status.power.command {
            command.at = state_wall();
            command.attempt = command.attempt.min(MOST_TRIES);
            command.before = command.before.min(MOST_TRIES);
            match &mut command.end {
                PendingCommandEnd::Open => {}
                PendingCommandEnd::Answered { at } => *at = state_wall(),
                PendingCommandEnd::Failed { at, message }
                | PendingCommandEnd::Unknown { at, message } => {
                    *at = state_wall();
                    message.clear();
                }
            }
        }
    }
    for memory in memories(world) {
        shift_times(memory, Duration::ZERO);
    }
}

fn renumber_versions(world: &mut PowerOffWorld<'_>) {
    fn versions<'a>(world: &'a mut PowerOffWorld<'_>) -> impl Iterator<Item = &'a mut String> {
        let leaders = [Some(&mut world.leader), world.deposed.as_mut()];
        let seen = leaders.into_iter().flatten();
        let host = |leader: &'a mut Arc<LeaderView>| &mut Arc::make_mut(leader).host;
        let version = |host: &'a mut Arc<HostSnapshot>| &mut Arc::make_mut(host).resource_version;
        let stored = std::iter::once(version(&mut world.stored));
        let late = world.late_writes.iter_mut();
        let late = late.map(|late| &mut Arc::make_mut(late).version);
        stored.chain(seen.map(host).map(version)).chain(late)
    }
    let number = |text: &String| {
        text.parse::<u64>()
            .expect("the model's versions are numbers")
    };
    let known: BTreeSet<u64> = versions(world).map(|text| number(text)).collect();
    let numbers: BTreeMap<u64, usize> = known.into_iter().zip(1..).collect();
    for version in versions(world) {
        *version = numbers[&number(version)].to_string();
    }
}

fn renumber_ids(world: &mut PowerOffWorld<'_>) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut rename = |id: &mut String| {
        let next = format!("c{}", names.len() + 1);
        id.clone_from(names.entry(id.clone()).or_insert(next));
    };
    for status in statuses(world) {
        if let Some(command) = &mut status.power.command {
            rename(&mut command.id);
        }
    }
    for memory in memories(world) {
        if let Some(command) = &mut memory.command {
            rename(&mut command.id);
        }
        memory.unanswered_write.iter_mut().for_each(&mut rename);
        if let Some((id, _)) = &mut memory.foreign_command {
            rename(id);
        }
    }
    let sent = std::mem::take(&mut world.sent).into_iter();
    world.sent = sent.filter_map(|id| names.get(&id).cloned()).collect();
    world.sent.sort_unstable();
    world.sent.dedup();
}

/// `pendingRebootSince`, `lastPoweredOn` and `offConfirmedAt` are compared, and two needs are told
/// apart; how long ago any of them was decides nothing here.
fn rank_wall_times(world: &mut PowerOffWorld<'_>) {
    fn visit(world: &mut PowerOffWorld<'_>, visit: &mut dyn FnMut(&mut Timestamp)) {
        for status in statuses(world) {
            let times = [
                &mut status.last_powered_on,
                &mut status.pending_reboot_since,
                &mut status.power.off_confirmed_at,
            ];
            times.into_iter().flatten().for_each(&mut *visit);
            if let Some(command) = &mut status.power.command {
                visit(&mut command.since);
            }
        }
        for memory in memories(world) {
            if let Some(need) = &mut memory.need {
                visit(&mut need.since);
            }
        }
    }
    let mut known = BTreeSet::new();
    visit(world, &mut |at| {
        known.insert(*at);
    });
    let start = state_wall() - jiff::SignedDuration::from_secs(1);
    let ranks: BTreeMap<Timestamp, Timestamp> = (1_i64..)
        .zip(known)
        .map(|(rank, at)| (at, start + jiff::SignedDuration::from_micros(rank)))
        .collect();
    visit(world, &mut |at| *at = ranks[at]);
}
