//! The remediator's sight and hand on the embedded API server: the cases, and what its faults show.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod remedy_client_cases;

use std::sync::Arc;

use dogwatch_sim::api::{ApiServer, Options};
use dogwatch_sim::clock::TokioClock;
use remedy_client_cases::world::World;

fn server() -> ApiServer {
    let epoch: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    ApiServer::new(Arc::new(TokioClock::starting_at(epoch)), Options::default())
}

async fn world(server: &ApiServer) -> World {
    World::on(server.client("people"), server.client("controller")).await
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            remedy_client_cases::$name(&world(&server()).await).await;
        }
    )* };
}

remedy_client_cases::every_case!(on_embedded);
