//! Random orders of events against a reference model of the node and the API server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::drain::{
    DaemonSetLookup, DaemonSetRef, DeploymentLookup, DeploymentRestart, ObservedDeployment,
    PodRule, PodRules, ReplicaSetRef, ReplicaShare, RestartAnswer, RolloutStrategy, RuleAction,
};

const IN_FLIGHT: usize = 3;
const ROLL_TIMEOUT: Duration = Duration::from_secs(40);

fn labelled(app: &str) -> LabelSelector {
    LabelSelector {
        match_labels: [("app".to_owned(), app.to_owned())].into(),
        ..LabelSelector::default()
    }
}

fn config() -> DrainConfig {
    let rolled = PodRule {
        pods: labelled("rolled"),
        action: RuleAction::RollFirst {
            timeout: ROLL_TIMEOUT,
        },
        ..PodRule::default()
    };
    DrainConfig {
        in_flight: IN_FLIGHT,
        rules: PodRules {
            exclude: Some(labelled("excluded")),
            rules: vec![rolled],
            ..PodRules::default()
        },
        ..DrainConfig::default()
    }
}

/// The next event of the model. Numbers choose among what is possible, so every sequence makes
/// sense.
#[derive(Debug, Clone)]
enum Happens {
    /// A pod appears on the node.
    Comes {
        name: u8,
        kind: Kind,
    },
    /// Somebody else deletes a pod.
    Goes {
        which: usize,
    },
    /// A pod's containers exit by themselves.
    Finishes {
        which: usize,
    },
    Delivers,
    /// The watch breaks and a new list is made.
    Relists,
    /// An open eviction reaches the server and is answered.
    Answers {
        which: usize,
        with: Reply,
    },
    /// The containers of a deleted pod have exited.
    Ends {
        which: usize,
    },
    LooksUp {
        fails: bool,
    },
    Passes {
        seconds: u8,
    },
    Budget {
        allowed: u8,
    },
    /// The Deployment's rollout goes on: one pod of an older template is deleted.
    Rolls {
        which: usize,
    },
    /// Somebody else writes to the Deployment, or restarts it as well.
    Writes {
        restarts: bool,
    },
    /// The process is killed: another drain begins. Calls under way still arrive.
    Killed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Mirror,
    Daemon,
    Orphan,
    Excluded,
    /// Of the Deployment that a rule rolls first.
    Rolled,
}

#[derive(Debug, Clone, Copy)]
enum Reply {
    /// The server acts, and the answer arrives.
    Done,
    /// The server acts, and the answer is lost.
    Lost,
    /// The server does not act.
    Budget,
    Busy,
    Broken,
}

fn happens() -> impl Strategy<Value = Happens> {
    let kind = prop_oneof![
        4 => Just(Kind::Plain),
        1 => Just(Kind::Mirror),
        2 => Just(Kind::Daemon),
        1 => Just(Kind::Orphan),
        1 => Just(Kind::Excluded),
        2 => Just(Kind::Rolled),
    ];
    let reply = prop_oneof![
        4 => Just(Reply::Done),
        1 => Just(Reply::Lost),
        2 => Just(Reply::Budget),
        1 => Just(Reply::Busy),
        1 => Just(Reply::Broken),
    ];
    prop_oneof![
        4 => (0..5_u8, kind).prop_map(|(name, kind)| Happens::Comes { name, kind }),
        1 => any::<usize>().prop_map(|which| Happens::Goes { which }),
        1 => any::<usize>().prop_map(|which| Happens::Finishes { which }),
        8 => Just(Happens::Delivers),
        1 => Just(Happens::Relists),
        6 => (any::<usize>(), reply).prop_map(|(which, with)| Happens::Answers { which, with }),
        4 => any::<usize>().prop_map(|which| Happens::Ends { which }),
        2 => any::<bool>().prop_map(|fails| Happens::LooksUp { fails }),
        2 => (0..7_u8).prop_map(|seconds| Happens::Passes { seconds }),
        1 => (0..3_u8).prop_map(|allowed| Happens::Budget { allowed }),
        2 => any::<usize>().prop_map(|which| Happens::Rolls { which }),
        1 => any::<bool>().prop_map(|restarts| Happens::Writes { restarts }),
        1 => Just(Happens::Killed),
    ]
}

enum Event {
    Applied(Box<ObservedPod>),
    Deleted(PodIdentity),
}

