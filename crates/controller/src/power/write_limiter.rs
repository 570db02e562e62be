//! Limits concurrent writes, and sends those that a power-off waits for before reporting writes.
//!
//! What happens to many hosts at once (a new leader, a fenced rack) causes more writes than an API
//! server takes at a time: each write under way has a connection, and the last of them waits for
//! all others. Measured with 10,000 hosts and a new leader, before writes were limited: 50 s of
//! writes under way, with 340 MiB of memory, and the renewal of the lead waited behind them.
//!
//! **Promises:**
//! - A write that a power-off or a power-on waits for waits for no reporting write.
//! - A reporting write waits at most [`MAX_REPORTING_DELAY`] for urgent writes, and then only for
//!   other reporting writes.
//! - A host whose write fails holds a permit of the others once, for one deadline, until a write
//!   succeeds again: hosts with errors delay only one another.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::HostStatus;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Events, and writes that only report: an API server answers some hundreds a second on as many
/// connections.
const MAX_REPORTING_WRITES: usize = 8;
/// Writes that work waits for. More at once would finish no earlier.
const MAX_URGENT_WRITES: usize = 32;
/// Writes of hosts whose last write failed.
const MAX_WRITES_AFTER_FAILURE: usize = 32;
/// How long a reporting write waits for urgent ones: in that time 100 hosts that are fenced at once
/// have written their intentions.
const MAX_REPORTING_DELAY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(super) struct WriteLimiter {
    telling: Arc<Semaphore>,
    pressing: Arc<Semaphore>,
    after_trouble: Arc<Semaphore>,
    /// How many urgent writes are under way or wait.
    pressed: watch::Sender<usize>,
}

/// Dropping it gives it up.
#[derive(Debug)]
pub(super) struct WritePermit {
    _permit: OwnedSemaphorePermit,
    _pressing: Option<UrgentWriteCount>,
}

/// Counts an urgent write, from its wait for a permit until its answer.
#[derive(Debug)]
struct UrgentWriteCount(watch::Sender<usize>);

impl WriteLimiter {
    pub(super) fn new() -> Self {
        let places = |places| Arc::new(Semaphore::new(places));
        Self {
            telling: places(MAX_REPORTING_WRITES),
            pressing: places(MAX_URGENT_WRITES),
            after_trouble: places(MAX_WRITES_AFTER_FAILURE),
            pressed: watch::Sender::new(0),
        }
    }

    /// For a write that a power-off or a power-on waits for.
    pub(super) async fn acquire_urgent(&self) -> WritePermit {
        let pressing = UrgentWriteCount::new(&self.pressed);
        WritePermit {
            _permit: acquire_permit(&self.pressing).await,
            _pressing: Some(pressing),
        }
    }

    /// For any write of a host whose last write failed.
    pub(super) async fn acquire_after_failure(&self) -> WritePermit {
        WritePermit {
            _permit: acquire_permit(&self.after_trouble).await,
            _pressing: None,
        }
    }

    /// For a write that only reports.
    pub(super) async fn acquire_reporting(&self) -> WritePermit {
        let permit = acquire_permit(&self.telling).await;
        let mut pressed = self.pressed.subscribe();
        let free = pressed.wait_for(|pressed| *pressed == 0);
        // After the delay the write goes ahead in any case.
        let _ = tokio::time::timeout(MAX_REPORTING_DELAY, free).await;
        WritePermit {
            _permit: permit,
            _pressing: None,
        }
    }
}

impl UrgentWriteCount {
    fn new(pressed: &watch::Sender<usize>) -> Self {
        pressed.send_modify(|pressed| *pressed += 1);
        Self(pressed.clone())
    }
}

impl Drop for UrgentWriteCount {
    fn drop(&mut self) {
        self.0.send_modify(|pressed| *pressed -= 1);
    }
}

/// Whether work waits for this write: it changes what others rely on, or what the next command
/// relies on. A state that was never read is not urgent: otherwise all hosts of a new cluster would
/// be.
pub(super) fn is_urgent_write(standing: &HostStatus, wanted: &HostStatus) -> bool {
    let id = |status: &HostStatus| {
        status
            .power
            .command
            .as_ref()
            .map(|command| command.id.clone())
    };
    let is_told = standing.powered_on.is_some() && standing.powered_on != wanted.powered_on;
    is_told
        || id(standing) != id(wanted)
        || standing.power.off_confirmed_at != wanted.power.off_confirmed_at
        || standing.pending_reboot_since != wanted.pending_reboot_since
        || standing.last_powered_on != wanted.last_powered_on
}

