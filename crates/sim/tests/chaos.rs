//! Everything that can go wrong goes wrong at random: and still every trigger is one boot, never too
//! many nodes are out, a foreign cordon stays, and everything ends clean.
//!
//! In a storm of policies ([`POLICIES`]) budgets rise and fall, windows close, pauses come, nodes move
//! and policies go while all that happens.
//!
//! `DOGWATCH_CHAOS_SEEDS=100..200` runs other seeds than the usual ones; a seed that fails is added
//! to [`ONCE_FAILED`] when it is mended.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::limit::Limit;
use dogwatch_sim::chronicle::{Kind, NodeView, holder_of, lines};
use dogwatch_sim::scenario::{Setup, Stage, Timeline};
use dogwatch_sim::seed::{Seed, Stream};
use dogwatch_sim::world::cluster::{Budget, Workload, WorkloadKind};
use dogwatch_sim::world::faults::{Chaos, FaultPlan};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Seeds that showed a mistake once.
const ONCE_FAILED: [u64; 2] = [103, 125];
/// Run each time.
const USUAL: std::ops::Range<u64> = 1..9;
/// Run each time with policies that change.
const POLICIES: std::ops::Range<u64> = 1..5;
/// In a storm of policies: a node that was cut off sees a change this late.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_mins(4);
/// How often every node wants a reboot.
const ROUNDS: usize = 2;
/// Within which all of a round's triggers and troubles come.
const STORM: Duration = Duration::from_mins(10);
/// In which the calm after a storm has to bring everything to its end.
const CALM: Duration = Duration::from_hours(4);
/// The node whose cordon is an admin's.
const CORDONED: &str = "n4";

/// What changes besides the weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storm {
    /// Nothing.
    Faults,
    /// Policies, all the time.
    Policies,
}

struct Run {
    storm: Storm,
    stage: Stage,
    plan: Arc<FaultPlan>,
    timeline: Timeline,
    random: Stream,
    wrong: Vec<String>,
}

fn setup(seed: u64) -> Setup {
    let mut setup = Setup::default();
    setup.cluster.nodes = 4;
    setup.cluster.control_plane = u32::try_from(seed % 2).unwrap();
    setup.cluster.seed = Seed(seed);
    setup.config.max_unavailable = Limit::Count(1 + u32::try_from(seed % 3 / 2).unwrap());
    setup.config.reboot_timeout = Duration::from_mins(10);
    setup.config.settle = Duration::from_secs(10);
    let mut web = Workload::new(WorkloadKind::ReplicaSet { replicas: 6 }, "web");
    web.stops_after = Some(Duration::from_secs(5));
    web.budget = seed
        .is_multiple_of(4)
        .then(|| Budget::MaxUnavailable("1".into()));
    setup.cluster.workloads = vec![web];
    setup
}

impl Run {
    async fn start(seed: u64, storm: Storm) -> Self {
        let mut setup = setup(seed);
        if storm == Storm::Policies {
            setup.policies_installed = true;
            let workers = json!({ "nodeSelector": {}, "drain": { "timeout": "1m" } });
            setup.policies = vec![("workers".into(), workers)];
        }
        let mut stage = Stage::build(&setup).await.unwrap();
        stage.checks.forgive(match storm {
            Storm::Faults => SignedDuration::ZERO,
            Storm::Policies => SEEN_WITHIN,
        });
        // A node that is cut off is not Ready, and its pods are not, whoever drains.
        stage.checks.budgets_may_break = true;
        let plan = Arc::new(FaultPlan::new(Seed(seed)));
        let faults = Arc::clone(&plan);
        stage
            .server
            .set_faults(move |request| faults.effects(request));
        let random = Seed(seed).stream("chaos");
        let mut run = Self {
            storm,
            stage,
            plan,
            timeline: Timeline::new(Duration::ZERO),
            random,
            wrong: Vec::new(),
        };
        run.look();
        let patch = json!({ "spec": { "unschedulable": true }, "metadata": { "labels": { "dogwatch.dev/ignore": "true" } } });
        run.stage
            .person(Method::PATCH, &format!("/api/v1/nodes/{CORDONED}"), &patch)
            .unwrap();
        run
    }

    fn nodes(&self) -> Vec<String> {
        self.stage.hosts.keys().cloned().collect()
    }

    fn any_node(&mut self) -> String {
        let nodes = self.nodes();
        let at = self.random.below(u64::try_from(nodes.len()).unwrap());
        nodes[usize::try_from(at).unwrap()].clone()
    }

    fn seconds(&mut self, most: u64) -> Duration {
        Duration::from_secs(1 + self.random.below(most))
    }

