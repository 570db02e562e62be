//! The cases of the handshake on a real API server: with the rights that are shipped, no more and no
//! less, and with all admission policies in force.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod handshake_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::Duration;

use dogwatch_process::clock::Clock;
use dogwatch_testbed::{UsedRights, rights_in};

use handshake_cases as cases;
use handshake_cases::world::World;
use support::real::{ROLES, alone_on_real, apply, asked_by_controller, client};

const MEDIK8S_ROLE: &str = include_str!("../../../deploy/medik8s/rbac.yaml");

cases::every_case!(alone_on_real);

async fn world() -> World {
    let timeout = Duration::from_mins(2);
    let world = World::on(client().await, Clock::system(), timeout).await;
    let mut world = world.with_listeners().await;
    let here = format!("namespace: {}\n", world.home);
    apply(&MEDIK8S_ROLE.replace("namespace: dogwatch\n", &here)).await;
    world.leading = heal_rights::controller(&world.home).await;
    world
}

/// Nothing was refused in this case; and once all have run, no right of the handshake was unused.
async fn after(world: &World) {
    static USED: UsedRights = UsedRights::none();
    let shipped = rights_in(&[ROLES, MEDIK8S_ROLE], |why| why.contains("handshake:"));
    assert!(shipped.len() > 5, "{shipped:?}");
    USED.after(&asked_by_controller(&world.home).await, CASES, &shipped);
}