async fn acquire_permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(semaphore).acquire_owned().await;
    permit.expect("turns are never closed")
}

#[cfg(test)]
mod tests {
    use dogwatch_core::power::{PendingCommand, PendingCommandEnd, PowerCommand};
    use futures::FutureExt as _;
    use futures::future::join_all;
    use jiff::Timestamp;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_presses_waits_for_none_that_only_tells_and_for_no_host_in_trouble() {
        let turns = WriteLimiter::new();
        let telling: Vec<_> = (0..MAX_REPORTING_WRITES)
            .map(|_| turns.acquire_reporting().now_or_never())
            .collect();
        assert!(telling.iter().all(Option::is_some));
        assert!(turns.acquire_reporting().now_or_never().is_none());
        let troubled =
            (0..2 * MAX_WRITES_AFTER_FAILURE).map(|_| turns.acquire_after_failure().now_or_never());
        let troubled: Vec<_> = troubled.collect();
        assert!(troubled.iter().any(Option::is_none));
        let pressing = (0..MAX_URGENT_WRITES).map(|_| turns.acquire_urgent());
        assert!(join_all(pressing).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_only_tells_lets_those_that_press_go_first_but_not_for_ever() {
        let turns = WriteLimiter::new();
        let pressing = turns.acquire_urgent().await;
        let mut telling = Box::pin(turns.acquire_reporting());
        assert!((&mut telling).now_or_never().is_none());
        drop(pressing);
        assert!((&mut telling).now_or_never().is_some());
        let _pressing = turns.acquire_urgent().await;
        let began = tokio::time::Instant::now();
        let _turn = turns.acquire_reporting().await;
        assert!(began.elapsed() >= MAX_REPORTING_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn more_that_press_than_there_are_places_have_their_turn_one_after_the_other() {
        let turns = WriteLimiter::new();
        let all = (0..10 * MAX_URGENT_WRITES).map(|_| async {
            let _turn = turns.acquire_urgent().await;
            tokio::task::yield_now().await;
        });
        join_all(all).await;
        assert!(
            turns.acquire_reporting().now_or_never().is_some(),
            "nobody presses any more"
        );
    }

    #[test]
    fn somebody_waits_for_what_orders_a_reboot_and_for_nothing_else() {
        let at = Some(Timestamp::UNIX_EPOCH);
        let standing = HostStatus {
            powered_on: Some(true),
            ..HostStatus::default()
        };
        let off = PendingCommand {
            id: "p/1".into(),
            command: PowerCommand::Off,
            level: 0,
            target: String::new(),
            since: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            attempt: 1,
            before: 0,
            after_unknown: false,
            why: String::new(),
            end: PendingCommandEnd::Open,
        };
        let change = |change: &dyn Fn(&mut HostStatus)| {
            let mut wanted = standing.clone();
            change(&mut wanted);
            is_urgent_write(&standing, &wanted)
        };
        assert!(change(&|status| status.powered_on = Some(false)));
        assert!(change(&|status| status.pending_reboot_since = at));
        assert!(change(&|status| status.last_powered_on = at));
        assert!(change(&|status| status.power.off_confirmed_at = at));
        assert!(change(&|status| status.power.command = Some(off.clone())));
        assert!(!change(&|status| status.power.observed_at = at));
        assert!(!change(
            &|status| status.power.obeyed_in = Some("provisioned".into())
        ));
        let mut told = standing.clone();
        told.power.command = Some(off.clone());
        let mut ended = told.clone();
        ended.power.command = Some(PendingCommand {
            end: PendingCommandEnd::Answered {
                at: Timestamp::UNIX_EPOCH,
            },
            ..off
        });
        assert!(!is_urgent_write(&told, &ended), "how a command ended");
        assert!(
            !is_urgent_write(&HostStatus::default(), &standing),
            "the first reading"
        );
    }
}
