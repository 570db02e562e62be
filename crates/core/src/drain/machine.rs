//! The machine itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::budgets::Budgets;
use super::filter::{Fate, fate};
use super::lookups::Lookups;
use super::pod::{Name, Pod, Standing, name};
use super::turnover::Turnover;
use super::types::{
    Answer, BudgetSeen, DaemonSetRef, DrainConfig, Dropped, EvictionId, Lookup, PodPhase, PodRef,
    PodSeen, Step, Way,
};
use super::waiting::{Outcome, Turn, Waiting};
use crate::Now;

/// The drain of one node. See the module's own words for what it promises.
///
/// Tell it everything that happens, then ask [`next`](Drain::next) what to do. The order in which
/// answers and watch events come does not matter.
#[derive(Debug, Clone)]
pub struct Drain {
    pub(super) config: DrainConfig,
    pub(super) way: Way,
    pub(super) listed: bool,
    /// The pods on the node. One entry per name: a new incarnation takes the place of the old one,
    /// so that no call can go out for a UID that was seen replaced.
    pub(super) pods: BTreeMap<Name, Pod>,
    /// Those whose turn it is, in the order in which it became theirs.
    pub(super) queue: BTreeMap<u64, Name>,
    pub(super) places: u64,
    pub(super) calls: BTreeMap<EvictionId, Name>,
    pub(super) ids: u64,
    pub(super) lookups: Lookups,
    pub(super) turnover: Turnover,
    pub(super) budgets: Budgets,
    pub(super) gone: usize,
    pub(super) dropped: Vec<Dropped>,
    pub(super) claims: BTreeSet<String>,
    pub(super) trouble: Option<Trouble>,
}

/// Why the pods cannot be watched, and until when that is believed without being said again.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) why: String,
    pub(super) until: Duration,
}

/// A watch that does not come about is tried again after 30 s at most, and each try takes 30 s at
/// most: who says nothing for longer has nothing to complain of.
const TROUBLE_STANDS: Duration = Duration::from_secs(75);

impl Drain {
    /// A drain that knows nothing yet.
    pub fn new(config: DrainConfig) -> Self {
        Self {
            config,
            way: Way::Evict,
            listed: false,
            pods: BTreeMap::new(),
            queue: BTreeMap::new(),
            places: 0,
            calls: BTreeMap::new(),
            ids: 0,
            lookups: Lookups::default(),
            turnover: Turnover::default(),
            budgets: Budgets::default(),
            gone: 0,
            dropped: Vec::new(),
            claims: BTreeSet::new(),
            trouble: None,
        }
    }

    /// All pods on the node: at the start, and whenever the watch could not be continued (410).
    /// What is not among them, by UID, is gone.
    pub fn relisted(&mut self, pods: Vec<PodSeen>) {
        self.trouble = None;
        let there: BTreeMap<Name, &str> = pods
            .iter()
            .map(|pod| (name(&pod.pod), pod.pod.uid.as_str()))
            .collect();
        let missing = |pod: &PodSeen| there.get(&name(&pod.pod)) != Some(&pod.pod.uid.as_str());
        let left: Vec<PodRef> = self
            .pods
            .values()
            .filter(|pod| missing(&pod.seen))
            .map(|pod| pod.seen.pod.clone())
            .collect();
        for pod in &left {
            self.deleted(pod);
        }
        for pod in pods {
            self.not_gone_after_all(&pod);
            self.applied(pod);
        }
        self.listed = true;
    }

    /// A pod appeared or changed.
    pub fn applied(&mut self, seen: PodSeen) {
        self.trouble = None;
        let key = name(&seen.pod);
        match self.pods.get(&key) {
            Some(known) if known.seen.pod.uid == seen.pod.uid => self.changed(&key, seen),
            Some(known) => {
                let replaced = known.seen.pod.clone();
                self.deleted(&replaced);
                self.appeared(&key, seen);
            }
            None => self.appeared(&key, seen),
        }
    }

    /// A pod is gone from the API, this very incarnation.
    pub fn deleted(&mut self, pod: &PodRef) {
        self.trouble = None;
        let key = name(pod);
        if self
            .pods
            .get(&key)
            .is_some_and(|known| known.seen.pod.uid == pod.uid)
        {
            let pod = self.pods.remove(&key).expect("it was found one line above");
            match pod.standing {
                Standing::Waits(_) | Standing::Dropped => self.left(&pod.seen),
                Standing::Stays
                | Standing::Tolerated
                | Standing::Kept
                | Standing::Asks(_)
                | Standing::Gone => {}
            }
        }
    }

    /// The answer to a lookup that [`Step::look_up`] asked for.
    pub fn daemonset(&mut self, set: &DaemonSetRef, lookup: Lookup, now: Now) {
        self.lookups.answered(set, lookup, now.mono);
        let asking: Vec<Name> = self
            .pods
            .iter()
            .filter(|(_, pod)| matches!(&pod.standing, Standing::Asks(asked) if asked == set))
            .map(|(key, _)| key.clone())
            .collect();
        for key in asking {
            self.judge(&key, false);
        }
    }

    /// The answer to a call that [`Step::tries`] asked for. That of a try which is not the pod's
    /// last one only frees its place among the calls.
    pub fn answered(&mut self, id: EvictionId, answer: Answer, now: Now) {
        let Some(key) = self.calls.remove(&id) else {
            return;
        };
        let Some(pod) = self.pods.get_mut(&key) else {
            return;
        };
        let Standing::Waits(waiting) = &mut pod.standing else {
            return;
        };
        if waiting.turn != Turn::Called(id) {
            return;
        }
        match waiting.hear(answer, self.config.budget_retry, now.mono) {
            // Whatever the server said, the watch shows it ending.
            Outcome::Waits | Outcome::Dropped(_) | Outcome::Kept if pod.seen.deleting => {
                waiting.ends();
            }
            Outcome::Waits => {}
            Outcome::Kept => pod.standing = Standing::Kept,
            Outcome::Dropped(answer) => {
                pod.standing = Standing::Dropped;
                self.dropped.push(Dropped {
                    pod: pod.seen.pod.clone(),
                    answer,
                });
            }
            Outcome::Gone => {
                pod.standing = Standing::Gone;
                let seen = pod.seen.clone();
                self.left(&seen);
            }
        }
    }

