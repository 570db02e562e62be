//! Which calls of a process follow each other. Under the paused clock each call takes a time that no
//! other call takes, so a call that begins in the millisecond in which another one ended has waited
//! for it. What passes without a call is a timer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use tokio::time::Instant;

/// The first call's time; each later call takes longer by [`STEP`].
const FIRST: Duration = Duration::from_millis(400);
const STEP: Duration = Duration::from_millis(3);
/// Timers of tokio count milliseconds: what begins so late after an end has not waited longer.
const ROUNDING: Duration = Duration::from_millis(2);

/// The user of calls to BMCs.
pub const BMC_USER: &str = "BMC";

/// A call of the process under test.
#[derive(Debug, Clone)]
pub struct TracedCall {
    /// The user of the API server, or [`BMC_USER`].
    pub user: String,
    pub what: String,
    pub begun: Duration,
    pub ended: Duration,
}

#[derive(Debug)]
struct Trace {
    origin: Instant,
    calls: Vec<TracedCall>,
}

/// The calls since [`CallTrace::begin`]; before it, calls take no time.
#[derive(Debug, Clone, Default)]
pub struct CallTrace(Arc<Mutex<Option<Trace>>>);

impl CallTrace {
    pub fn begin(&self) {
        *self.0.lock().unwrap() = Some(Trace {
            origin: Instant::now(),
            calls: Vec::new(),
        });
    }

    /// Traces the calls of the users whose names begin so. Watches are open already: what they show is
    /// not a call.
    pub fn follow_users(&self, server: &ApiServer, beginning: &'static str) {
        let trace = self.clone();
        server.set_faults(move |request| {
            if !request.user.starts_with(beginning) || request.verb == Some(ApiVerb::Watch) {
                return Vec::new();
            }
            let call = trace.begin_call(&request.user, &api_call(request));
            let late = call.map(|(_, takes)| FaultEffect::DelayRequest(takes));
            late.into_iter().collect()
        });
    }

    /// Its number, and how long it has to take; `None`: nothing is traced.
    fn begin_call(&self, user: &str, what: &str) -> Option<(usize, Duration)> {
        let mut trace = self.0.lock().unwrap();
        let trace = trace.as_mut()?;
        let takes = FIRST + STEP * u32::try_from(trace.calls.len()).unwrap();
        let begun = trace.origin.elapsed();
        trace.calls.push(TracedCall {
            user: user.to_owned(),
            what: what.to_owned(),
            begun,
            ended: begun + takes,
        });
        Some((trace.calls.len() - 1, takes))
    }

    /// Traces this call to a BMC, which takes its own time too.
    pub async fn trace_bmc_call<T>(&self, what: &str, call: impl Future<Output = T>) -> T {
        let Some((number, takes)) = self.begin_call(BMC_USER, what) else {
            return call.await;
        };
        tokio::time::sleep(takes).await;
        let answer = call.await;
        if let Some(trace) = self.0.lock().unwrap().as_mut() {
            trace.calls[number].ended = trace.origin.elapsed();
        }
        answer
    }

    pub fn calls(&self) -> Vec<TracedCall> {
        let trace = self.0.lock().unwrap();
        trace.as_ref().map_or_else(Vec::new, |it| it.calls.clone())
    }

    /// The calls that followed each other, up to the first call that is `last`. These timers may pass
    /// between two of them.
    pub fn series_to(&self, timers: &[Duration], last: impl Fn(&TracedCall) -> bool) -> CallSeries {
        let calls = self.calls();
        let last = calls.iter().find(|call| last(call));
        let last = last.expect("the last call was made");
        let mut series = series_before(&calls, last.begun, timers);
        series.calls.push(last.clone());
        series
    }

    /// The calls that followed each other until this moment.
    pub fn series_until(&self, moment: Instant, timers: &[Duration]) -> CallSeries {
        let trace = self.0.lock().unwrap();
        let trace = trace.as_ref().expect("something is traced");
        series_before(&trace.calls, moment - trace.origin, timers)
    }
}

fn series_before(calls: &[TracedCall], moment: Duration, timers: &[Duration]) -> CallSeries {
    let mut series = CallSeries::default();
    let mut moment = moment;
    while let Some(before) = find_cause(calls, moment, timers) {
        let gap = moment.abs_diff(before.ended);
        let is_known = |timer: &Duration| gap.abs_diff(*timer) <= ROUNDING;
        if gap > ROUNDING && !timers.iter().any(is_known) {
            series.unexplained.push(gap);
        }
        series.calls.push(before.clone());
        moment = before.begun;
    }
    series.calls.reverse();
    series
}

/// The call for which a later one waited until this moment: nothing passed between them, or one of
/// these timers; else the call that ended last.
fn find_cause<'a>(
    calls: &'a [TracedCall],
    moment: Duration,
    timers: &[Duration],
) -> Option<&'a TracedCall> {
    let ended: Vec<&TracedCall> = calls.iter().filter(|call| call.ended <= moment).collect();
    let nearest = |timer: Duration| {
        let missed_by = |call: &TracedCall| moment.abs_diff(call.ended).abs_diff(timer);
        let nearest = ended.iter().min_by_key(|call| missed_by(call)).copied();
        nearest.filter(|call| missed_by(call) <= ROUNDING)
    };
    let mut known = std::iter::once(Duration::ZERO).chain(timers.iter().copied());
    let last = || ended.iter().max_by_key(|call| call.ended).copied();
    known.find_map(nearest).or_else(last)
}

/// Calls of which each one waited for the one before it.
#[derive(Debug, Default)]
pub struct CallSeries {
    pub calls: Vec<TracedCall>,
    /// What passed between calls that is no timer: the series may be too short.
    pub unexplained: Vec<Duration>,
}

impl CallSeries {
    pub fn list_calls(&self) -> Vec<String> {
        let name = |call: &TracedCall| format!("{} {}", call.user, call.what);
        self.calls.iter().map(name).collect()
    }

    pub fn count_calls_of(&self, user: &str) -> usize {
        self.calls.iter().filter(|call| call.user == user).count()
    }
}

/// `PATCH nodes/status n1`, without a namespace.
fn api_call(request: &RequestInfo) -> String {
    let verb = request
        .verb
        .map_or_else(String::new, |verb| format!("{verb:?}"));
    let mut what = format!("{} {}", verb.to_uppercase(), request.resource);
    for part in [(&request.subresource, '/'), (&request.name, ' ')] {
        if !part.0.is_empty() {
            what.push(part.1);
            what.push_str(part.0);
        }
    }
    what
}
