//! Whose write is sent first: what a power-off waits for goes before what only tells.
//!
//! Whatever happens to many hosts at once (a lead begins, a rack is fenced) wants more written than an API
//! server takes at a time: each write under way has a connection, and the last of them waits for the work
//! of all. Seen with 10,000 hosts whose lead began, before anything was limited: 50 s of writes under way,
//! and 340 MiB for them; the lead's own renewal was behind them.
//!
//! **Promises:**
//! - A write that a power-off or a power-on waits for waits for none that only tells.
//! - What only tells waits at most [`PATIENCE`] for the others, and then for its like alone.
//! - A host that could not be written holds a turn of the others once, for one deadline, until it could be
//!   again: whatever is wrong with some hosts delays those.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::HostStatus;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Events, and writes that only tell: an API server answers some hundreds a second on as many connections.
const TELLING: usize = 8;
/// Writes that somebody waits for. More at once take no less time altogether.
const PRESSING: usize = 32;
/// Writes of hosts whose last one failed.
const AFTER_TROUBLE: usize = 32;
/// How long one that only tells waits for those that press: 100 fences at once have written what they are
/// about to command by then.
const PATIENCE: Duration = Duration::from_secs(2);

/// The turns of one process. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    telling: Arc<Semaphore>,
    pressing: Arc<Semaphore>,
    after_trouble: Arc<Semaphore>,
    /// How many that press are under way, or wait.
    pressed: watch::Sender<usize>,
}

/// A turn; given up when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
    _pressing: Option<Pressing>,
}

/// Counted from when it waits until its write was answered.
#[derive(Debug)]
struct Pressing(watch::Sender<usize>);

impl Turns {
    /// Nobody has one.
    pub(super) fn new() -> Self {
        let places = |places| Arc::new(Semaphore::new(places));
        Self {
            telling: places(TELLING),
            pressing: places(PRESSING),
            after_trouble: places(AFTER_TROUBLE),
            pressed: watch::Sender::new(0),
        }
    }

    /// For a write that a power-off or a power-on waits for.
    pub(super) async fn pressing(&self) -> Turn {
        let pressing = Pressing::new(&self.pressed);
        Turn {
            _permit: take(&self.pressing).await,
            _pressing: Some(pressing),
        }
    }

    /// For any write of a host whose last one failed.
    pub(super) async fn after_trouble(&self) -> Turn {
        Turn {
            _permit: take(&self.after_trouble).await,
            _pressing: None,
        }
    }

    /// For a write that only tells.
    pub(super) async fn telling(&self) -> Turn {
        let permit = take(&self.telling).await;
        let mut pressed = self.pressed.subscribe();
        let free = pressed.wait_for(|pressed| *pressed == 0);
        // Whoever has waited long enough goes all the same.
        let _ = tokio::time::timeout(PATIENCE, free).await;
        Turn {
            _permit: permit,
            _pressing: None,
        }
    }
}

impl Pressing {
    fn new(pressed: &watch::Sender<usize>) -> Self {
        pressed.send_modify(|pressed| *pressed += 1);
        Self(pressed.clone())
    }
}

impl Drop for Pressing {
    fn drop(&mut self) {
        self.0.send_modify(|pressed| *pressed -= 1);
    }
}

/// Whether somebody waits for this write: it moves what others go by, or what the next command goes by.
/// Never read is no news for anybody: else all hosts would press when a cluster is new.
pub(super) fn presses(standing: &HostStatus, wanted: &HostStatus) -> bool {
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

async fn take(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(semaphore).acquire_owned().await;
    permit.expect("turns are never closed")
}

#[cfg(test)]
mod tests {
    use dogwatch_core::power::{Command, End, Intention};
    use futures::FutureExt as _;
    use futures::future::join_all;
    use jiff::Timestamp;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_presses_waits_for_none_that_only_tells_and_for_no_host_in_trouble() {
        let turns = Turns::new();
        let telling: Vec<_> = (0..TELLING)
            .map(|_| turns.telling().now_or_never())
            .collect();
        assert!(telling.iter().all(Option::is_some));
        assert!(turns.telling().now_or_never().is_none());
        let troubled = (0..2 * AFTER_TROUBLE).map(|_| turns.after_trouble().now_or_never());
        let troubled: Vec<_> = troubled.collect();
        assert!(troubled.iter().any(Option::is_none));
        let pressing = (0..PRESSING).map(|_| turns.pressing());
        assert!(join_all(pressing).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_only_tells_lets_those_that_press_go_first_but_not_for_ever() {
        let turns = Turns::new();
        let pressing = turns.pressing().await;
        let mut telling = Box::pin(turns.telling());
        assert!((&mut telling).now_or_never().is_none());
        drop(pressing);
        assert!((&mut telling).now_or_never().is_some());
        let _pressing = turns.pressing().await;
        let began = tokio::time::Instant::now();
        let _turn = turns.telling().await;
        assert!(began.elapsed() >= PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn more_that_press_than_there_are_places_have_their_turn_one_after_the_other() {
        let turns = Turns::new();
        let all = (0..10 * PRESSING).map(|_| async {
            let _turn = turns.pressing().await;
            tokio::task::yield_now().await;
        });
        join_all(all).await;
        assert!(
            turns.telling().now_or_never().is_some(),
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
        let off = Intention {
            id: "p/1".into(),
            command: Command::Off,
            level: 0,
            target: String::new(),
            since: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            attempt: 1,
            before: 0,
            after_unknown: false,
            why: String::new(),
            end: End::Open,
        };
        let change = |change: &dyn Fn(&mut HostStatus)| {
            let mut wanted = standing.clone();
            change(&mut wanted);
            presses(&standing, &wanted)
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
        ended.power.command = Some(Intention {
            end: End::Answered {
                at: Timestamp::UNIX_EPOCH,
            },
            ..off
        });
        assert!(!presses(&told, &ended), "how a command ended");
        assert!(
            !presses(&HostStatus::default(), &standing),
            "the first reading"
        );
    }
}