/// The true state of the node, and the events on their way to the drain.
struct World {
    drain: NodeDrain,
    listed: bool,
    /// By name: at most one pod of a name.
    pods: BTreeMap<String, (ObservedPod, Kind)>,
    events: VecDeque<Event>,
    calls: Vec<EvictionAttempt>,
    lookups: Vec<DaemonSetRef>,
    listing_budgets: bool,
    /// UIDs that the drain was told are gone.
    told_gone: BTreeSet<String>,
    evicted: BTreeSet<String>,
    seconds: f64,
    born: u32,
    /// The number of the Deployment's template, and its version.
    template: u32,
    version: u32,
    deployment_reads: Vec<ReplicaSetRef>,
    restarts: Vec<DeploymentRestart>,
    /// Restarts of killed processes, which still may arrive.
    orphaned: Vec<DeploymentRestart>,
}

impl World {
    fn new() -> Self {
        Self {
            drain: NodeDrain::new(config()),
            listed: false,
            pods: BTreeMap::new(),
            events: VecDeque::new(),
            calls: Vec::new(),
            lookups: Vec::new(),
            listing_budgets: false,
            told_gone: BTreeSet::new(),
            evicted: BTreeSet::new(),
            seconds: 0.0,
            born: 0,
            template: 0,
            version: 0,
            deployment_reads: Vec::new(),
            restarts: Vec::new(),
            orphaned: Vec::new(),
        }
    }

    fn happens(&mut self, what: &Happens) {
        match what {
            Happens::Comes { name, kind } => self.comes(*name, *kind),
            Happens::Goes { which } => self.ends(*which, false),
            Happens::Ends { which } => self.ends(*which, true),
            Happens::Finishes { which } => {
                if let Some(name) = pick(self.pods.keys(), *which) {
                    self.change(&name, |pod| pod.phase = PodPhase::Finished);
                }
            }
            Happens::Delivers => self.deliver(),
            Happens::Relists => self.relist(),
            Happens::Answers { which, with } => self.answer(*which, *with),
            Happens::LooksUp { fails } => self.look_up(*fails),
            Happens::Passes { seconds } => self.seconds += f64::from(*seconds),
            Happens::Budget { allowed } => {
                let all = LabelSelector::default();
                let seen = ObservedDisruptionBudget {
                    selector: Some(all),
                    ..budget("all", (*allowed).into())
                };
                self.drain.apply_namespace_budgets("shop", vec![seen]);
            }
            Happens::Rolls { which } => self.rolls(*which),
            Happens::Writes { restarts } => {
                self.version += 1;
                self.template += u32::from(*restarts);
            }
            Happens::Killed => self.is_killed(),
        }
        self.step();
    }

    fn comes(&mut self, name: u8, kind: Kind) {
        let name = format!("p{name}");
        if self.pods.contains_key(&name) {
            return;
        }
        self.born += 1;
        let born = self.born;
        let mut seen = match kind {
            Kind::Plain | Kind::Mirror | Kind::Excluded => pod(&name),
            Kind::Rolled => ObservedPod {
                controller: Some(owner("ReplicaSet", &format!("rolled-{}", self.template))),
                labels: [("app".to_owned(), "rolled".to_owned())].into(),
                ..pod(&name)
            },
            Kind::Daemon => of_daemonset(&name, "agent"),
            Kind::Orphan => of_daemonset(&name, "orphan"),
        };
        // The limit on a controller's replacements has tests of its own.
        seen.tolerates_cordon = false;
        if let Some(controller) = &mut seen.controller {
            controller.uid = format!("u-owner-{born}");
        }
        seen.mirror = kind == Kind::Mirror;
        if kind == Kind::Excluded {
            seen.labels = [("app".to_owned(), "excluded".to_owned())].into();
        }
        seen.pod.uid = format!("u-{born}");
        self.pods.insert(name, (seen.clone(), kind));
        self.say(Event::Applied(Box::new(seen)));
    }

    /// An event before the first list becomes part of that list.
    fn say(&mut self, event: Event) {
        if self.listed {
            self.events.push_back(event);
        }
    }

    fn change(&mut self, name: &str, change: impl Fn(&mut ObservedPod)) {
        if let Some((pod, _)) = self.pods.get_mut(name) {
            change(pod);
            let seen = pod.clone();
            self.say(Event::Applied(Box::new(seen)));
        }
    }

    fn ends(&mut self, which: usize, only_deleting: bool) {
        let ending = self
            .pods
            .iter()
            .filter(|(_, (pod, _))| pod.deleting || !only_deleting);
        if let Some(name) = pick(ending.map(|(name, _)| name), which) {
            let (pod, _) = self.pods.remove(&name).unwrap();
            self.say(Event::Deleted(pod.pod));
        }
    }

    fn deliver(&mut self) {
        match self.events.pop_front() {
            Some(Event::Applied(seen)) => self.drain.apply_pod(*seen),
            Some(Event::Deleted(pod)) => {
                self.told_gone.insert(pod.uid.clone());
                self.drain.apply_pod_deletion(&pod);
            }
            None => {}
        }
    }

