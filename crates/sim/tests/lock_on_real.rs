//! The lock's cases on a real API server.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod lock_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use lock_cases::world::World;
use support::real::client;

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            lock_cases::$name(&World::on(client().await).await).await;
        }
    )* };
}

lock_cases::every_case!(on_real);
