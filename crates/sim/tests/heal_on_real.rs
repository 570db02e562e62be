//! The healer's cases on a real API server, with short times, exactly the rights that are shipped,
//! and all admission policies active.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_cases;
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::Duration;

use dogwatch_core::healer::HealerConfig;
use dogwatch_core::reboot;

use heal_cases as cases;
use heal_cases::world::World;
use support::real::{alone_on_real, client};

cases::every_case!(alone_on_real);

async fn world() -> World {
    let mut world = World::on(client().await, short()).await;
    world.leading = heal_rights::controller(&world.namespace).await;
    world
}

async fn after(world: &World) {
    heal_rights::after(&world.namespace, CASES).await;
}

fn short() -> HealerConfig {
    let seconds = Duration::from_secs;
    HealerConfig {
        heal_after: seconds(4),
        abort_after: seconds(1),
        presence_after: seconds(2),
        lock_stale_after: seconds(60),
        flags: reboot::RebootConfig {
            drain_timeout: seconds(5),
            reboot_timeout: seconds(3),
            settle: seconds(1),
            ..reboot::RebootConfig::default()
        },
    }
}