    fn relist(&mut self) {
        self.listed = true;
        let there: BTreeSet<&String> = self.pods.values().map(|(pod, _)| &pod.pod.uid).collect();
        for born in 1..=self.born {
            let uid = format!("u-{born}");
            if !there.contains(&uid) {
                self.told_gone.insert(uid);
            }
        }
        self.events.clear();
        self.drain
            .apply_pod_list(self.pods.values().map(|(pod, _)| pod.clone()).collect());
    }

    /// The rollout deletes one pod of an older template.
    fn rolls(&mut self, which: usize) {
        let current = format!("rolled-{}", self.template);
        let old = self.pods.iter().filter(|(_, (pod, kind))| {
            let owner = pod.controller.as_ref();
            *kind == Kind::Rolled && owner.is_some_and(|owner| owner.name != current)
        });
        if let Some(name) = pick(old.map(|(name, _)| name), which) {
            self.change(&name, |pod| pod.deleting = true);
        }
    }

    fn is_killed(&mut self) {
        self.orphaned.append(&mut self.restarts);
        self.deployment_reads.clear();
        self.calls.clear();
        self.lookups.clear();
        self.listing_budgets = false;
        self.events.clear();
        self.listed = false;
        self.drain = NodeDrain::new(config());
    }

    /// The server applies a restart whose preconditions hold. It must not be the second one for a
    /// pod: the pod's template is still the Deployment's.
    fn restart(&mut self, restart: &DeploymentRestart) -> bool {
        let applied = restart.resource_version == self.version.to_string();
        if applied {
            let current = format!("rolled-{}", self.template);
            assert_eq!(restart.replica_set.name, current, "restarted twice");
            self.version += 1;
            self.template += 1;
        }
        applied
    }

    fn answer_restart(&mut self, with: Reply) {
        if let Some(late) = self.orphaned.pop() {
            self.restart(&late);
        }
        let Some(restart) = self.restarts.pop() else {
            return;
        };
        let why = "unknown".to_owned();
        let done = matches!(with, Reply::Done | Reply::Lost) && self.restart(&restart);
        let answer = match with {
            Reply::Done if done => RestartAnswer::Restarted,
            Reply::Done | Reply::Lost | Reply::Budget | Reply::Busy | Reply::Broken => {
                RestartAnswer::ReadAgain { why }
            }
        };
        self.drain
            .apply_restart_answer(&restart.replica_set, answer, at(self.seconds));
    }

    fn read_deployment(&mut self, fails: bool) {
        let Some(set) = self.deployment_reads.pop() else {
            return;
        };
        let quarter = ReplicaShare::Percent(25);
        let seen = ObservedDeployment {
            name: "rolled".into(),
            uid: "u-rolled".into(),
            resource_version: self.version.to_string(),
            deleting: false,
            paused: false,
            has_same_template: set.name == format!("rolled-{}", self.template),
            replicas: 1,
            strategy: RolloutStrategy::RollingUpdate {
                max_surge: quarter,
                max_unavailable: quarter,
            },
            stuck: None,
        };
        let lookup = if fails {
            DeploymentLookup::Failed { why: "503".into() }
        } else {
            DeploymentLookup::Found(Box::new(seen))
        };
        self.drain
            .apply_deployment_lookup(&set, lookup, at(self.seconds));
    }

    /// The server answers one open call, in any order, and the drain receives the answer.
    fn answer(&mut self, which: usize, with: Reply) {
        self.answer_restart(with);
        if self.calls.is_empty() {
            return;
        }
        let call = self.calls.remove(which % self.calls.len());
        let there = self
            .pods
            .get(&call.pod.name)
            .is_some_and(|(pod, _)| pod.pod.uid == call.pod.uid);
        let answer = match with {
            _ if !there => EvictionAnswer::AlreadyGone,
            Reply::Done => EvictionAnswer::Accepted,
            Reply::Lost => EvictionAnswer::Transient {
                message: "connection reset".into(),
            },
            Reply::Budget => budget_refusal(),
            Reply::Busy => EvictionAnswer::TooMany {
                retry_after: None,
                message: "busy".into(),
            },
            Reply::Broken => EvictionAnswer::Transient {
                message: "500".into(),
            },
        };
        if there && matches!(with, Reply::Done | Reply::Lost) {
            self.evicted.insert(call.pod.uid.clone());
            self.change(&call.pod.name, |pod| pod.deleting = true);
        }
        self.drain
            .apply_eviction_answer(call.id, answer, at(self.seconds));
    }

