//! The worlds that are searched, small ones for CI and larger ones on demand, and each guard taken
//! out of one.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::planned::{PlannedConfig, PlannedGuard, PlannedModel, PlannedPools};
use crate::power_off::{PowerGuard, PowerOffConfig, PowerOffModel, PowerOffPools};
use crate::promise::Promise;
use crate::reachability::SearchGraph;
use crate::remediation::{
    RemediationGuard, RemediationModel, RemediationPools, RemediationWorldConfig,
};
use crate::search::{SearchLimits, SearchReport, WorldModel, run_search};

#[derive(Debug, Clone)]
pub enum World {
    Planned(PlannedConfig),
    PowerOff(PowerOffConfig),
    Remediation(RemediationWorldConfig),
}

#[derive(Debug, Clone)]
pub struct NamedWorld {
    pub name: &'static str,
    pub world: World,
}

impl NamedWorld {
    fn planned(name: &'static str, config: PlannedConfig) -> Self {
        let world = World::Planned(config);
        Self { name, world }
    }

    fn power_off(name: &'static str, config: PowerOffConfig) -> Self {
        let world = World::PowerOff(config);
        Self { name, world }
    }

    fn remediation(name: &'static str, config: RemediationWorldConfig) -> Self {
        let world = World::Remediation(config);
        Self { name, world }
    }

    pub fn search(&self, limits: SearchLimits) -> WorldReport {
        match &self.world {
            World::Planned(config) => {
                let pools = Arc::new(PlannedPools::default());
                let make = |graph| PlannedModel::new(config.clone(), pools.clone(), graph);
                search_world(self.name, make, limits)
            }
            World::PowerOff(config) => {
                let pools = Arc::new(PowerOffPools::default());
                let make = |graph| PowerOffModel::new(config.clone(), pools.clone(), graph);
                search_world(self.name, make, limits)
            }
            World::Remediation(config) => {
                let pools = Arc::new(RemediationPools::new(config));
                let make = |graph| RemediationModel::new(config.clone(), pools.clone(), graph);
                search_world(self.name, make, limits)
            }
        }
    }
}

/// The worlds that are searched whole in a minute or two.
pub fn small_worlds() -> Vec<NamedWorld> {
    let one = PlannedConfig::new(&[1]);
    let two = PlannedConfig::new(&[1, 1]);
    vec![
        NamedWorld::planned(
            "one node; two crashes, one fault",
            PlannedConfig {
                crashes: 2,
                faults: 1,
                ..one.clone()
            },
        ),
        NamedWorld::planned(
            "one node; one crash, one fault, people cordon; the sentinel stays",
            PlannedConfig {
                crashes: 1,
                faults: 1,
                foreign: 1,
                sentinel_stays: true,
                ..one
            },
        ),
        NamedWorld::planned("two nodes, one slot", two.clone()),
        NamedWorld::planned(
            "planned beside forced: two nodes, one of them remediated",
            PlannedConfig {
                remediation: true,
                wanting: vec![false, true],
                ..two
            },
        ),
        NamedWorld::power_off(
            "proof of off: one lie, one fault, two leaders",
            PowerOffConfig {
                lies: 1,
                faults: 1,
                takeovers: 1,
                ..PowerOffConfig::default()
            },
        ),
        NamedWorld::remediation(
            "remediation's table: one fault, one crash",
            RemediationWorldConfig {
                faults: 1,
                crashes: 1,
                ..RemediationWorldConfig::default()
            },
        ),
        NamedWorld::remediation(
            "remediation's table: the mark is removed and set again",
            RemediationWorldConfig {
                marks: 1,
                withdrawals: 1,
                ..RemediationWorldConfig::default()
            },
        ),
        NamedWorld::remediation(
            "remediation's table: the BMC is another machine's",
            RemediationWorldConfig {
                wrong_bmc: true,
                ..RemediationWorldConfig::default()
            },
        ),
    ]
}

/// Larger worlds, most of which are cut short by the limit of time.
pub fn large_worlds() -> Vec<NamedWorld> {
    let two = PlannedConfig::new(&[1, 1]);
    let three = PlannedConfig::new(&[2, 2, 2]);
    vec![
        NamedWorld::planned(
            "two nodes with other maxima, two slots",
            PlannedConfig::new(&[2, 1]),
        ),
        NamedWorld::planned(
            "two nodes, one slot; one crash",
            PlannedConfig {
                crashes: 1,
                ..two.clone()
            },
        ),
        NamedWorld::planned(
            "two nodes, one slot; one fault",
            PlannedConfig {
                faults: 1,
                ..two.clone()
            },
        ),
        NamedWorld::planned(
            "planned beside forced, the same node in both",
            PlannedConfig {
                remediation: true,
                ..two
            },
        ),
        NamedWorld::planned("three nodes, two slots", three.clone()),
        NamedWorld::planned(
            "three nodes, two slots; one crash, one fault",
            PlannedConfig {
                crashes: 1,
                faults: 1,
                ..three
            },
        ),
        NamedWorld::power_off(
            "proof of off: one lie, one fault, two leaders, the key goes and comes back",
            PowerOffConfig {
                lies: 1,
                faults: 1,
                takeovers: 1,
                key_changes: 2,
                delays: 1,
                without: None,
            },
        ),
        NamedWorld::remediation(
            "remediation's table: one fault, one crash, the mark is removed and set again",
            RemediationWorldConfig {
                faults: 1,
                crashes: 1,
                marks: 1,
                withdrawals: 1,
                ..RemediationWorldConfig::default()
            },
        ),
    ]
}