    fn look(&mut self) {
        for (change, broken) in self.stage.look() {
            for entry in lines(&change, &mut self.stage.names) {
                self.timeline.add(entry, &self.stage.names);
            }
            self.wrong
                .extend(broken.into_iter().map(|violation| violation.0));
        }
        let broken = self.stage.judge_commands().into_iter();
        self.wrong.extend(broken.map(|violation| violation.0));
        for thought in self.stage.minds.take() {
            self.timeline.think(thought, &self.stage.names);
        }
    }

    fn say(&mut self, text: &str) {
        self.timeline.say(&format!("> {text}"), &self.stage.names);
    }

    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.stage.until(end).await;
            self.look();
        }
    }

    /// Every node wants a reboot at some moment of the storm, and something goes wrong all the time.
    async fn storm(&mut self, round: usize) {
        let rate = |most: u64, random: &mut Stream| u32::try_from(random.below(most)).unwrap();
        let chaos = Chaos {
            lose: rate(60, &mut self.random),
            lose_answer: rate(60, &mut self.random),
            duplicate: rate(60, &mut self.random),
            delay: rate(100, &mut self.random),
            slowest: self.seconds(15),
        };
        self.say(&format!("round {round}: {chaos:?}"));
        self.plan.unleash("coordinator/", chaos);
        let mut untouched = self.nodes();
        let end = Instant::now() + STORM;
        while Instant::now() < end || !untouched.is_empty() {
            let pause = self.seconds(40);
            self.pass(pause).await;
            if self.random.below(2) == 0
                && let Some(node) = untouched.pop()
            {
                self.say(&format!("touch {node}"));
                let path = if round.is_multiple_of(2) {
                    "/run/reboot-needed"
                } else {
                    "/var/lib/reboot-needed"
                };
                self.stage.hosts[&node]
                    .coordinator
                    .disk
                    .touch(path, &format!("round {round}"));
            } else {
                self.trouble().await;
            }
        }
    }

    async fn trouble(&mut self) {
        if self.storm == Storm::Policies && self.random.below(2) == 0 {
            self.change_policies();
            return;
        }
        let node = self.any_node();
        let coordinator = Arc::clone(&self.stage.hosts[&node].coordinator);
        match self.random.below(8) {
            0 | 1 => {
                self.say(&format!("kill {node}"));
                coordinator.kill();
            }
            2 => {
                let time = self.seconds(120);
                self.say(&format!("hold {node} for {time:?}"));
                coordinator.hold();
                self.pass(time).await;
                coordinator.start_again();
            }
            3 | 4 => {
                let (time, users) = (
                    self.seconds(120),
                    self.stage.users_of(&node, self.random.below(2) == 0),
                );
                self.say(&format!("partition {users:?} for {time:?}"));
                self.apart(users, time).await;
            }
            5 => {
                let (time, users) = (self.seconds(60), self.stage.users());
                self.say(&format!("api down for {time:?}"));
                self.apart(users, time).await;
            }
            6 => {
                self.say(&format!("compact, cut {node}'s watches"));
                self.stage.server.compact();
                for user in self.stage.users_of(&node, false) {
                    self.stage.server.cut_watches(Some(&user));
                }
            }
            // Windows are a matter of the clock: in a storm of policies it is right.
            _ if self.storm == Storm::Policies => coordinator.kill(),
            _ => {
                let ahead = i64::try_from(self.random.below(7200)).unwrap() - 3600;
                self.say(&format!("clock {node} {ahead}s"));
                self.stage.set_clock(&node, ahead);
            }
        }
    }

    /// A person changes her mind about the policies.
    fn change_policies(&mut self) {
        let name = ["workers", "team-b"][usize::try_from(self.random.below(2)).unwrap()];
        let pick = self.random.below(7);
        let patch = match pick {
            0 => json!({ "maxUnavailable": 1 }),
            1 => json!({ "maxUnavailable": 2 }),
            2 => json!({ "maxUnavailable": "50%" }),
            3 => {
                json!({ "paused": if self.random.below(2) == 0 { json!({ "reason": "a storm" }) } else { Value::Null } })
            }
            4 => self.window(),
            5 => return self.move_a_node(),
            _ => return self.drop_policy(name),
        };
        self.say(&format!("policy {name}: {patch}"));
        self.set_policy(name, patch);
    }

    /// Open for some minutes, or shut for some: by the cluster's clock, which is UTC.
    fn window(&mut self) -> Value {
        let shift = i64::try_from(self.random.below(10)).unwrap() - 5;
        let start = self.stage.time_in(Duration::ZERO) + SignedDuration::from_mins(shift);
        let end = start + SignedDuration::from_mins(6);
        let clock = |time: Timestamp| time.strftime("%H:%M").to_string();
        json!({ "windows": [{ "start": clock(start), "end": clock(end) }] })
    }

    fn set_policy(&self, name: &str, mut patch: Value) {
        if name == "team-b" {
            patch["nodeSelector"] = json!({ "matchLabels": { "team": "b" } });
            patch["priority"] = json!(1);
            patch["drain"] = json!({ "timeout": "1m" });
        }
        self.stage.set_policy(name, &patch).unwrap();
    }

    fn move_a_node(&mut self) {
        let node = self.any_node();
        let team = ["a", "b"][usize::try_from(self.random.below(2)).unwrap()];
        self.say(&format!("label {node} team={team}"));
        let patch = json!({ "metadata": { "labels": { "team": team } } });
        self.stage
            .person(Method::PATCH, &format!("/api/v1/nodes/{node}"), &patch)
            .unwrap();
    }

    fn drop_policy(&mut self, name: &str) {
        self.say(&format!("delete policy {name}"));
        let path = format!("/apis/dogwatch.dev/v1alpha1/rebootpolicies/{name}");
        // There may be none of that name any more.
        let _ = self.stage.person(Method::DELETE, &path, &Value::Null);
    }

    /// Everything may go on again.
    fn permit_everything(&mut self) {
        let names = self.stage.observer.all(Kind::Policy).map(|(name, _)| name);
        for name in names.map(str::to_owned).collect::<Vec<_>>() {
            self.set_policy(&name, json!({ "paused": null, "windows": null }));
        }
    }

    async fn apart(&mut self, users: Vec<String>, time: Duration) {
        for user in &users {
            self.stage.server.partition(user, true);
        }
        self.pass(time).await;
        for user in &users {
            self.stage.server.partition(user, false);
        }
    }

    /// Nothing goes wrong any more; everything has to come to its end.
    async fn calm(&mut self, round: usize) {
        self.say("calm");
        self.plan.clear();
        self.permit_everything();
        let end = Instant::now() + CALM;
        while Instant::now() < end && !self.left(round).is_empty() {
            self.stage.until(end).await;
            self.look();
        }
        let left = self.left(round);
        self.wrong
            .extend(left.iter().map(|left| format!("round {round}: {left}")));
        // A late duplicate of anything must not start anything.
        self.pass(Duration::from_mins(1)).await;
        for node in self.nodes() {
            let (boots, commands) = (self.stage.checks.boots(&node), self.stage.commands(&node));
            if (boots, commands) != (round, round) {
                self.wrong.push(format!(
                    "round {round}: {node} had {boots} boots by {commands} commands"
                ));
            }
        }
    }

    /// What is not as it should be after a round.
    fn left(&self, round: usize) -> Vec<String> {
        let mut left = Vec::new();
        for (name, node) in self.stage.observer.all(Kind::Node) {
            let node = NodeView::of(node);
            let cordon_is_right = node.cordoned == (name == CORDONED);
            if node.record.is_some() || node.waiting_label || !node.ready || !cordon_is_right {
                left.push(format!(
                    "{name}: {:?}, cordoned {}, ready {}",
                    node.record, node.cordoned, node.ready
                ));
            }
            if self.stage.checks.boots(name) < round {
                left.push(format!("{name} did not reboot"));
            }
        }
        let held = self
            .stage
            .observer
            .all(Kind::Lease)
            .filter_map(|(name, lease)| Some((name, holder_of(lease)?)));
        left.extend(held.map(|(name, holder)| format!("{name} is held by {holder}")));
        left
    }
}

