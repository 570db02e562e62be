//! Waits for a deadline.

use tokio::time::Instant;

/// Returns at that time; never returns if `time` is `None`.
pub async fn sleep_until_deadline(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
