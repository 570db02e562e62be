//! What can go wrong between a client and the server.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::request::Request;
use super::route::{PathWords, Verb, verb};

/// What a plan of faults sees of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestInfo {
    /// Who asks.
    pub user: String,
    /// None for a path that is no resource.
    pub verb: Option<Verb>,
    /// The plural; the path when it is no resource.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty when there is none.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// How many requests this user sent before this one.
    pub nth: u64,
}

/// One thing that goes wrong with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultEffect {
    /// It never arrives; the client sees a broken connection.
    LoseRequest,
    /// It acts, but the client sees a broken connection.
    LoseAnswer,
    /// It arrives late.
    DelayRequest(Duration),
    /// It acts in time, but the answer is late.
    DelayAnswer(Duration),
    /// It arrives once more, this much later; nobody sees the second answer.
    Duplicate(Duration),
    /// It is answered with this code and never acts.
    Refuse(u16),
    /// The user's watches break off before it acts.
    CutWatches,
}

/// The plan: a closure of the caller's.
pub(crate) type Plan = Box<dyn Fn(&RequestInfo) -> Vec<FaultEffect> + Send + Sync>;

/// Faults as they stand, and how many requests each user has sent.
#[derive(Default)]
pub(crate) struct Faults {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    partitioned: Vec<String>,
    sent: BTreeMap<String, u64>,
}

impl Faults {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A plan that panics leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_plan(&self, plan: Option<Plan>) {
        self.state().plan = plan;
    }

    pub(crate) fn partition(&self, user: &str, apart: bool) {
        let mut state = self.state();
        state.partitioned.retain(|other| other != user);
        if apart {
            state.partitioned.push(user.to_owned());
        }
    }

    /// What is to go wrong with this request.
    pub(crate) fn of(&self, request: &Request) -> Vec<FaultEffect> {
        let mut state = self.state();
        if state.partitioned.contains(&request.user) {
            return vec![FaultEffect::LoseRequest];
        }
        let Some(plan) = state.plan.take() else {
            return Vec::new();
        };
        let sent = state.sent.entry(request.user.clone()).or_default();
        let info = info(request, *sent);
        *sent += 1;
        let effects = plan(&info);
        state.plan = Some(plan);
        effects
    }
}

fn info(request: &Request, nth: u64) -> RequestInfo {
    let words = PathWords::parse(&request.path);
    let verb = words.as_ref().and_then(|words| verb(request, words));
    let words = words.unwrap_or_else(|| PathWords {
        resource: request.path.clone(),
        ..PathWords::default()
    });
    RequestInfo {
        user: request.user.clone(),
        verb,
        resource: words.resource,
        subresource: words.subresource,
        namespace: words.namespace,
        name: words.name,
        nth,
    }
}
