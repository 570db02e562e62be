//! One request for the lock, from its arrival to its answer.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::lock::LeaseSeen;
use dogwatch_core::lock::api_lock::{
    NotAllowed, Wait, WaitingHost, answered_now, being_fenced, refusal,
};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::reason;
use dogwatch_k8s::lock::WaitingHere;
use dogwatch_k8s::{Error, Kind};
use jiff::Timestamp;

use super::MOST_WAITERS;
use super::hold::{Held, pause_after};
use super::leave::{self, Why};
use super::shared::{Pauses, Shared, jitter};
use super::target::Target;
use super::trace::Trace;
use crate::lock::service::{Client, LockAnswer, LockRequest};

/// How long the first sight of the cluster may take before a client is told to come again.
const FIRST_SIGHT: Duration = Duration::from_secs(5);
/// How often a host that may not begin is looked at anew: its labels choose the policy.
const LOOK_AGAIN: Duration = Duration::from_mins(5);

/// Serves one request. Dropping the future is the client going away.
pub(super) async fn serve(shared: Arc<Shared>, asked: LockRequest) -> LockAnswer {
    if *shared.stop.borrow() {
        return ending();
    }
    if shared.waiting() >= MOST_WAITERS {
        let why = format!("{MOST_WAITERS} requests wait here already; ask again later");
        return LockAnswer::TooMany { why };
    }
    let mut request = Request::new(&shared, asked);
    tokio::select! {
        biased;
        () = shared.stopped() => ending(),
        answer = request.run() => answer,
    }
}

fn ending() -> LockAnswer {
    LockAnswer::Unavailable {
        why: "this replica of the lock API ends; nothing is held, ask again".into(),
    }
}

/// Waits until this replica's Lease stands: no id of a process may be written before, for it would
/// look like one that is gone.
pub(super) async fn presence_stands(shared: &Shared) -> Result<(), String> {
    let mut present = shared.present.subscribe();
    let stands = tokio::time::timeout(FIRST_SIGHT, present.wait_for(|stands| *stands)).await;
    match stands {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) | Err(_) => {
            Err("the API server does not let this replica write its own Lease; ask again".into())
        }
    }
}

/// A request under way.
pub(super) struct Request {
    pub(super) shared: Arc<Shared>,
    pub(super) trace: Trace,
    pub(super) wait: Wait,
    pub(super) since: Timestamp,
    /// When it came, in monotonic time.
    pub(super) arrived: Duration,
    pub(super) jitter: f64,
    /// Gave the lock back: not before then.
    pub(super) bid_after: Option<Duration>,
    /// How many members the group has, as last counted.
    pub(super) group_size: u32,
    /// How often in a row it gave the lock back.
    given_back: u32,
    /// What the policy has forbidden it last, and since when without a break.
    forbidden: Option<(&'static str, Duration)>,
    /// The group and the Node, as last seen.
    seen_as: (Option<GroupName>, Option<NodeName>),
}

impl Drop for Request {
    fn drop(&mut self) {
        self.shared.waits_no_more(self.trace.number);
    }
}

/// How one attempt ended.
pub(super) enum End {
    Answer(LockAnswer),
    /// It waited for something: again from the start.
    Again,
    Trouble(Error),
}

impl Request {
    fn new(shared: &Arc<Shared>, asked: LockRequest) -> Self {
        let trace = Trace::new(shared, asked.client);
        Self {
            shared: Arc::clone(shared),
            jitter: jitter(trace.left.run.as_str()),
            trace,
            wait: asked.wait,
            since: shared.now().wall,
            arrived: shared.now().mono,
            bid_after: None,
            group_size: 1,
            given_back: 0,
            forbidden: None,
            seen_as: (None, None),
        }
    }

