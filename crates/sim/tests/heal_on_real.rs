//! The healer's cases on a real API server, with short times: with the rights that are shipped, no
//! more and no less, and with all admission policies in force.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_cases;
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::Duration;

use dogwatch_core::heal::Config;
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

fn short() -> Config {
    let seconds = Duration::from_secs;
    Config {
        heal_after: seconds(4),
        abort_after: seconds(1),
        presence_after: seconds(2),
        lock_stale_after: seconds(60),
        flags: reboot::Config {
            drain_timeout: seconds(5),
            reboot_timeout: seconds(3),
            settle: seconds(1),
            ..reboot::Config::default()
        },
    }
}
