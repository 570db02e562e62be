//! Many clients that lock and unlock, some of which die meanwhile, and a check that no two hold the
//! lock.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_controller::lock::engine::LockEngine;
use dogwatch_controller::lock::service::{LockRequest, LockRequester, LockService as _, WaitMode};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::api_lock_cases::world::{World, have, is_held, leave};

#[expect(
    clippy::struct_field_names,
    reason = "rounds of locking are what it counts"
)]
pub struct Rounds {
    /// Number of times that the lock is held and released.
    pub rounds: u32,
    /// Number of concurrent clients.
    pub clients: u32,
    /// Number of replicas; each call goes to another one.
    pub replicas: u32,
    /// Determines the clients' choices.
    pub seed: u64,
    /// Milliseconds within which a client that dies does so.
    pub longest_life: u64,
}

#[derive(Debug, Default, Clone)]
pub struct Done {
    pub rounds: u32,
    /// Number of calls whose client died before the answer.
    pub died: u32,
}

struct Referee {
    holding: Mutex<BTreeSet<String>>,
    left: AtomicU32,
    rounds: AtomicU32,
    died: AtomicU32,
}

/// Runs the clients; panics if a lock is given twice or lost.
pub async fn run(world: &World, rounds: &Rounds) -> Done {
    let replicas: Vec<LockEngine> = (0..rounds.replicas).map(|_| world.replica()).collect();
    let referee = Arc::new(Referee {
        holding: Mutex::default(),
        left: AtomicU32::new(rounds.rounds),
        rounds: AtomicU32::new(0),
        died: AtomicU32::new(0),
    });
    let clients = (0..rounds.clients).map(|number| {
        let mut random =
            ChaCha8Rng::seed_from_u64(rounds.seed.wrapping_mul(1000) + u64::from(number));
        let (referee, replicas) = (Arc::clone(&referee), replicas.clone());
        let longest = rounds.longest_life;
        let name = format!("h{number}");
        async move {
            let took = |left: u32| left.checked_sub(1);
            while referee
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, took)
                .is_ok()
            {
                one_round(world, &referee, &replicas, &name, &mut random, longest).await;
            }
        }
    });
    futures::future::join_all(clients).await;
    world.until_free().await;
    Done {
        rounds: referee.rounds.load(Ordering::Relaxed),
        died: referee.died.load(Ordering::Relaxed),
    }
}

async fn one_round(
    world: &World,
    referee: &Referee,
    replicas: &[LockEngine],
    name: &str,
    random: &mut ChaCha8Rng,
    longest: u64,
) {
    let client = LockRequester::FleetLock {
        group: "rounds".into(),
        id: name.into(),
    };
    let any = |random: &mut ChaCha8Rng| replicas[random.random_range(0..replicas.len())].clone();
    loop {
        let asked = LockRequest {
            client: client.clone(),
            wait: WaitMode::Always,
        };
        let call = any(random).lock_host(asked);
        if random.random_bool(0.5) {
            let life = Duration::from_millis(random.random_range(0..longest));
            match tokio::time::timeout(life, call).await {
                Ok(answer) if is_held(&answer) => break,
                Ok(answer) => panic!("{name}: {answer:?}"),
                Err(_) => _ = referee.died.fetch_add(1, Ordering::Relaxed),
            }
        } else {
            let answer = call.await;
            assert!(is_held(&answer), "{name}: {answer:?}");
            break;
        }
    }
    {
        let mut holding = referee.holding.lock().unwrap();
        assert!(holding.insert(name.to_owned()));
        assert_eq!(holding.len(), 1, "given twice: {holding:?}");
    }
    if random.random_bool(0.3) {
        have(&any(random), &client).await;
    }
    tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
    let held = world.held().await;
    assert!(
        held.len() == 1 && held[0].0.ends_with(name),
        "lost by {name}: {held:?}"
    );
    referee.holding.lock().unwrap().remove(name);
    leave(&any(random), &client).await;
    referee.rounds.fetch_add(1, Ordering::Relaxed);
}
