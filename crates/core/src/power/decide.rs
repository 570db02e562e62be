//! The decision, one host at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotations::{Request, listed};
use super::bmc::{Answer, Command};
use super::config::Config;
use super::context::Context;
use super::gate::{self, Knows, Refusal};
use super::host::{End, HostStatus, Intention};
use super::seen::Seen;
use super::standing::Standing;
use super::step::Step;
use super::{
    hold, idle, life, off, on, pending, provisioning, readiness, readings, reason, report, theirs,
};
use crate::Now;
use crate::condition::Status;
use crate::decision::Severity;

/// How many polls old `observedAt` may become when nothing else changes.
const OBSERVED_EVERY: u32 = 10;

/// What to do about one host's power.
pub type Decision = crate::Decision<Action, Look>;

/// What to write or send.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Writes the status, on the version that was seen. A command in it may be sent once the answer
    /// is there ([`super::Memory::written`]).
    WriteStatus(Box<StatusWrite>),
    /// Removes annotations, on the version that was seen.
    RemoveAnnotations(Vec<String>),
    /// Sends the command whose intention stands on the host. Only while the lead outlasts the call.
    Send(Intention),
}

/// The status as it should stand. Conditions come from the decision's report.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWrite {
    /// All of our fields.
    pub status: HostStatus,
    /// Why it is worth a write, for the log.
    pub why: &'static str,
}

/// What has to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Reads the power of a level, at once.
    Read {
        /// Which level.
        level: usize,
        /// Whether a power-off waits for it: it goes before polls.
        is_urgent: bool,
    },
    /// Reads the Leases of the Nodes that the host carries, at once.
    SignsOfLife,
    /// Checks whether power control of a level would work, at once.
    Check {
        /// Which level.
        level: usize,
    },
}

/// What to do about this host now. Pure: the same input, the same answer. [`super::Memory::saw`] was
/// called with this host before.
///
/// `id` is the id that a command would have if one is decided: `PROCESS/N`, never used before.
/// `jitter` in 0..1 spreads polls and retries.
///
/// There is at most one action. A look that is under way already is not begun again.
pub fn decide(seen: &Seen, config: &Config, id: &str, jitter: f64, now: Now) -> Decision {
    let ctx = Context::new(seen, config, id, jitter, now);
    let mut step = Step::new(ctx.status().clone());
    let refusal = gate::refusal(&ctx);
    match &refusal {
        Some(refusal) => refused(&ctx, &mut step, refusal),
        None => act(&ctx, &mut step),
    }
    finish(&ctx, step, refusal.as_ref())
}

fn refused(ctx: &Context<'_>, step: &mut Step, refusal: &Refusal) {
    step.because(Status::Unknown, refusal.reason, refusal.message.clone());
    match refusal.knows {
        Knows::Nothing => {}
        Knows::Unknown => gate::unknown(&mut step.status),
        Knows::Power => step.read(ctx, 0, readings::next_poll(ctx, 0), "the next poll"),
        Knows::Theirs => theirs::looks(ctx, step),
    }
}

fn act(ctx: &Context<'_>, step: &mut Step) {
    note_end(ctx, step);
    forget_gone(ctx, step);
    if provisioning::is_leaving(&ctx.seen.host) && !ctx.requests.is_empty() {
        return deprovisioned(ctx, step);
    }
    provisioning::note(&ctx.seen.host, &mut step.status);
    readings::note(ctx, &mut step.status);
    pending::note(ctx, step);
    drive(ctx, step);
}

/// A request that went and comes again wants a proof of its own, also with the same value.
fn forget_gone(ctx: &Context<'_>, step: &mut Step) {
    let there: BTreeSet<String> = ctx.obeyed().map(Request::id).collect();
    let proved = &mut step.status.power.confirmed_for;
    proved.retain(|id| there.contains(id));
}

/// How our command ended, where a leader after us finds it.
fn note_end(ctx: &Context<'_>, step: &mut Step) {
    let ours = ctx.seen.memory.command.as_ref();
    let Some(standing) = step.status.power.command.as_mut() else {
        return;
    };
    let Some(ours) = ours.filter(|ours| ours.id == standing.id && standing.end == End::Open) else {
        return;
    };
    let Some((at, how)) = &ours.ended else {
        return;
    };
    let at = ctx.wall(*at);
    // Whoever leads next waits as long for it as for one that nobody answered.
    standing.after_unknown |= matches!(how, Ok(Answer::AcceptedWithoutTask));
    standing.end = match how {
        Ok(_) => End::Answered { at },
        Err(fault) if fault.may_have_run => End::Unknown {
            at,
            message: fault.to_string(),
        },
        Err(fault) => End::Failed {
            at,
            message: fault.to_string(),
        },
    };
}

