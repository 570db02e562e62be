//! When a group's policy lets reboots begin: pauses and windows.

use dogwatch_core::Now;
use dogwatch_core::policy::rollout::PolicyRollout;
use dogwatch_core::policy::{self, MinInterval, Policy, RebootAllowance, RolloutCandidate};
use jiff::Timestamp;

use super::group_run::GroupRun;

/// Whether the policy's calendar allows a reboot; true until `changes`.
#[derive(Clone, Copy)]
pub(super) struct CalendarAnswer {
    pub(super) is_open: bool,
    pub(super) changes: Option<Timestamp>,
}

impl GroupRun<'_> {
    /// Pause, windows, and whether the policy can be read at all.
    pub(super) fn ask_calendar(&mut self, now: Now) -> CalendarAnswer {
        let is_current = |answer: &CalendarAnswer| answer.changes.is_none_or(|at| at > now.wall);
        if let Some(answer) = self.calendar.filter(is_current) {
            return answer;
        }
        // The shape is asked about each waiter.
        let policy = self.policy.as_ref().map(|policy| Policy {
            rollout: PolicyRollout {
                shape: None,
                ..policy.rollout.clone()
            },
            ..policy.clone()
        });
        let allowance = policy::may_reboot_begin(
            &self.group.policies,
            policy.as_ref(),
            self.group.config.longest_drain(),
            MinInterval::default(),
            RolloutCandidate::LockHost,
            now.wall,
        );
        let answer = match allowance {
            RebootAllowance::Yes { until } => CalendarAnswer {
                is_open: true,
                changes: until.map(|end| self.last_begin(end, now)),
            },
            RebootAllowance::No { until, .. } => CalendarAnswer {
                is_open: false,
                changes: until,
            },
        };
        self.calendar = Some(answer);
        answer
    }

    /// The last moment at which a drain fits into a window that closes at `end`.
    fn last_begin(&self, end: Timestamp, now: Now) -> Timestamp {
        let needs = jiff::SignedDuration::try_from(self.group.config.longest_drain());
        let latest = needs.ok().and_then(|needs| end.checked_sub(needs).ok());
        // At that very moment a drain still fits.
        let after = latest.and_then(|at| at.checked_add(jiff::SignedDuration::from_millis(1)).ok());
        after.unwrap_or(now.wall).max(now.wall)
    }

    /// When a drain that begins now is cut off.
    pub(super) fn window_end(&self, now: Now) -> Option<Timestamp> {
        let policy = self.policy.as_ref()?;
        match policy::may_reboot_continue(&self.group.policies, Some(policy), now.wall) {
            RebootAllowance::Yes { until } => until,
            RebootAllowance::No { .. } => None,
        }
    }
}
