//! The cases of reboots and remediations on a real API server: with exactly the rights that are
//! shipped, and with all admission policies active.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod handshake_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::Duration;

use dogwatch_runtime::clock::ProcessClock;
use dogwatch_testbed::{UsedRights, rights_in_manifests};

use handshake_cases as cases;
use handshake_cases::world::World;
use support::real::{ROLES, alone_on_real, apply, asked_by_controller, client};

const MEDIK8S_ROLE: &str = include_str!("../../../deploy/medik8s/rbac.yaml");

cases::every_case!(alone_on_real);

async fn world() -> World {
    let timeout = Duration::from_mins(2);
    let world = World::on(client().await, ProcessClock::system_clock(), timeout).await;
    let mut world = world.with_listeners().await;
    let here = format!("namespace: {}\n", world.home);
    apply(&MEDIK8S_ROLE.replace("namespace: dogwatch\n", &here)).await;
    world.leading = heal_rights::controller(&world.home).await;
    world
}

/// Checks that nothing was refused in this case and, after the last case, that every right was
/// used.
async fn after(world: &World) {
    static USED: UsedRights = UsedRights::none();
    let shipped = rights_in_manifests(&[ROLES, MEDIK8S_ROLE], |why| why.contains("handshake:"));
    assert!(shipped.len() > 5, "{shipped:?}");
    USED.record_test(&asked_by_controller(&world.home).await, CASES, &shipped);
}
