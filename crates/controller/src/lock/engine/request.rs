//! One request for the lock, from its arrival to its answer.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::lock::LeaseSeen;
use dogwatch_core::lock::api_lock::{being_fenced, refusal};
use dogwatch_core::policy::{Allowance, Policies};
use dogwatch_k8s::lock::WaitingHere;
use dogwatch_k8s::{Error, Kind};
use jiff::Timestamp;

use super::MOST_WAITERS;
use super::hold::{Held, forbidden, pause_after};
use super::leave::{self, Why};
use super::shared::{Pauses, Shared, jitter};
use super::target::Target;
use super::trace::Trace;
use crate::lock::service::{LockAnswer, LockRequest};

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
    pub(super) wait: bool,
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
        }
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
                    if !self.wait || !seen || lasting {
                        let why = format!("{}; nothing is held, ask again", error.in_words());
                        return LockAnswer::Unavailable { why };
                    }
                    tracing::warn!(error = error.in_words(), holder = %self.trace.left.holder, "cannot ask for a lock");
                    pauses.pause().await;
                }
            }
        }
    }

    async fn attempt(&mut self) -> End {
        let Some(policies) = self.policies().await else {
            return self.not_now("the RebootPolicies were not seen yet").await;
        };
        // What is over before the wait, or comes after it, is on the heap while it lasts: a thousand
        // requests wait, and one of them drains.
        let (target, leases) = match Box::pin(self.look(&policies)).await {
            Ok(seen) => seen,
            Err(error) => return End::Trouble(error),
        };
        let holder = &self.trace.left.holder;
        // Its host's already: by an earlier request, here or at another replica.
        if let Some(lease) = leases
            .iter()
            .find(|lease| lease.holder.as_ref() == Some(holder))
        {
            if self.bid_after.is_some_and(|at| at > self.shared.now().mono) {
                return self.not_now("too many are out").await;
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
            return self.not_now(&why).await;
        }
        if let Allowance::No { message, until, .. } =
            target.allowed(&policies, self.shared.now().wall)
        {
            return self.wait_for_leave(message, until).await;
        }
        self.queue(target).await
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
            Held::Trouble(error) if !self.wait => return End::Trouble(error),
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
                return self.busy_or(why, End::Again);
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
        if self.wait {
            end
        } else {
            End::Answer(LockAnswer::Busy { why })
        }
    }

    async fn not_now(&self, why: &str) -> End {
        if self.wait {
            let until = self
                .bid_after
                .unwrap_or_default()
                .max(self.shared.now().mono + FIRST_SIGHT);
            self.shared.setup.clock.sleep_until(until).await;
        }
        self.busy_or(why.to_owned(), End::Again)
    }

    /// Waits until the policy may allow it, or has changed.
    async fn wait_for_leave(&self, why: String, until: Option<Timestamp>) -> End {
        if self.wait {
            let now = self.shared.now();
            let again = now.mono + LOOK_AGAIN.mul_f64(1.0 + self.jitter);
            let until = until.map_or(again, |until| now.mono_at(until).min(again));
            let mut policies = self.shared.policies.subscribe();
            tokio::select! {
                // Its sender is in `shared`.
                _ = policies.changed() => {}
                () = self.shared.setup.clock.sleep_until(until) => {}
            }
        }
        self.busy_or(why, End::Again)
    }

    /// Why the policy forbids it by now, for one who waits in the queue.
    pub(super) fn forbidden_now(&self, target: &Target, policies: &Policies) -> Option<String> {
        let target = self.shared.again(target, policies);
        forbidden(&target.allowed(policies, self.shared.now().wall))
    }
}
