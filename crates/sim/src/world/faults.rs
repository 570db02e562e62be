//! Faults as a script says them: which calls of whom go wrong, how, and how often.
//!
//! ```text
//! lose-answer patch leases by dogwatch/n1 once
//! delay 5s create pods/eviction by dogwatch/*
//! refuse 503 * * by * 3 times
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use crate::api::{FaultEffect, RequestInfo};
use crate::seed::{Seed, Stream};

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub effect: FaultEffect,
    /// The verb in lower case; `*` is any.
    pub verb: String,
    /// The resource, with its subresource after a slash; `*` is any.
    pub resource: String,
    /// The user; a `*` at its end stands for any rest.
    pub user: String,
    /// How many calls it hits; `None` is all of them.
    pub times: Option<u32>,
}

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no fault: {why}; write EFFECT [DURATION|CODE] VERB RESOURCE by USER [once|N times]"
)]
pub struct BadFault {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Fault {
    /// Whether the call is one of those that it hits.
    pub fn hits(&self, request: &RequestInfo) -> bool {
        let verb = request.verb.map(|verb| format!("{verb:?}").to_lowercase());
        let resource = match request.subresource.as_str() {
            "" => request.resource.clone(),
            subresource => format!("{}/{subresource}", request.resource),
        };
        let user = match self.user.strip_suffix('*') {
            Some(start) => request.user.starts_with(start),
            None => request.user == self.user,
        };
        user && (self.verb == "*" || verb.as_ref() == Some(&self.verb))
            && (self.resource == "*" || resource == self.resource)
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let bad = |why| BadFault {
            text: text.to_owned(),
            why,
        };
        let mut words = text.split_whitespace();
        let mut word = |why| words.next().ok_or_else(|| bad(why));
        let effect = word("it is empty")?.to_owned();
        let effect = match effect.as_str() {
            "lose" => FaultEffect::LoseRequest,
            "lose-answer" => FaultEffect::LoseAnswer,
            "cut-watches" => FaultEffect::CutWatches,
            "refuse" => FaultEffect::Refuse(
                word("a code is missing")?
                    .parse()
                    .map_err(|_| bad("its code is no number"))?,
            ),
            "delay" => {
                FaultEffect::DelayRequest(duration(word("a duration is missing")?).map_err(bad)?)
            }
            "delay-answer" => {
                FaultEffect::DelayAnswer(duration(word("a duration is missing")?).map_err(bad)?)
            }
            "duplicate" => {
                FaultEffect::Duplicate(duration(word("a duration is missing")?).map_err(bad)?)
            }
            _ => return Err(bad("its effect is unknown")),
        };
        let verb = word("the verb is missing")?.to_owned();
        let resource = word("the resource is missing")?.to_owned();
        if word("the user is missing")? != "by" {
            return Err(bad("before the user stands \"by\""));
        }
        let user = word("the user is missing")?.to_owned();
        let times = match words.collect::<Vec<_>>()[..] {
            [] => None,
            ["once"] => Some(1),
            [count, "times"] => Some(count.parse().map_err(|_| bad("its count is no number"))?),
            _ => return Err(bad("something follows that means nothing")),
        };
        Ok(Self {
            effect,
            verb,
            resource,
            user,
            times,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Duration| dogwatch_core::duration::format(*time);
        let effect = match &self.effect {
            FaultEffect::LoseRequest => "lose".to_owned(),
            FaultEffect::LoseAnswer => "lose-answer".to_owned(),
            FaultEffect::CutWatches => "cut-watches".to_owned(),
            FaultEffect::Refuse(code) => format!("refuse {code}"),
            FaultEffect::DelayRequest(span) => format!("delay {}", time(span)),
            FaultEffect::DelayAnswer(span) => format!("delay-answer {}", time(span)),
            FaultEffect::Duplicate(span) => format!("duplicate {}", time(span)),
        };
        write!(
            formatter,
            "{effect} {} {} by {}",
            self.verb, self.resource, self.user
        )?;
        match self.times {
            None => Ok(()),
            Some(1) => formatter.write_str(" once"),
            Some(count) => write!(formatter, " {count} times"),
        }
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    dogwatch_core::duration::parse(text).map_err(|_| "its duration is none")
}

/// How likely calls go wrong by themselves, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chaos {
    /// Requests that are lost.
    pub lose: u32,
    /// Answers that are lost.
    pub lose_answer: u32,
    /// Requests that come twice, the second up to `slowest` later.
    pub duplicate: u32,
    /// Requests, and as many answers, that are late by up to `slowest`.
    pub delay: u32,
    /// The longest delay.
    pub slowest: Duration,
}

/// The rules in force, to be given to [`ApiServer::set_faults`](crate::api::ApiServer::set_faults).
#[derive(Debug)]
pub struct FaultPlan(Mutex<State>);

#[derive(Debug)]
struct State {
    faults: Vec<Fault>,
    chaos: Vec<(String, Chaos)>,
    seed: Seed,
    streams: std::collections::BTreeMap<String, Stream>,
}

impl FaultPlan {
    /// Nothing goes wrong yet. Chaos draws from this seed, for each user apart.
    pub fn new(seed: Seed) -> Self {
        Self(Mutex::new(State {
            faults: Vec::new(),
            chaos: Vec::new(),
            seed,
            streams: std::collections::BTreeMap::new(),
        }))
    }

    /// Adds a rule. A call that several hit meets them all.
    pub fn add(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// Lets calls of users whose names start like this go wrong by chance.
    pub fn unleash(&self, users: &str, chaos: Chaos) {
        self.state().chaos.push((users.to_owned(), chaos));
    }

    /// All is well again.
    pub fn clear(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.chaos.clear();
    }

    /// What goes wrong with this call.
    pub fn effects(&self, request: &RequestInfo) -> Vec<FaultEffect> {
        let mut state = self.state();
        let mut effects = state.by_rule(request);
        effects.extend(state.by_chance(request));
        effects
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0
            .lock()
            .expect("nothing panics while the plan is held")
    }
}

impl State {
    fn by_rule(&mut self, request: &RequestInfo) -> Vec<FaultEffect> {
        let mut effects = Vec::new();
        for fault in self.faults.iter_mut().filter(|fault| fault.hits(request)) {
            effects.push(fault.effect.clone());
            fault.times = fault.times.map(|times| times.saturating_sub(1));
        }
        self.faults.retain(|fault| fault.times != Some(0));
        effects
    }

    /// Draws as often for every call, so that what hits one changes nothing for the next.
    fn by_chance(&mut self, request: &RequestInfo) -> Vec<FaultEffect> {
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
            .or_insert_with(|| seed.stream(&format!("faults/{user}")));
        let slowest = u64::try_from(chaos.slowest.as_millis()).unwrap_or(u64::MAX);
        let mut hit = |likely: u32| stream.below(1000) < u64::from(likely);
        let (lose, lose_answer, duplicate) = (
            hit(chaos.lose),
            hit(chaos.lose_answer),
            hit(chaos.duplicate),
        );
        let (late, late_answer) = (hit(chaos.delay), hit(chaos.delay));
        let mut span = || Duration::from_millis(stream.below(slowest.saturating_add(1)));
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
    use crate::api::Verb;

    fn call(user: &str, subresource: &str) -> RequestInfo {
        RequestInfo {
            user: user.into(),
            verb: Some(Verb::Create),
            resource: "pods".into(),
            subresource: subresource.into(),
            namespace: "n".into(),
            name: "a".into(),
            nth: 0,
        }
    }

    #[test]
    fn a_fault_reads_back_as_it_was_written() {
        for text in [
            "lose patch leases by dogwatch/n1 once",
            "lose-answer * * by * 3 times",
            "delay 5s create pods/eviction by dogwatch/*",
            "delay-answer 1m get nodes by a",
            "duplicate 500ms patch nodes by a",
            "refuse 503 list pods by a",
            "cut-watches watch pods by a",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "explode get pods by a",
            "lose get pods",
            "delay get pods by a",
            "lose get pods by a twice",
        ] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_fault_hits_the_calls_it_names_as_often_as_it_says() {
        let plan = FaultPlan::new(Seed(1));
        plan.add(
            "lose create pods/eviction by dogwatch/* 2 times"
                .parse()
                .unwrap(),
        );
        let eviction = call("dogwatch/n1", "eviction");
        assert!(plan.effects(&call("dogwatch/n1", "")).is_empty());
        assert!(plan.effects(&call("other", "eviction")).is_empty());
        let hits = (0..5)
            .filter(|_| !plan.effects(&eviction).is_empty())
            .count();
        assert_eq!(hits, 2);
    }

    #[test]
    fn chance_hits_about_as_often_as_told_and_each_user_apart() {
        let draw = |users: &[&str]| {
            let plan = FaultPlan::new(Seed(5));
            plan.unleash(
                "",
                Chaos {
                    lose: 100,
                    ..Chaos::default()
                },
            );
            let mut hits = Vec::new();
            for _ in 0..1000 {
                for user in users {
                    let effects = plan.effects(&call(user, ""));
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