    /// The answer to [`Step::list_budgets`], or why there is none.
    pub fn budgets_listed(&mut self, answer: Result<Vec<BudgetSeen>, String>, now: Now) {
        self.budgets.listed(answer, now.mono);
    }

    /// The pods cannot be watched for the moment. To be said at every vain try; the next event, or
    /// silence for longer than between two tries, means that it works again.
    pub fn troubled(&mut self, why: String, now: Now) {
        let until = now.mono.saturating_add(TROUBLE_STANDS);
        self.trouble = Some(Trouble { why, until });
    }

    /// All budgets of one watched namespace, at first and after every change of one.
    pub fn budgets(&mut self, namespace: &str, seen: Vec<BudgetSeen>) {
        let begins = !self.budgets.watches(namespace);
        for change in self.budgets.replace(namespace, seen) {
            self.retry_for(&change);
        }
        if begins {
            self.retry_uncovered(namespace);
        }
    }

    /// From now on the rest is deleted with its own grace, budgets or not: the deadline has passed
    /// and policy says `delete`. Pods whose eviction had failed for good are tried this way too.
    pub fn delete_rest(&mut self) {
        self.way = Way::Delete;
        self.dropped.clear();
        let keys: Vec<Name> = self.pods.keys().cloned().collect();
        for key in keys {
            let Some(pod) = self.pods.get(&key) else {
                continue;
            };
            let rest = match &pod.standing {
                Standing::Waits(waiting) => waiting.turn != Turn::Ending || waiting.held.is_some(),
                Standing::Dropped => true,
                Standing::Stays
                | Standing::Tolerated
                | Standing::Kept
                | Standing::Asks(_)
                | Standing::Gone => false,
            };
            if rest {
                self.enlist(&key);
            }
        }
    }

    /// What to do now. What it names is under way from then on.
    pub fn next(&mut self, now: Now) -> Step {
        self.trouble.take_if(|trouble| trouble.until <= now.mono);
        let list_budgets = self.budgets.asks(now.mono);
        if !self.listed {
            return Step {
                list_budgets,
                wake: self.wake(),
                ..Step::default()
            };
        }
        self.end_pauses(now.mono);
        let watch_budgets = self.budget_namespaces();
        self.budgets.watched_only(&watch_budgets);
        Step {
            tries: self.start_tries(),
            look_up: self.lookups.due(now.mono),
            list_budgets,
            watch_budgets,
            wake: self.wake(),
        }
    }

    /// An older 404 is outdone by a list that has the pod.
    fn not_gone_after_all(&mut self, listed: &PodSeen) {
        let key = name(&listed.pod);
        let known = self.pods.get(&key);
        if known
            .is_some_and(|pod| pod.standing == Standing::Gone && pod.seen.pod.uid == listed.pod.uid)
        {
            self.gone = self.gone.saturating_sub(1);
            self.enlist(&key);
        }
    }

    fn appeared(&mut self, key: &Name, seen: PodSeen) {
        let one_too_many = self.turnover.one_too_many(&seen, self.listed);
        self.pods.insert(
            key.clone(),
            Pod {
                seen,
                standing: Standing::Stays,
            },
        );
        self.judge(key, one_too_many);
    }

    fn changed(&mut self, key: &Name, seen: PodSeen) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        let deleting = seen.deleting;
        pod.seen = seen;
        match &mut pod.standing {
            // While a call is out, its answer decides what comes next, and sees `deleting` too.
            Standing::Waits(waiting) if deleting && !matches!(waiting.turn, Turn::Called(_)) => {
                waiting.ends();
            }
            Standing::Waits(_) | Standing::Dropped | Standing::Kept | Standing::Gone => {}
            Standing::Tolerated => self.judge(key, true),
            Standing::Stays | Standing::Asks(_) => self.judge(key, false),
        }
    }

    /// Decides anew about a pod that is not on the wait list.
    fn judge(&mut self, key: &Name, one_too_many: bool) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        let finished = pod.seen.phase == PodPhase::Finished;
        match fate(&pod.seen, self.config.exclude.as_ref(), &self.lookups) {
            Fate::Stays => pod.standing = Standing::Stays,
            Fate::Asks(set) => {
                self.lookups.want(&set);
                pod.standing = Standing::Asks(set);
            }
            Fate::Goes if one_too_many && !finished => pod.standing = Standing::Tolerated,
            Fate::Goes => self.enlist(key),
        }
    }

    /// Puts a pod on the wait list, its turn at the end of the queue.
    fn enlist(&mut self, key: &Name) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        // Its deletion has begun already: another request without a grace of its own would change
        // nothing.
        let turn = if pod.seen.deleting {
            Turn::Ending
        } else {
            Turn::Ready(self.places)
        };
        if turn != Turn::Ending {
            self.queue.insert(self.places, key.clone());
            self.places += 1;
        }
        pod.standing = Standing::Waits(Waiting::new(turn));
        self.budgets.enlisted(&pod.seen);
    }

    fn left(&mut self, pod: &PodSeen) {
        self.gone += 1;
        self.claims.extend(
            pod.claims
                .iter()
                .map(|claim| format!("{}/{claim}", pod.pod.namespace)),
        );
    }
}
