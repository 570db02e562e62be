//! Limits logins to a device that refuses its password: many BMCs lock the account after a few.
//!
//! **Promises:**
//! - All hosts that call one device with one version of one Secret share what the device answered.
//! - After a refusal nobody calls with that password for 30 s, and twice as long after each further
//!   refusal, up to 5 min. Meanwhile the device's last answer is the answer to every call.
//! - Until the device has accepted the password, one urgent and one routine call use it at a time.
//! - A new version of the Secret has a gate of its own, which is open.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use dogwatch_core::power::{BmcFault, FaultClass};
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::time::Instant;

use super::bmc_concurrency::Priority;

/// BMCs lock accounts after as few as 3 refusals within a minute (Dell's IP blocking) or 5 in all
/// (Lenovo). The Redfish driver has the same pauses for its own logins.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// What one device answered to one version of one Secret.
#[derive(Debug, Default)]
pub(super) struct LoginGate {
    state: Mutex<LoginState>,
    urgent: tokio::sync::Mutex<()>,
    routine: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
enum LoginState {
    /// The device has not answered yet.
    #[default]
    Untried,
    Accepted,
    Refused(LoginRefusal),
}

#[derive(Debug)]
struct LoginRefusal {
    refusals: u32,
    until: Instant,
    fault: BmcFault,
}

/// The right to one call. Give it the call's answer.
#[derive(Debug)]
#[must_use]
pub(super) struct LoginTurn<'a> {
    gate: &'a LoginGate,
    kind: TurnKind<'a>,
}

#[derive(Debug)]
enum TurnKind<'a> {
    /// The device has accepted the password before.
    Known,
    /// Other calls wait for this one.
    First {
        _guard: tokio::sync::MutexGuard<'a, ()>,
    },
    /// The one call after a pause.
    Again,
}

impl LoginGate {
    /// Waits for a turn, for at most `wait`.
    ///
    /// # Errors
    /// The device's refusal, repeated without a call; or the first call has no answer yet.
    pub(super) async fn begin_call(
        &self,
        errand: Priority,
        wait: Duration,
    ) -> Result<LoginTurn<'_>, BmcFault> {
        if let Some(turn) = self.admit_known()? {
            return Ok(turn);
        }
        let lane = match errand {
            Priority::Urgent => &self.urgent,
            Priority::Routine => &self.routine,
        };
        let Ok(guard) = tokio::time::timeout(wait, lane.lock()).await else {
            let text = "the first call with this password has no answer yet";
            return Err(BmcFault::without_effect(FaultClass::TimedOut, text));
        };
        let turn = self.admit_known()?;
        Ok(turn.unwrap_or(LoginTurn {
            gate: self,
            kind: TurnKind::First { _guard: guard },
        }))
    }

    /// `None`: the device has not answered yet.
    fn admit_known(&self) -> Result<Option<LoginTurn<'_>>, BmcFault> {
        let now = Instant::now();
        let kind = match &mut *self.lock_state() {
            LoginState::Untried => return Ok(None),
            LoginState::Accepted => TurnKind::Known,
            LoginState::Refused(refusal) if now < refusal.until => {
                return Err(refusal.fault.clone());
            }
            LoginState::Refused(refusal) => {
                // Calls that come before the answer make no second login.
                refusal.until = now + pause_after(refusal.refusals);
                TurnKind::Again
            }
        };
        Ok(Some(LoginTurn { gate: self, kind }))
    }

    fn lock_state(&self) -> MutexGuard<'_, LoginState> {
        lock_ignoring_poison(&self.state)
    }
}

impl LoginTurn<'_> {
    /// Records the answer to the call.
    pub(super) fn record_answer<T>(self, answer: &Result<T, BmcFault>) {
        let now = Instant::now();
        let state = &mut *self.gate.lock_state();
        match (answer, state) {
            (Err(fault), state) if fault.class == FaultClass::WrongCredentials => {
                let earlier = match state {
                    LoginState::Refused(refusal) => refusal.refusals,
                    LoginState::Untried | LoginState::Accepted => 0,
                };
                let refusals = earlier.saturating_add(1);
                *state = LoginState::Refused(LoginRefusal {
                    refusals,
                    until: now + pause_after(refusals),
                    fault: fault.clone(),
                });
            }
            // A call that began before the refusal, for example in an older session, says nothing
            // of the password.
            (_, LoginState::Refused(_)) if !matches!(self.kind, TurnKind::Again) => {}
            (Ok(_), state) => *state = LoginState::Accepted,
            (Err(_), LoginState::Refused(refusal)) => {
                refusal.until = refusal.until.min(now + FIRST_PAUSE);
            }
            (Err(_), LoginState::Untried | LoginState::Accepted) => {}
        }
    }
}