fn deprovisioned(ctx: &Context<'_>, step: &mut Step) {
    let names: Vec<String> = ctx
        .requests
        .iter()
        .map(|request| request.name.clone())
        .collect();
    let text = format!("the host is deprovisioned: {} removed", listed(&names));
    step.event(Severity::Normal, reason::DEPROVISIONED, text.clone());
    step.because(Status::Unknown, reason::DEPROVISIONED, text);
    step.action = Some(Action::RemoveAnnotations(names));
}

fn drive(ctx: &Context<'_>, step: &mut Step) {
    let command = ctx.command();
    if let Some(command) = command.filter(|command| !ctx.has_level(command.level)) {
        return without_level(ctx, step, command);
    }
    if ctx.status().power.off_confirmed_at.is_some() {
        match ctx.answered_off() {
            Some(command) => return hold::keep(ctx, step, command),
            // Whoever wrote that: without its answered command it is no proof of ours.
            None => step.status.power.off_confirmed_at = None,
        }
    }
    let is_off = |command: &Intention| command.command.is_off();
    match (needs_off(ctx, step), command) {
        (Some(reason::NOT_ONLINE), earlier) if !earlier.is_some_and(is_off) => {
            idle::keep_off(ctx, step, earlier);
        }
        (Some(why), _) => off::drive(ctx, step, why),
        (None, Some(command)) if command.command == Command::On => on::drive(ctx, step, command),
        (None, Some(command)) => idle::withdraw(ctx, step, command),
        (None, None) => idle::watch(ctx, step),
    }
}

/// The command's level was taken out of the host's specification: nothing can be read of it, and nothing
/// is proved by it any more. What is needed begins anew on the levels that are left.
fn without_level(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    if let Standing::UnderWay { until } = ctx.standing(command) {
        return off::wait_for(step, command, until);
    }
    step.status.power.off_confirmed_at = None;
    let settled = ctx.settled_at();
    match needs_off(ctx, step) {
        Some(why) => {
            step.done(ctx, command, reason::GAVE_UP);
            off::begin(ctx, step, why);
        }
        None if ctx.now.mono < settled => {
            let text = format!("{} is no more", off::name(command.level));
            step.busy(reason::SETTLING, text);
            step.wake(settled, "the end of every command of unknown end");
        }
        None if command.command == Command::On => {
            on::send_again(ctx, step, 0, reason::POWERING_ON);
        }
        None => idle::close(ctx, step, command),
    }
}

/// Why the host must be off, if it must.
fn needs_off(ctx: &Context<'_>, step: &Step) -> Option<&'static str> {
    if Context::is_reboot_pending(&step.status) {
        return Some(reason::REBOOT_REQUESTED);
    }
    // Before spec.online: whoever holds it off waits for a proof, which needs a command of ours.
    if ctx.obeyed().next().is_some() {
        return Some(reason::HELD_OFF);
    }
    (!ctx.seen.host.online).then_some(reason::NOT_ONLINE)
}

fn finish(ctx: &Context<'_>, mut step: Step, refusal: Option<&Refusal>) -> Decision {
    let knows = refusal.map_or(Knows::Power, |refusal| refusal.knows);
    if knows == Knows::Power {
        readings::note(ctx, &mut step.status);
        // An off that is nobody's doing is said only where no Node contradicts it.
        if ctx.off_now(ctx.level()).is_some() && ctx.answered_off().is_none() {
            life::look(ctx, &mut step);
        }
        if let Some(at) = readings::stale_at(ctx) {
            step.wake(at, "a reading that gets too old");
        }
    }
    if knows.is_written() && !step.is_busy {
        readiness::looks(ctx, &mut step);
    }
    let report = report::report(ctx, &step, refusal);
    let write = (knows.is_written() && worth_writing(ctx, &step.status)).then(|| {
        Action::WriteStatus(Box::new(StatusWrite {
            status: step.status.clone(),
            why: step.because.reason,
        }))
    });
    step.wake(
        ctx.now.mono.saturating_add(config_floor(ctx)),
        "the next poll",
    );
    Decision {
        actions: step.action.or(write).into_iter().collect(),
        looks: step.looks,
        report,
        wake: step.wake,
        because: step.because,
    }
}

fn config_floor(ctx: &Context<'_>) -> Duration {
    ctx.config.poll.max(Duration::from_secs(1))
}

/// Whether something changed. That a reading is newer is written along with other things, and else
/// every tenth poll only: of 10,000 hosts each poll would be 170 writes a second.
fn worth_writing(ctx: &Context<'_>, wanted: &HostStatus) -> bool {
    let standing = ctx.status();
    let mut same_time = wanted.clone();
    same_time.power.observed_at = standing.power.observed_at;
    if same_time != *standing {
        return true;
    }
    let (old, new) = (standing.power.observed_at, wanted.power.observed_at);
    match (old, new) {
        (Some(old), Some(new)) => {
            let age = Duration::try_from(new.duration_since(old)).unwrap_or_default();
            age >= ctx.config.poll * OBSERVED_EVERY
        }
        (None, Some(_)) => true,
        (Some(_) | None, None) => false,
    }
}