    /// Why it waits, for people to see.
    pub(super) fn say(&self, reason: &str, message: &str) {
        let (group, node) = self.seen_as.clone();
        let host = WaitingHost {
            holder: self.trace.left.holder.clone(),
            group,
            node,
            since: self.since,
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        self.shared.waits(self.trace.number, host);
    }

    async fn run(&mut self) -> LockAnswer {
        if let Err(why) = presence_stands(&self.shared).await {
            return LockAnswer::Unavailable { why };
        }
        let mut pauses = Pauses::default();
        let mut seen = false;
        loop {
            match self.attempt().await {
                End::Answer(answer) => return answer,
                End::Again => (seen, pauses) = (true, Pauses::default()),
                End::Trouble(error) => {
                    let lasting = matches!(error.kind(), Kind::Forbidden | Kind::Refused);
                    if !self.wait.is_some() || !seen || lasting {
                        let why = format!("{}; nothing is held, ask again", error.in_words());
                        return LockAnswer::Unavailable { why };
                    }
                    tracing::warn!(error = error.in_words(), holder = %self.trace.left.holder, "cannot ask for a lock");
                    self.say(reason::TROUBLE, &error.in_words());
                    pauses.pause().await;
                }
            }
        }
    }

    async fn attempt(&mut self) -> End {
        let Some(policies) = self.policies().await else {
            let why = "the RebootPolicies were not seen yet";
            return self.not_now(reason::LOOKING_AT_POLICIES, why).await;
        };
        if let Some(why) = self.group_refused(&policies) {
            return End::Answer(LockAnswer::Refused { why });
        }
        // What is over before the wait, or comes after it, is on the heap while it lasts: a thousand
        // requests wait, and one of them drains.
        let (target, leases) = match Box::pin(self.look(&policies)).await {
            Ok(seen) => seen,
            Err(error) => return End::Trouble(error),
        };
        self.seen_as = (Some(target.group.clone()), target.node_name().cloned());
        let holder = &self.trace.left.holder;
        // Its host's already: by an earlier request, here or at another replica.
        if let Some(lease) = leases
            .iter()
            .find(|lease| lease.holder.as_ref() == Some(holder))
        {
            if self.bid_after.is_some_and(|at| at > self.shared.now().mono) {
                let why = "too many are out";
                return self.not_now(reason::OVER_BUDGET, why).await;
            }
            let held = Box::pin(self.hold(target, lease, None)).await;
            return Box::pin(self.ended(held)).await;
        }
        if let Some(why) = target.node.as_ref().and_then(|node| refusal(&node.seen)) {
            return End::Answer(LockAnswer::Refused { why });
        }
        if let Some(why) = target
            .node
            .as_ref()
            .and_then(|node| being_fenced(&node.seen))
        {
            return self.not_now(reason::BEING_FENCED, &why).await;
        }
        if target.node.is_none()
            && let Some(why) = match self.remediated().await {
                Ok(why) => why,
                Err(error) => return End::Trouble(error),
            }
        {
            return self.not_now(reason::BEING_FENCED, &why).await;
        }
        let allowance = target.allowed(&policies, self.shared.now().wall);
        if let Some(not) = NotAllowed::of(allowance) {
            return self.wait_for_leave(&not).await;
        }
        self.queue(target).await
    }

    /// Why nobody may ask for the lock of this group over FleetLock. Before anything is made for it.
    fn group_refused(&self, policies: &Policies) -> Option<String> {
        let Client::FleetLock { group, .. } = self.trace.left.host.client() else {
            return None;
        };
        let names = policies.known().iter().map(|policy| policy.name.as_str());
        let groups = &self.shared.setup.fleetlock_groups;
        groups
            .serves(group, names)
            .err()
            .map(|refused| refused.to_string())
    }

    /// Waits its turn, and takes it.
    async fn queue(&mut self, target: Target) -> End {
        let here = WaitingHere {
            holder: self.trace.left.holder.clone(),
            since: self.since,
            control_plane: target.control_plane,
            zone: target.zone.clone(),
        };
        let queue = self.shared.queue(&target.group);
        let place = queue.join(&self.shared, self.trace.number, here);
        match self.turn(&target, &place).await {
            Ok(lease) => {
                let held = Box::pin(self.hold(target, &lease, Some(place))).await;
                Box::pin(self.ended(held)).await
            }
            Err(end) => end,
        }
    }

    async fn look(&mut self, policies: &Policies) -> Result<(Target, Vec<LeaseSeen>), Error> {
        let target = self
            .shared
            .target(&mut self.trace.left.host, policies)
            .await?;
        Ok((target, self.shared.locks().list_all().await?))
    }

    /// Why a host that is no Node now may be one again in a moment: its Node was deleted for a
    /// remediation, which has not ended.
    async fn remediated(&self) -> Result<Option<String>, Error> {
        let Client::Api { host } = self.trace.left.host.client() else {
            return Ok(None);
        };
        let Ok(node) = NodeName::new(host.as_str()) else {
            return Ok(None);
        };
        let is_held = self.shared.locks().is_remediated(&node).await?;
        let why = || format!("node {node} is being remediated and not back yet; asks when it is");
        Ok(is_held.then(why))
    }

    /// The policies, once they were seen.
    async fn policies(&self) -> Option<Policies> {
        let mut policies = self.shared.policies.subscribe();
        let seen = policies.wait_for(|policies| !matches!(policies, Policies::NotYet));
        let seen = tokio::time::timeout(FIRST_SIGHT, seen).await;
        seen.ok()?.ok().map(|policies| policies.clone())
    }

    /// What follows from how the hold ended. Whatever is left of it goes before anything else.
    async fn ended(&mut self, held: Held) -> End {
        let (answer, why) = match held {
            Held::Told { why } => {
                self.trace.settled();
                return End::Answer(LockAnswer::Held { why });
            }
            Held::Trouble(error) if !self.wait.is_some() => return End::Trouble(error),
            Held::Trouble(error) => {
                self.give_up(Why::Done).await;
                return End::Trouble(error);
            }
            Held::Refused { why } => (Some(LockAnswer::Refused { why }), String::new()),
            Held::DrainFailed { why } => (Some(LockAnswer::DrainFailed { why }), String::new()),
            Held::OverBudget { why } => {
                self.give_up(Why::OverBudget).await;
                let pause = pause_after(self.given_back, self.jitter);
                self.given_back = self.given_back.saturating_add(1);
                self.bid_after = Some(self.shared.now().mono + pause);
                self.say(reason::OVER_BUDGET, &why);
                return self.busy_or(why, End::Again);
            }
            Held::NotAllowed(not) => {
                self.give_up(Why::Done).await;
                return self.not_allowed_or_again(&not);
            }
            Held::Not { why } => (None, why),
        };
        self.give_up(Why::Done).await;
        match answer {
            Some(answer) => End::Answer(answer),
            None => self.busy_or(why, End::Again),
        }
    }

    async fn give_up(&mut self, why: Why) {
        if !self.trace.left.touched {
            return;
        }
        leave::give_up(&self.shared, self.trace.left.clone(), why).await;
        self.trace.settled();
    }

    /// Who does not want to wait is told why; for others it goes on.
    pub(super) fn busy_or(&self, why: String, end: End) -> End {
        if self.wait.is_some() {
            end
        } else {
            End::Answer(LockAnswer::Busy { why })
        }
    }

    async fn not_now(&self, reason: &str, why: &str) -> End {
        self.say(reason, why);
        if self.wait.is_some() {
            let until = self
                .bid_after
                .unwrap_or_default()
                .max(self.shared.now().mono + FIRST_SIGHT);
            self.shared.setup.clock.sleep_until(until).await;
        }
        self.busy_or(why.to_owned(), End::Again)
    }

    /// Waits until the policy may allow it, or has changed; or answers that it does not.
    async fn wait_for_leave(&mut self, not: &NotAllowed) -> End {
        let mut policies = self.shared.policies.subscribe();
        let end = self.not_allowed_or_again(not);
        if matches!(end, End::Again) {
            let now = self.shared.now();
            let again = now.mono + LOOK_AGAIN.mul_f64(1.0 + self.jitter);
            let until = not
                .until
                .map_or(again, |until| now.mono_at(until).min(again));
            tokio::select! {
                // Its sender is in `shared`.
                _ = policies.changed() => {}
                () = self.shared.setup.clock.sleep_until(until) => {}
            }
        }
        end
    }

    /// What the policy forbids is shown; and answered, where it lasts for longer than the client waits.
    pub(super) fn not_allowed_or_again(&mut self, not: &NotAllowed) -> End {
        let now = self.shared.now();
        let since = match self.forbidden {
            Some((reason, since)) if reason == not.reason => since,
            Some(_) | None => now.mono,
        };
        self.forbidden = Some((not.reason, since));
        self.say(not.reason, &not.message);
        let so_far = now.mono.saturating_sub(since);
        match answered_now(not, self.wait, so_far, now.wall) {
            Some(again) => End::Answer(LockAnswer::NotAllowed {
                why: format!("{}; nothing is held", not.message),
                again,
            }),
            None => End::Again,
        }
    }

    /// Nothing forbids it any more.
    pub(super) fn is_allowed(&mut self) {
        self.forbidden = None;
    }

    /// Why the policy forbids it by now, for one who waits in the queue.
    pub(super) fn forbidden_now(&self, target: &Target, policies: &Policies) -> Option<NotAllowed> {
        let target = self.shared.again(target, policies);
        NotAllowed::of(target.allowed(policies, self.shared.now().wall))
    }
}
