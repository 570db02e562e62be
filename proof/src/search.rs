//! Runs one search to its end and says what it found.

use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, Model};

/// What a search has covered and found.
#[derive(Debug, Clone)]
pub struct SearchReport {
    pub world: String,
    pub states: usize,
    pub depth: usize,
    pub took: Duration,
    /// Every state was visited, none left out.
    pub complete: bool,
    /// Broken promises by name, each with the shortest way to it that was found.
    pub broken: Vec<BrokenProperty>,
    /// Things that should be possible, and were not seen.
    pub never_seen: Vec<&'static str>,
}

#[derive(Debug, Clone)]
pub struct BrokenProperty {
    pub name: &'static str,
    /// What the last state says about it.
    pub how: String,
    pub steps: Vec<String>,
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SearchLimits {
    pub threads: usize,
    pub most_states: Option<usize>,
    pub most_time: Option<Duration>,
    /// Ends as soon as one promise is broken.
    pub first_failure: bool,
}

/// A world with production decisions in it.
pub trait WorldModel: Model {
    /// How the state breaks a promise, or what everybody in it waits for.
    fn describe_state(&self, state: &Self::State) -> String;

    fn describe_step(&self, before: &Self::State, action: &Self::Action) -> String;
}

pub fn run_search<M>(world: impl Into<String>, model: M, limits: SearchLimits) -> SearchReport
where
    M: WorldModel + Send + Sync + 'static,
    M::State: Hash + Clone + Send + Sync + fmt::Debug + PartialEq + 'static,
    M::Action: Clone + fmt::Debug + PartialEq + Send + Sync + 'static,
{
    let begun = Instant::now();
    let mut builder = model.checker().threads(limits.threads.max(1));
    if let Some(most) = limits.most_states {
        builder = builder.target_state_count(most);
    }
    if let Some(most) = limits.most_time {
        builder = builder.timeout(most);
    }
    if limits.first_failure {
        builder = builder.finish_when(stateright::HasDiscoveries::AnyFailures);
    }
    let checker = builder.spawn_bfs().join();
    let mut broken = Vec::new();
    let mut never_seen = Vec::new();
    for property in checker.model().properties() {
        let path = checker.discovery(property.name);
        match (property.expectation, path) {
            (Expectation::Always | Expectation::Eventually, Some(path)) => {
                let how = checker.model().describe_state(path.last_state());
                let steps = path.into_vec();
                let steps = steps.iter().filter_map(|(before, action)| {
                    let action = action.as_ref()?;
                    Some(checker.model().describe_step(before, action))
                });
                let steps = steps.collect();
                broken.push(BrokenProperty {
                    name: property.name,
                    how,
                    steps,
                });
            }
            (Expectation::Sometimes, None) => never_seen.push(property.name),
            (Expectation::Always | Expectation::Eventually, None)
            | (Expectation::Sometimes, Some(_)) => {}
        }
    }
    let took = begun.elapsed();
    let in_time = limits.most_time.is_none_or(|most| took < most);
    let in_size = limits
        .most_states
        .is_none_or(|most| checker.state_count() < most);
    SearchReport {
        world: world.into(),
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        took,
        complete: checker.is_done() && in_time && in_size,
        broken,
        never_seen,
    }
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.complete {
            "all states"
        } else {
            "cut short"
        };
        writeln!(
            f,
            "{}: {} states, depth {}, {:.1} s, {end}",
            self.world,
            self.states,
            self.depth,
            self.took.as_secs_f64()
        )?;
        for broken in &self.broken {
            writeln!(
                f,
                "  {} is broken after {} steps: {}",
                broken.name,
                broken.steps.len(),
                broken.how
            )?;
            for step in &broken.steps {
                writeln!(f, "    {step}")?;
            }
        }
        let never_seen = self.never_seen.iter().filter(|_| self.complete);
        for name in never_seen {
            writeln!(f, "  never seen: {name}")?;
        }
        Ok(())
    }
}
