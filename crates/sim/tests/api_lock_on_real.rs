//! The lock API's cases on a real API server, one after the other, because they share its nodes.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod api_lock_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod api_lock_rounds;
#[allow(dead_code, reason = "each test binary uses its part")]
mod drain_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use api_lock_cases::world::World;
use api_lock_rounds::{Rounds, run};
use support::real::{client, client_by};

macro_rules! one_after_the_other {
    ($($name:ident)*) => {
        #[tokio::test]
        async fn every_case_holds_on_a_real_api_server() {
            let control_plane = dogwatch_testbed::ControlPlane::start().await.unwrap();
            let client = client_by(control_plane.admin_kubeconfig()).await;
            $(
                eprintln!("{}", stringify!($name));
                let world = World::on(client.clone()).await;
                api_lock_cases::$name(&world).await;
                world.end().await;
            )*
        }
    };
}

api_lock_cases::every_api_case!(one_after_the_other);

#[tokio::test]
async fn no_lock_is_lost_or_given_twice_on_a_real_api_server_with_random_deaths() {
    let world = World::on(client().await).await;
    let rounds = Rounds {
        rounds: 300,
        clients: 8,
        replicas: 2,
        seed: 11,
        longest_life: 150,
    };
    let result = run(&world, &rounds).await;
    assert_eq!(result.rounds, 300, "{result:?}");
    assert!(result.died > 30, "{result:?}");
}
