//! Waiting.

use tokio::time::Instant;

/// Returns at that time; never, where there is none.
pub async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
