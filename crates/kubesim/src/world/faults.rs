//! Random faults for the calls of chosen users.

use std::sync::Mutex;
use std::time::Duration;

use crate::api::{FaultEffect, RequestInfo};
use crate::seed::{RandomStream, SimulationSeed};

/// Probabilities of random faults, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChaosRates {
    /// Requests that are lost.
    pub lose: u32,
    /// Answers that are lost.
    pub lose_answer: u32,
    /// Requests that arrive twice, the second up to `slowest` later.
    pub duplicate: u32,
    /// Requests, and as many answers, that are late by up to `slowest`.
    pub delay: u32,
    pub slowest: Duration,
}

/// The active random faults, for [`ApiServer::set_faults`](crate::api::ApiServer::set_faults).
#[derive(Debug)]
pub struct FaultPlan(Mutex<FaultPlanState>);

#[derive(Debug)]
struct FaultPlanState {
    chaos: Vec<(String, ChaosRates)>,
    seed: SimulationSeed,
    streams: std::collections::BTreeMap<String, RandomStream>,
}

impl FaultPlan {
    /// A plan without faults. It uses this seed, with a separate stream for each user.
    pub fn new(seed: SimulationSeed) -> Self {
        Self(Mutex::new(FaultPlanState {
            chaos: Vec::new(),
            seed,
            streams: std::collections::BTreeMap::new(),
        }))
    }

    /// Adds random faults for users whose names begin with `users`.
    pub fn add_chaos(&self, users: &str, chaos: ChaosRates) {
        self.lock_state().chaos.push((users.to_owned(), chaos));
    }

    /// Removes all random faults.
    pub fn clear(&self) {
        self.lock_state().chaos.clear();
    }

    /// The faults of this call.
    pub fn effects_for_request(&self, request: &RequestInfo) -> Vec<FaultEffect> {
        self.lock_state().effects_by_chance(request)
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, FaultPlanState> {
        self.0
            .lock()
            .expect("nothing panics while the plan is held")
    }
}

impl FaultPlanState {
    /// Draws the same number of times for every call, so that a fault of one call does not change
    /// the next.
    fn effects_by_chance(&mut self, request: &RequestInfo) -> Vec<FaultEffect> {
        let chaos = self
            .chaos
            .iter()
            .find(|(users, _)| request.user.starts_with(users));
        let Some((_, chaos)) = chaos.cloned() else {
            return Vec::new();
        };
        let seed = self.seed;
        let user = &request.user;
        let stream = self
            .streams
            .entry(user.clone())
            .or_insert_with(|| seed.stream_for_actor(&format!("faults/{user}")));
        let slowest = u64::try_from(chaos.slowest.as_millis()).unwrap_or(u64::MAX);
        let mut hit = |likely: u32| stream.next_below(1000) < u64::from(likely);
        let (lose, lose_answer, duplicate) = (
            hit(chaos.lose),
            hit(chaos.lose_answer),
            hit(chaos.duplicate),
        );
        let (late, late_answer) = (hit(chaos.delay), hit(chaos.delay));
        let mut span = || Duration::from_millis(stream.next_below(slowest.saturating_add(1)));
        let (first, second, third) = (span(), span(), span());
        [
            (late, FaultEffect::DelayRequest(first)),
            (late_answer, FaultEffect::DelayAnswer(second)),
            (duplicate, FaultEffect::Duplicate(third)),
            (lose, FaultEffect::LoseRequest),
            (lose_answer, FaultEffect::LoseAnswer),
        ]
        .into_iter()
        .filter_map(|(hit, effect)| hit.then_some(effect))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ApiVerb;

    fn call(user: &str) -> RequestInfo {
        RequestInfo {
            user: user.into(),
            verb: Some(ApiVerb::Create),
            resource: "pods".into(),
            subresource: String::new(),
            namespace: "n".into(),
            name: "a".into(),
            nth: 0,
        }
    }

    #[test]
    fn chance_hits_about_as_often_as_told_and_each_user_apart() {
        let draw = |users: &[&str]| {
            let plan = FaultPlan::new(SimulationSeed(5));
            plan.add_chaos(
                "",
                ChaosRates {
                    lose: 100,
                    ..ChaosRates::default()
                },
            );
            let mut hits = Vec::new();
            for _ in 0..1000 {
                for user in users {
                    let effects = plan.effects_for_request(&call(user));
                    if *user == "a" {
                        hits.push(!effects.is_empty());
                    }
                }
            }
            hits
        };
        let hits = draw(&["a"]);
        assert_eq!(hits, draw(&["a", "b"]), "another user changes nothing");
        let count = hits.iter().filter(|hit| **hit).count();
        assert!((60..140).contains(&count), "{count}");
    }
}