    fn look_up(&mut self, fails: bool) {
        self.read_deployment(fails);
        if std::mem::take(&mut self.listing_budgets) {
            let answer = if fails {
                Err("503".to_owned())
            } else {
                Ok(Vec::new())
            };
            self.drain.apply_budget_list(answer, at(self.seconds));
        }
        if let Some(set) = self.lookups.pop() {
            let lookup = match set.name.as_str() {
                _ if fails => DaemonSetLookup::Failed { why: "503".into() },
                "agent" => DaemonSetLookup::Exists,
                _ => DaemonSetLookup::Gone,
            };
            self.drain
                .apply_daemonset_lookup(&set, lookup, at(self.seconds));
        }
    }

    /// Performs the drain's next step, and checks every promise.
    fn step(&mut self) {
        let step = self.drain.next_step(at(self.seconds));
        for call in &step.tries {
            assert!(
                !self.told_gone.contains(&call.pod.uid),
                "a call for {call:?}, known to be gone"
            );
            assert!(self.listed, "a call before the initial list");
            self.waits_for_its_rollout(call);
        }
        self.calls.extend(step.tries);
        self.lookups.extend(step.look_up);
        self.deployment_reads.extend(step.look_up_deployments);
        self.restarts.extend(step.restarts);
        self.listing_budgets |= step.list_budgets;
        assert!(
            self.calls.len() <= IN_FLIGHT,
            "{} calls open",
            self.calls.len()
        );
        self.drained_means_drained();
    }

    /// A running pod of the Deployment is not evicted before the rule's time is over.
    fn waits_for_its_rollout(&self, call: &EvictionAttempt) {
        let there = self.pods.get(&call.pod.name);
        let there = there.filter(|(pod, _)| pod.pod.uid == call.pod.uid);
        if let Some((pod, Kind::Rolled)) = there {
            let over = self.seconds >= ROLL_TIMEOUT.as_secs_f64();
            assert!(
                over || pod.phase == PodPhase::Finished,
                "too early: {pod:?}"
            );
        }
    }

    /// When the drain says that the node is drained, only pods that the watch has not delivered yet
    /// may be left.
    fn drained_means_drained(&self) {
        if !self.drain.current_progress().is_drained() {
            return;
        }
        let undelivered = |uid: &str| {
            self.events.iter().any(|event| match event {
                Event::Applied(pod) => pod.pod.uid == uid,
                Event::Deleted(_) => false,
            })
        };
        for (pod, kind) in self
            .pods
            .values()
            .filter(|(pod, kind)| qualifies(pod, *kind))
        {
            assert!(
                undelivered(&pod.pod.uid),
                "drained, with {pod:?} ({kind:?}) on the node"
            );
        }
    }

    /// No new events; everything on its way arrives.
    fn settle(&mut self) {
        if !self.listed {
            self.relist();
        }
        for _ in 0..1000 {
            self.step();
            if self.drain.current_progress().is_drained() && self.events.is_empty() {
                return;
            }
            self.deliver();
            self.answer(0, Reply::Done);
            self.look_up(false);
            self.ends(0, true);
            self.seconds += 1.0;
        }
        panic!("never drained: {:?}", self.drain.current_progress());
    }
}

/// The reference: whether `kubectl drain` would remove the pod.
fn qualifies(pod: &ObservedPod, kind: Kind) -> bool {
    match kind {
        Kind::Plain | Kind::Orphan | Kind::Rolled => true,
        Kind::Mirror | Kind::Excluded => false,
        Kind::Daemon => pod.phase == PodPhase::Finished,
    }
}

fn pick<'a>(from: impl Iterator<Item = &'a String>, which: usize) -> Option<String> {
    let all: Vec<_> = from.collect();
    (!all.is_empty()).then(|| all[which % all.len()].clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(2000)))]

    /// Drained means that no pod that has to leave is on the node. All of these pods, and no
    /// others, are evicted in the end; no call is made for a replaced UID; the calls in flight stay
    /// within the limit. A Deployment is restarted at most once for a pod, also if the process is
    /// killed between any two calls.
    #[test]
    fn in_any_order_of_events_the_node_is_drained_in_the_end_and_never_said_to_be_before(
        script in prop::collection::vec(happens(), 0..80),
    ) {
        let mut world = World::new();
        for what in &script {
            world.happens(what);
        }
        world.settle();
        for (pod, kind) in world.pods.values() {
            prop_assert!(!qualifies(pod, *kind), "{:?} is left", pod);
            prop_assert!(!world.evicted.contains(&pod.pod.uid), "{:?} was evicted", pod);
        }
        prop_assert!(!world.drain.current_progress().is_incomplete());
        prop_assert_eq!(world.drain.current_progress().blocked, []);
    }
}
