//! The power controller's cases on a real API server, with short times and the rights that are
//! shipped.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real API server has the real time"
)]

#[allow(dead_code, reason = "each test binary uses its part")]
mod power_cases;
mod power_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use jiff::Timestamp;

use power_cases as cases;
use power_cases::world::{World, short};
use support::real::{ALONE, alone_on_real, client};

every_power_case!(alone_on_real);

async fn world() -> World {
    let world = world_without_secrets().await;
    power_rights::in_namespace(&world.namespace).await;
    world
}

/// A world whose controller may not read the Secrets of its namespace.
async fn world_without_secrets() -> World {
    let mut world = World::on(client().await, short(), Timestamp::now()).await;
    world.leading = power_rights::controller().await;
    world
}

async fn after(world: &World) {
    power_rights::after(&world.namespace, CASES).await;
}

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_said_with_the_role_that_lacks_and_read_when_it_is_given()
{
    let _alone = ALONE.lock().await;
    let world = world_without_secrets().await;
    let _bmc = world.host("h0").await;
    let _process = world.process("first");
    world
        .until("it says so", || async {
            let (status, reason) = world.condition("h0", "PowerControlReady").await;
            status == "False" && reason == "SecretForbidden"
        })
        .await;
    power_rights::in_namespace(&world.namespace).await;
    world.until_ready("h0").await;
    world.end().await;
}