/// What went wrong under this seed, and all that happened.
fn run(seed: u64, storm: Storm) -> (Vec<String>, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut run = Run::start(seed, storm).await;
        for round in 1..=ROUNDS {
            run.storm(round).await;
            run.calm(round).await;
            if !run.wrong.is_empty() {
                break;
            }
        }
        run.timeline.flush(&run.stage.names);
        (run.wrong, run.timeline.into_text())
    })
}

/// Those that were asked for, or else the usual ones.
fn seeds(usual: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let Ok(range) = std::env::var("DOGWATCH_CHAOS_SEEDS") else {
        return usual.into_iter().collect();
    };
    let (from, to) = range.split_once("..").unwrap_or((&range, ""));
    let from: u64 = from.parse().unwrap();
    (from..to.parse().unwrap_or(from + 1)).collect()
}

fn every_one_ends_well(seeds: Vec<u64>, storm: Storm) {
    let mut failed = String::new();
    for seed in seeds {
        let (wrong, text) = run(seed, storm);
        if !wrong.is_empty() {
            writeln!(failed, "seed {seed}: {}\n{text}", wrong.join("; ")).unwrap();
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn whatever_goes_wrong_every_trigger_is_one_boot_and_everything_ends_clean() {
    every_one_ends_well(seeds(ONCE_FAILED.into_iter().chain(USUAL)), Storm::Faults);
}

#[test]
fn however_policies_change_no_budget_window_or_pause_is_broken_and_everything_ends_clean() {
    every_one_ends_well(seeds(POLICIES), Storm::Policies);
}

#[test]
fn the_same_seed_gives_the_same_storm() {
    for storm in [Storm::Faults, Storm::Policies] {
        assert_eq!(run(1, storm), run(1, storm));
    }
}