/// One guard taken out of the smallest world in which its absence shows.
#[derive(Debug, Clone)]
pub struct Mutation {
    pub guard: &'static str,
    pub expected: Promise,
    pub world: NamedWorld,
}

pub fn mutations() -> Vec<Mutation> {
    let planned = PlannedGuard::ALL.map(|guard| Mutation {
        guard: guard.describe_guard(),
        expected: guard.expected_failure(),
        world: NamedWorld::planned(
            guard.describe_guard(),
            PlannedConfig {
                without: Some(guard),
                ..guard.smallest_world()
            },
        ),
    });
    let power = PowerGuard::ALL.map(|guard| Mutation {
        guard: guard.describe_guard(),
        expected: guard.expected_failure(),
        world: NamedWorld::power_off(
            guard.describe_guard(),
            PowerOffConfig {
                without: Some(guard),
                ..guard.smallest_world()
            },
        ),
    });
    let remediation = RemediationGuard::ALL.map(|guard| Mutation {
        guard: guard.describe_guard(),
        expected: guard.expected_failure(),
        world: NamedWorld::remediation(
            guard.describe_guard(),
            RemediationWorldConfig {
                without: Some(guard),
                ..guard.smallest_world()
            },
        ),
    });
    let all = planned.into_iter().chain(power).chain(remediation);
    all.collect()
}

/// A search, and whether every state can come to a good end.
pub struct WorldReport {
    pub search: SearchReport,
    /// States that no step leads out of to a good end; not judged if the search was cut short.
    pub traps: usize,
    /// The way to the last of them.
    pub way_to_trap: Option<SearchReport>,
}

impl WorldReport {
    pub fn is_clean(&self) -> bool {
        let nothing_missed = self.search.never_seen.is_empty() || !self.search.complete;
        self.search.broken.is_empty() && nothing_missed && self.traps == 0
    }
}

impl fmt::Display for WorldReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.search)?;
        if self.search.complete && self.search.broken.is_empty() {
            writeln!(f, "  states with no way to a good end: {}", self.traps)?;
        }
        if let Some(way) = &self.way_to_trap {
            write!(f, "  the last of them: {way}")?;
        }
        Ok(())
    }
}

fn search_world<M>(
    name: &str,
    make: impl Fn(Arc<SearchGraph>) -> M,
    limits: SearchLimits,
) -> WorldReport
where
    M: WorldModel + Send + Sync + 'static,
    M::State: Hash + Clone + Send + Sync + fmt::Debug + PartialEq + 'static,
    M::Action: Clone + fmt::Debug + PartialEq + Send + Sync + 'static,
{
    let graph = Arc::new(SearchGraph::default());
    let search = run_search(name, make(graph.clone()), limits);
    let whole = search.complete && search.broken.is_empty();
    let traps = if whole {
        graph.find_traps()
    } else {
        std::collections::HashSet::default()
    };
    let last = graph.choose_trap(&traps);
    let way_to_trap = last.map(|trap| {
        let graph = Arc::new(SearchGraph::wanting(trap));
        run_search("a search for the way", make(graph), limits)
    });
    WorldReport {
        search,
        traps: traps.len(),
        way_to_trap,
    }
}

/// What the search found without a guard.
pub struct MutationReport {
    pub mutation: Mutation,
    pub report: WorldReport,
}

impl MutationReport {
    /// Whether the promise that the guard keeps was seen to fail.
    pub fn is_found(&self) -> bool {
        let expected = self.mutation.expected;
        let broken = &self.report.search.broken;
        let trapped = expected == Promise::NobodyLeftBehind && self.report.traps > 0;
        let named = |name: &str| name == expected.short_name();
        trapped || broken.iter().any(|broken| named(broken.name))
    }
}

impl fmt::Display for MutationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = self.mutation.guard;
        let expected = self.mutation.expected.short_name();
        let states = self.report.search.states;
        let broken = &self.report.search.broken;
        let found = broken.iter().find(|broken| broken.name == expected);
        if let Some(broken) = found.or(broken.first()) {
            let (name, steps, how) = (broken.name, broken.steps.len(), &broken.how);
            return write!(
                f,
                "| {guard} | {name} | {steps} steps, {states} states | {how} |"
            );
        }
        match self.report.traps {
            0 => write!(f, "| {guard} | nothing | {states} states | |"),
            traps => write!(
                f,
                "| {guard} | S6 | {states} states | {traps} states have no way to a good end |"
            ),
        }
    }
}

pub fn search_mutation(mutation: Mutation, limits: SearchLimits) -> MutationReport {
    let report = mutation.world.search(limits);
    MutationReport { mutation, report }
}
