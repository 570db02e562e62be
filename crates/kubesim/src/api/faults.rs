//! Faults between a client and the server: lost, late, repeated or refused requests, cut watches.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::request::ApiRequest;
use super::route::{ApiVerb, ResourcePath, verb_of_request};

/// What a fault plan knows about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestInfo {
    pub user: String,
    /// None for a path that names no resource.
    pub verb: Option<ApiVerb>,
    /// The plural, or the path when it names no resource.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// Number of requests that this user sent before this one.
    pub nth: u64,
}

/// A fault of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultEffect {
    /// The request never arrives; the client sees a broken connection.
    LoseRequest,
    /// The request takes effect, but the client sees a broken connection.
    LoseAnswer,
    /// The request arrives late.
    DelayRequest(Duration),
    /// The request takes effect in time, but the answer is late.
    DelayAnswer(Duration),
    /// The request arrives a second time after this delay; the second answer is dropped.
    Duplicate(Duration),
    /// The server answers with this code; the request has no effect.
    Refuse(u16),
    /// The user's watches break before the request takes effect.
    CutWatches,
    /// A list is answered as it was before the last change of its kind, if the history knows that.
    OlderList,
}

pub(crate) type RequestFaultPlan = Box<dyn Fn(&RequestInfo) -> Vec<FaultEffect> + Send + Sync>;

/// The active fault plan, and the number of requests of each user.
#[derive(Default)]
pub(crate) struct RequestFaults {
    state: Mutex<RequestFaultState>,
}

#[derive(Default)]
struct RequestFaultState {
    plan: Option<RequestFaultPlan>,
    partitioned: Vec<String>,
    sent: BTreeMap<String, u64>,
}

impl RequestFaults {
    fn lock_state(&self) -> std::sync::MutexGuard<'_, RequestFaultState> {
        // A fault plan that panics leaves this state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_plan(&self, plan: Option<RequestFaultPlan>) {
        self.lock_state().plan = plan;
    }

    pub(crate) fn set_partitioned(&self, user: &str, apart: bool) {
        let mut state = self.lock_state();
        state.partitioned.retain(|other| other != user);
        if apart {
            state.partitioned.push(user.to_owned());
        }
    }

    /// Asks the plan for the faults of this request.
    pub(crate) fn effects_for_request(&self, request: &ApiRequest) -> Vec<FaultEffect> {
        let mut state = self.lock_state();
        if state.partitioned.contains(&request.user) {
            return vec![FaultEffect::LoseRequest];
        }
        let Some(plan) = state.plan.take() else {
            return Vec::new();
        };
        let sent = state.sent.entry(request.user.clone()).or_default();
        let info = request_info(request, *sent);
        *sent += 1;
        let effects = plan(&info);
        state.plan = Some(plan);
        effects
    }
}

fn request_info(request: &ApiRequest, nth: u64) -> RequestInfo {
    let words = ResourcePath::parse(&request.path);
    let verb = words
        .as_ref()
        .and_then(|words| verb_of_request(request, words));
    let words = words.unwrap_or_else(|| ResourcePath {
        resource: request.path.clone(),
        ..ResourcePath::default()
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
