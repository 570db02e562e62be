//! Whether every state can still come to a good end without help: "nobody is left behind", for
//! states in which something goes round in circles as well as for those in which nothing moves.
//!
//! The search notes each step that is no misfortune. Afterwards the steps are walked backwards from
//! the good states. A state that is not met on the way is a trap.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock};

#[derive(Debug, Default)]
pub struct SearchGraph {
    inner: Mutex<GraphInner>,
    /// A trap that a second search is to find the way to.
    wanted_trap: OnceLock<u64>,
}

#[derive(Debug, Default)]
struct GraphInner {
    /// For each state the states from which one step leads to it.
    backwards: HashMap<u64, Vec<u64>>,
    good: Vec<u64>,
    states: HashSet<u64>,
    in_order: Vec<u64>,
}

fn digest_state(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

impl SearchGraph {
    pub fn add_step(&self, from: &impl Hash, to: &impl Hash) {
        let (from, to) = (digest_state(from), digest_state(to));
        let mut inner = self.inner.lock().expect("no holder panics");
        inner.backwards.entry(to).or_default().push(from);
    }

    pub fn add_state(&self, state: &impl Hash, is_good: impl FnOnce() -> bool) {
        let digest = digest_state(state);
        let mut inner = self.inner.lock().expect("no holder panics");
        if !inner.states.insert(digest) {
            return;
        }
        inner.in_order.push(digest);
        drop(inner);
        if is_good() {
            let mut inner = self.inner.lock().expect("no holder panics");
            inner.good.push(digest);
        }
    }

    /// The states from which no good one can be reached.
    pub fn find_traps(&self) -> HashSet<u64> {
        let inner = self.inner.lock().expect("no holder panics");
        let mut todo = inner.good.clone();
        let mut reached: HashSet<u64> = todo.iter().copied().collect();
        while let Some(state) = todo.pop() {
            for from in inner.backwards.get(&state).into_iter().flatten() {
                if reached.insert(*from) {
                    todo.push(*from);
                }
            }
        }
        inner.states.difference(&reached).copied().collect()
    }

    /// A trap from which little else can be reached: what is stuck there has got furthest.
    pub fn choose_trap(&self, traps: &HashSet<u64>) -> Option<u64> {
        let inner = self.inner.lock().expect("no holder panics");
        let mut forwards: HashMap<u64, Vec<u64>> = HashMap::new();
        for (to, all) in &inner.backwards {
            for from in all.iter().filter(|from| traps.contains(from)) {
                forwards.entry(*from).or_default().push(*to);
            }
        }
        let mut order = inner.in_order.iter().rev();
        let mut chosen = *order.find(|digest| traps.contains(digest))?;
        for _ in 0..3 {
            chosen = find_farthest(chosen, &forwards);
        }
        Some(chosen)
    }

    /// A graph that notes nothing and recognizes this trap.
    pub fn wanting(trap: u64) -> Self {
        let graph = Self::default();
        graph.wanted_trap.get_or_init(|| trap);
        graph
    }

    pub fn is_wanted_trap(&self, state: &impl Hash) -> bool {
        let wanted = self.wanted_trap.get();
        wanted.is_some_and(|wanted| *wanted == digest_state(state))
    }

    /// Whether steps are noted.
    pub fn is_noting(&self) -> bool {
        self.wanted_trap.get().is_none()
    }
}

/// The state that most steps lead to from here.
fn find_farthest(from: u64, forwards: &HashMap<u64, Vec<u64>>) -> u64 {
    let mut seen = HashSet::from([from]);
    let mut queue = VecDeque::from([from]);
    let mut last = from;
    while let Some(state) = queue.pop_front() {
        last = state;
        let next = forwards.get(&state).into_iter().flatten();
        queue.extend(next.filter(|next| seen.insert(**next)));
    }
    last
}