fn pause_after(refusals: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(refusals.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    fn refused() -> Result<(), BmcFault> {
        let text = "wrong password";
        Err(BmcFault::without_effect(FaultClass::WrongCredentials, text))
    }

    fn silent() -> Result<(), BmcFault> {
        Err(BmcFault::without_effect(FaultClass::TimedOut, "no answer"))
    }

    fn begin(gate: &LoginGate, errand: Priority) -> Option<Result<LoginTurn<'_>, BmcFault>> {
        gate.begin_call(errand, WAIT).now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_password_is_tried_again_after_pauses_that_grow() {
        let gate = LoginGate::default();
        let begun = Instant::now();
        let mut tried = Vec::new();
        while begun.elapsed() < Duration::from_mins(20) {
            if let Ok(turn) = gate.begin_call(Priority::Urgent, WAIT).await {
                tried.push(begun.elapsed().as_secs());
                turn.record_answer(&refused());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(tried, [0, 30, 90, 210, 450, 750, 1050]);
        assert_eq!(
            gate.begin_call(Priority::Routine, WAIT).await.map(drop),
            refused()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_one_call_goes_and_others_make_no_second_login() {
        let gate = LoginGate::default();
        let first = gate.begin_call(Priority::Routine, WAIT).await.unwrap();
        first.record_answer(&refused());
        tokio::time::sleep(FIRST_PAUSE).await;
        let again = gate.begin_call(Priority::Routine, WAIT).await.unwrap();
        for errand in [Priority::Urgent, Priority::Routine] {
            let other = begin(&gate, errand).unwrap();
            assert_eq!(other.map(drop), refused(), "{errand:?}");
        }
        again.record_answer(&Ok(()));
        assert!(begin(&gate, Priority::Urgent).unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_device_without_an_answer_after_a_pause_is_tried_again_half_a_minute_later() {
        let gate = LoginGate::default();
        for _ in 0..5 {
            let turn = gate.begin_call(Priority::Urgent, WAIT).await.unwrap();
            turn.record_answer(&refused());
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
        let turn = gate.begin_call(Priority::Urgent, WAIT).await.unwrap();
        turn.record_answer(&silent());
        assert!(begin(&gate, Priority::Urgent).unwrap().is_err());
        tokio::time::sleep(FIRST_PAUSE).await;
        assert!(begin(&gate, Priority::Urgent).unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_first_answer_calls_wait_and_urgent_ones_for_no_routine_one() {
        let gate = LoginGate::default();
        let routine = gate.begin_call(Priority::Routine, WAIT).await.unwrap();
        let urgent = begin(&gate, Priority::Urgent).unwrap().unwrap();
        let mut waits = Box::pin(gate.begin_call(Priority::Routine, WAIT));
        assert!((&mut waits).now_or_never().is_none());
        urgent.record_answer(&Ok(()));
        assert!(begin(&gate, Priority::Routine).unwrap().is_ok(), "accepted");
        routine.record_answer(&Ok(()));
        assert!(waits.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_call_that_hangs_is_not_waited_for_longer_than_the_limit() {
        let gate = LoginGate::default();
        let _hung = gate.begin_call(Priority::Urgent, WAIT).await.unwrap();
        let begun = Instant::now();
        let fault = gate.begin_call(Priority::Urgent, WAIT).await.unwrap_err();
        assert_eq!(begun.elapsed(), WAIT);
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::TimedOut, false)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_an_older_session_says_nothing_of_the_password() {
        let gate = LoginGate::default();
        let first = gate.begin_call(Priority::Urgent, WAIT).await.unwrap();
        first.record_answer(&Ok(()));
        let older = gate.begin_call(Priority::Urgent, WAIT).await.unwrap();
        let newer = gate.begin_call(Priority::Urgent, WAIT).await.unwrap();
        newer.record_answer(&refused());
        older.record_answer(&Ok(()));
        assert!(begin(&gate, Priority::Urgent).unwrap().is_err());
    }
}
