//! Finds a process that calls the API server again and again without a pause.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// More calls of one process within [`PERIOD`] are a loop without a pause: under a simulated clock
/// it would never end.
const MAX_CALLS: u32 = 5_000;
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct CallRates {
    processes: BTreeMap<String, CallRate>,
    /// Not taken yet.
    found: Vec<String>,
}

struct CallRate {
    since: Instant,
    calls: u32,
}

impl CallRates {
    /// Whether the process has made too many calls. The call must get no answer then, so that time
    /// passes.
    pub(super) fn exceeds_with_call(&mut self, process: &str) -> bool {
        let now = Instant::now();
        let fresh = CallRate {
            since: now,
            calls: 0,
        };
        let rate = self.processes.entry(process.to_owned()).or_insert(fresh);
        if now.duration_since(rate.since) >= PERIOD {
            (rate.since, rate.calls) = (now, 0);
        }
        rate.calls += 1;
        if rate.calls == MAX_CALLS + 1 {
            self.found.push(format!(
                "{process} has called the API server more than {MAX_CALLS} times within a second"
            ));
        }
        rate.calls > MAX_CALLS
    }

    pub(super) fn take_found(&mut self) -> Vec<String> {
        std::mem::take(&mut self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_without_a_pause_is_found_once() {
        let mut rates = CallRates::default();
        for _ in 0..MAX_CALLS {
            assert!(!rates.exceeds_with_call("c1"));
            assert!(!rates.exceeds_with_call("n1"), "each has its own count");
        }
        assert!(rates.exceeds_with_call("c1"));
        assert!(rates.exceeds_with_call("c1"));
        assert_eq!(rates.take_found().len(), 1);
        assert!(rates.take_found().is_empty());
        tokio::time::advance(PERIOD).await;
        assert!(!rates.exceeds_with_call("c1"));
    }
}
