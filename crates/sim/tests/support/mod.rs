//! Shared helpers of the tests: servers, clients, leading processes, and waits.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod admission;
pub mod call_trace;
pub mod embedded;
pub mod leader;
pub mod life;
pub mod objects;
pub mod real;

use std::time::Duration;

use tokio::time::Instant;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until `seen` is true; checks every 50 ms.
pub async fn until<F: Future<Output = bool>>(what: &str, seen: impl Fn() -> F) {
    until_by(PATIENCE, Duration::from_millis(50), what, seen).await;
}

/// The same, with this time limit and this interval.
pub async fn until_by<F: Future<Output = bool>>(
    patience: Duration,
    pause: Duration,
    what: &str,
    seen: impl Fn() -> F,
) {
    let deadline = Instant::now() + patience;
    while !seen().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(pause).await;
    }
}
