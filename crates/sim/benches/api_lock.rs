//! Many rounds of lock and unlock behind the lock API on a real API server, with clients that die at
//! random: that no lock is lost, and none given twice. Each group has two replicas in this process and
//! sixteen clients, half of whose calls may die; a referee looks at the Leases while a client holds.
//!
//! `ROUNDS` says how many (10,000).

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the bench")]

#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the bench uses its part"
)]
#[path = "../tests/api_lock_cases/mod.rs"]
mod api_lock_cases;
#[allow(dead_code, reason = "the bench uses its part")]
#[path = "../tests/api_lock_rounds/mod.rs"]
mod api_lock_rounds;
#[allow(dead_code, reason = "the bench uses its part")]
#[path = "../tests/drain_cases/mod.rs"]
mod drain_cases;
#[allow(dead_code, reason = "the bench uses its part")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use api_lock_cases::world::World;
use api_lock_rounds::{Done, Rounds, run};
use dogwatch_k8s::Client;
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_testbed::ControlPlane;
use dogwatch_testbed::bench::print_figure;

const ROUNDS: u32 = 10_000;
/// So many at a time: one after the other they would mostly wait for the API server.
const GROUPS: u32 = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds: u32 = std::env::var("ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let builder = ControlPlane::builder().with_controllers([]);
    let plane = builder.start().await.expect("the control plane starts");
    let client = connect_by_kubeconfig(plane.admin_kubeconfig())
        .await
        .expect("a kubeconfig");
    let begun = Instant::now();
    let groups = (0..GROUPS).map(|group| in_a_group(&client, group, rounds / GROUPS));
    let done = futures::future::join_all(groups).await;
    let rounds: u32 = done.iter().map(|done| done.rounds).sum();
    let died: u32 = done.iter().map(|done| done.died).sum();
    eprintln!("{:.0?} for {rounds} rounds", begun.elapsed());
    // The referee panics at the first that is.
    let what = "locks lost or given twice";
    let measured = format!("none in {rounds} rounds, {died} calls died");
    print_figure(what, &measured, "none", true);
}

/// In a namespace of its own.
async fn in_a_group(client: &Client, group: u32, rounds: u32) -> Done {
    let asked = Rounds {
        rounds,
        clients: 16,
        replicas: 2,
        seed: u64::from(group),
        longest_life: 200,
    };
    let world = World::on(client.clone()).await;
    let done = run(&world, &asked).await;
    eprintln!(
        "group {group}: {} rounds, {} calls died",
        done.rounds, done.died
    );
    done
}
