use std::cell::Cell;
use std::time::Duration;

use dogwatch_core::Now;

use super::*;

fn term(number: u64, until: Duration, clock: &ProcessClock) -> LeaderTerm {
    let wall = clock.now().wall_after(until);
    LeaderTerm {
        number,
        until: Now { mono: until, wall },
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_term_that_nobody_ended_is_over_when_its_time_is() {
    let clock = ProcessClock::system_clock();
    let (terms, leadership) = LeadershipHandle::new(clock.clone());
    terms.send_replace(Some(term(1, 10 * SECOND, &clock)));
    assert!(leadership.current_term().is_some());
    assert!(leadership.is_leading_for(9 * SECOND));
    assert!(
        !leadership.is_leading_for(10 * SECOND),
        "it would end after the term"
    );
    // No update arrives: the process slept.
    tokio::time::advance(10 * SECOND).await;
    assert_eq!(leadership.current_term(), None);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_in_time_does_not_interrupt_and_a_gap_does() {
    let clock = ProcessClock::system_clock();
    let (terms, leadership) = LeadershipHandle::new(clock.clone());
    let first = term(1, 10 * SECOND, &clock);
    terms.send_replace(Some(first));
    let lost = tokio::spawn({
        let leadership = leadership.clone();
        async move { leadership.wait_until_lost(first).await }
    });
    tokio::time::sleep(9 * SECOND).await;
    terms.send_replace(Some(term(1, 20 * SECOND, &clock)));
    tokio::time::sleep(5 * SECOND).await;
    assert!(!lost.is_finished());
    terms.send_replace(Some(term(2, 30 * SECOND, &clock)));
    lost.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn work_is_begun_anew_in_each_term_and_dropped_at_its_end() {
    let clock = ProcessClock::system_clock();
    let (terms, leadership) = LeadershipHandle::new(clock.clone());
    let (stopper, stop) = StopSignal::new();
    let (begun, running) = (Cell::new(0), Cell::new(0));
    let work = leadership.run_while_leading(&stop, |_| {
        begun.set(begun.get() + 1);
        let running = Running::begin(&running);
        async move {
            std::future::pending::<()>().await;
            drop(running);
        }
    });
    let story = async {
        tokio::time::sleep(SECOND).await;
        assert_eq!(
            (begun.get(), running.get()),
            (0, 0),
            "who does not lead does nothing"
        );
        terms.send_replace(Some(term(1, 10 * SECOND, &clock)));
        tokio::time::sleep(SECOND).await;
        assert_eq!((begun.get(), running.get()), (1, 1));
        tokio::time::sleep(10 * SECOND).await;
        assert_eq!((begun.get(), running.get()), (1, 0), "the term is over");
        terms.send_replace(Some(term(2, 30 * SECOND, &clock)));
        tokio::time::sleep(SECOND).await;
        assert_eq!((begun.get(), running.get()), (2, 1));
        stopper.signal_stop();
    };
    tokio::join!(work, story);
    assert_eq!(running.get(), 0);
}

struct Running<'a>(&'a Cell<u32>);

impl<'a> Running<'a> {
    fn begin(count: &'a Cell<u32>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
