//! The lock API's lock on a real API server: many rounds with clients that die at random, and a
//! thousand clients that wait at one replica: what they cost, in which order they are served, and how
//! long the lock stands free between two of them.

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

use std::time::{Duration, Instant};

use api_lock_cases::world::{World, host, is_held};
use api_lock_rounds::{Rounds, run};
use dogwatch_controller::lock::service::{LockRequest, LockService as _};
use tokio::sync::mpsc;

const WAITERS: usize = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds: u32 = std::env::var("ROUNDS").map_or(10_000, |text| text.parse().unwrap());
    let waiters: usize = std::env::var("WAITERS").map_or(WAITERS, |text| text.parse().unwrap());
    let control_plane = dogwatch_testbed::shared().await;
    let kubeconfig = kube::config::Kubeconfig::read_from(control_plane.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    let client = kube::Client::try_from(config.await.unwrap()).unwrap();
    many_wait(&World::on(client.clone()).await, waiters).await;
    many_rounds(&World::on(client).await, rounds).await;
}

async fn many_rounds(world: &World, rounds: u32) {
    let begun = Instant::now();
    let asked = Rounds {
        rounds,
        clients: 16,
        replicas: 2,
        seed: 1,
        longest_life: 200,
    };
    let done = run(world, &asked).await;
    println!(
        "{} rounds of lock and unlock, {} calls whose client died: none lost, none given twice, {:.0?}",
        done.rounds,
        done.died,
        begun.elapsed()
    );
}

/// When a call was served, and when its client let go.
struct Served {
    number: usize,
    won: Instant,
    left: Instant,
}

async fn many_wait(world: &World, waiters: usize) {
    let replica = world.replica();
    let first = host("first");
    api_lock_cases::world::have(&replica, &first).await;
    let before = resident();
    let (told, mut served) = mpsc::unbounded_channel();
    let mut asked = Vec::new();
    for number in 0..waiters {
        let (replica, told) = (replica.clone(), told.clone());
        let waiting = replica.waiting();
        asked.push(Instant::now());
        let asking = replica.clone();
        tokio::spawn(async move {
            let client = host(&format!("h{number}"));
            let request = LockRequest {
                client: client.clone(),
                wait: true,
            };
            let answer = asking.lock(request).await;
            assert!(is_held(&answer), "{answer:?}");
            let won = Instant::now();
            asking.unlock(client).await;
            told.send(Served {
                number,
                won,
                left: Instant::now(),
            })
            .unwrap();
        });
        while replica.waiting() == waiting {
            tokio::task::yield_now().await;
        }
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!(
        "{waiters} wait at one replica: {} KiB resident, {} KiB before",
        resident(),
        before
    );
    api_lock_cases::world::leave(&replica, &first).await;
    let mut order: Vec<Served> = Vec::new();
    while order.len() < waiters {
        order.push(served.recv().await.unwrap());
    }
    order.sort_by_key(|served| served.won);
    println!("worst inversion: {:?}", worst_inversion(&order, &asked));
    let mut gaps: Vec<Duration> = order
        .windows(2)
        .map(|pair| pair[1].won.saturating_duration_since(pair[0].left))
        .collect();
    gaps.sort();
    println!(
        "free between two: p50 {:?}, p99 {:?}, worst {:?}",
        gaps[gaps.len() / 2],
        gaps[gaps.len() * 99 / 100],
        gaps.last()
    );
}

/// The longest that anybody was served before one who had come earlier, by the difference of their
/// arrivals.
fn worst_inversion(order: &[Served], asked: &[Instant]) -> Duration {
    let mut worst = Duration::ZERO;
    let mut oldest_after: Vec<Instant> = Vec::new();
    for served in order.iter().rev() {
        let came = asked[served.number];
        let oldest = oldest_after.last().copied().unwrap_or(came);
        worst = worst.max(came.saturating_duration_since(oldest));
        oldest_after.push(oldest.min(came));
    }
    worst
}

/// This process' resident memory, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
