//! From a Lease that is there to be taken until the client may be told that it holds.

use std::time::Duration;

use dogwatch_core::lock::api_lock::{
    self as rules, ApiNode, HoldSeen, HoldStep, NodeWrite, NotAllowed, Suspect,
};
use dogwatch_core::lock::{self, Budget, LeaseSeen, LockRecord, RECOUNT_PAUSE, Verdict};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::{Parsed, group_of_lease, reason};
use dogwatch_k8s::lock::{BidOutcome, api_lock};
use dogwatch_k8s::node::{Node, node_seen, watch_node};
use dogwatch_k8s::watch::Event;
use dogwatch_k8s::{Error, Kind, policy};
use futures::StreamExt as _;

use super::drain::{Drain, Drained};
use super::queue::InQueue;
use super::request::Request;
use super::shared::Pauses;
use super::target::Target;

/// How the hold ended. All but the first have left something that is to be given up.
pub(super) enum Held {
    /// The client may be told.
    Told {
        /// What it is told.
        why: String,
    },
    /// Not as things are: the lock went to somebody else.
    Not {
        /// Why.
        why: String,
    },
    /// The policy forbids it now.
    NotAllowed(NotAllowed),
    /// Too many are out.
    OverBudget {
        /// Who.
        why: String,
    },
    /// The Node is not ours to take.
    Refused {
        /// Why, and what to do.
        why: String,
    },
    /// The drain failed.
    DrainFailed {
        /// Why.
        why: String,
    },
    /// The API server does not answer as it should.
    Trouble(Error),
}

/// What is known while it lasts.
struct Hold {
    target: Target,
    leases: Vec<LeaseSeen>,
    /// Since when, in monotonic time.
    since: Duration,
    verdict: Option<Verdict>,
    may_go: bool,
    has_closed: bool,
    drained: bool,
    note: Option<String>,
    drain: Option<Drain>,
    place: Option<InQueue>,
}

/// What one step led to.
enum Next {
    Look,
    End(Held),
}

impl Request {
    /// Writes its id on this Lease and does all that is needed before its client may be told. The
    /// place in the queue is kept until it was counted: the next one here would only find the group
    /// over budget.
    pub(super) async fn hold(
        &mut self,
        target: Target,
        lease: &LeaseSeen,
        place: Option<InQueue>,
    ) -> Held {
        self.is_allowed();
        let lease = match self.take(&target, lease).await {
            Ok(Some(lease)) => lease,
            Ok(None) => return not("somebody else was first"),
            Err(error) => return Held::Trouble(error),
        };
        let mut hold = Hold {
            target,
            leases: vec![lease],
            since: self.shared.now().mono,
            verdict: None,
            may_go: false,
            has_closed: false,
            drained: false,
            note: None,
            drain: None,
            place,
        };
        let mut fresh = true;
        let mut pauses = Pauses::default();
        loop {
            match self.look_and_step(&mut hold, fresh).await {
                Ok(Next::Look) => pauses = Pauses::default(),
                Ok(Next::End(held)) => return held,
                Err(error) if self.wait.is_some() && error.kind() == Kind::Transient => {
                    tracing::warn!(error = error.in_words(), holder = %self.trace.left.holder, "trouble while taking a lock");
                    pauses.pause().await;
                }
                Err(error) => return Held::Trouble(error),
            }
            fresh = false;
        }
    }

    /// Its id, on a free Lease or beside those of other requests of the same host.
    async fn take(
        &mut self,
        target: &Target,
        lease: &LeaseSeen,
    ) -> Result<Option<LeaseSeen>, Error> {
        let record = self.record(target, lease);
        let left = &mut self.trace.left;
        left.touched = true;
        left.bid = Some(Box::new((lease.clone(), record.clone())));
        let outcome = self.shared.hand(&left.holder).bid(lease, &record).await;
        let queue = self.shared.queue(&target.group);
        match outcome {
            BidOutcome::Won(won) => {
                self.trace.left.bid = None;
                queue.saw([won.as_ref().clone()]);
                Ok(Some(*won))
            }
            BidOutcome::Lost { .. } => {
                self.trace.left.bid = None;
                queue.saw(self.shared.locks().list(&target.group).await?);
                Ok(None)
            }
            BidOutcome::Refused(error) => {
                self.trace.left.bid = None;
                Err(error)
            }
            BidOutcome::Unknown(error) => Err(error),
        }
    }

    fn record(&self, target: &Target, lease: &LeaseSeen) -> LockRecord {
        let node = target.node.as_ref().map(|node| &node.seen);
        let fresh = LockRecord {
            node: node.map(|node| node.name.clone()),
            node_uid: node.map(|node| node.uid.clone()),
            boot_id: node.and_then(|node| node.boot_id.clone()),
            group: group_of_lease(&lease.name).unwrap_or_else(|| target.group.clone()),
            max: max_of(target, self.group_size),
            since: self.shared.now().wall,
            runs: vec![self.trace.left.run.clone()],
        };
        rules::adopt(lease, &self.trace.left.run, fresh, |run| {
            self.shared.returned(run)
        })
    }

    async fn look_and_step(&mut self, hold: &mut Hold, fresh: bool) -> Result<Next, Error> {
        // The Node first: see `dogwatch_core::lock::api_lock`.
        // And at first in any case: a host that was none when it came may be a Node by now.
        if hold.target.node.is_some() || fresh {
            hold.target.node = self.read_node().await?;
            self.note_node(hold);
        }
        if hold.target.node.is_some() || !fresh {
            hold.leases = self.shared.locks().list_all().await?;
        }
        let left = &self.trace.left;
        let seen = HoldSeen {
            holder: &left.holder,
            run: &left.run,
            leases: &hold.leases,
            node: hold.target.node.as_ref(),
            verdict: hold.verdict.take(),
            may_go: hold.may_go,
            has_closed: hold.has_closed,
            drained: hold.drained,
        };
        match rules::hold(&seen, self.shared.now().wall) {
            HoldStep::Lost => Ok(Next::End(not("the lock was taken away"))),
            HoldStep::Refuse { why } => Ok(Next::End(Held::Refused { why })),
            HoldStep::OverBudget { why } => Ok(Next::End(Held::OverBudget { why })),
            HoldStep::NodeGone { why } | HoldStep::Vetoed { why } => {
                Ok(Next::End(Held::DrainFailed { why }))
            }
            HoldStep::Count { lease, why } => self.count(hold, &lease, why).await,
            HoldStep::Cordon { write } => self.cordon(hold, &write).await,
            HoldStep::Drain => Ok(self.drain(hold).await),
            HoldStep::Fenced { why } => {
                hold.drain = None;
                tracing::warn!(holder = %self.trace.left.holder, why, "nothing more is evicted");
                if let Some(node) = hold.target.node_name().cloned() {
                    self.until_not_fenced(&node).await;
                }
                Ok(Next::Look)
            }
            HoldStep::Answer { lease, record } => self.answer(hold, &lease, &record).await,
        }
    }

    /// What a read of the Node says about our own cordon.
    fn note_node(&mut self, hold: &mut Hold) {
        let Some(node) = &hold.target.node else {
            return;
        };
        let written = node
            .lock
            .get()
            .is_some_and(|lock| lock.run == self.trace.left.run);
        hold.has_closed |= written && node.seen.unschedulable;
        let moved = |version: &String| *version != node.seen.resource_version;
        if matches!(&self.trace.left.suspect, Suspect::Version(version) if moved(version)) {
            self.trace.left.suspect = Suspect::No;
        }
    }

    async fn count(
        &mut self,
        hold: &mut Hold,
        lease: &LeaseSeen,
        again: Option<String>,
    ) -> Result<Next, Error> {
        if again.is_some() {
            tokio::time::sleep(RECOUNT_PAUSE).await;
        }
        // As fresh as the count: who is a member, how many may be out, and whether now.
        let policies = self.fresh_policies().await?;
        hold.target = self.shared.again(&hold.target, &policies);
        let allowance = hold.target.allowed(&policies, self.shared.now().wall);
        if let Some(not) = NotAllowed::of(allowance) {
            return Ok(Next::End(Held::NotAllowed(not)));
        }
        let group = hold.target.group.clone();
        if group_of_lease(&lease.name).as_ref() != Some(&group) {
            return Ok(Next::End(not(&format!(
                "the host belongs to group {group} now"
            ))));
        }
        let reads = self
            .shared
            .locks()
            .count_reads(lease, &group, &policies)
            .await?;
        let count = lock::count_for(&reads, &self.trace.left.holder, hold.target.node_name());
        self.group_size = count.members;
        let budget = Budget {
            max: max_of(&hold.target, count.members),
        };
        let verdict = lock::verdict(
            budget,
            &count,
            lease,
            self.shared.now().mono.saturating_sub(hold.since),
        );
        if verdict == Verdict::StaleCount {
            hold.leases = self.shared.locks().list_all().await?;
        }
        if verdict == Verdict::Go {
            hold.may_go = true;
            hold.place = None;
        }
        hold.verdict = Some(verdict);
        // A host that is no Node has nothing else to look at: its answer is written on this very
        // version, or not at all.
        if hold.target.node.is_none() && hold.may_go {
            let record = lease
                .record
                .as_ref()
                .and_then(|record| rules::answer(record, &self.trace.left.run));
            return match record {
                Some(record) => self.answer(hold, lease, &record).await,
                None => Ok(Next::Look),
            };
        }
        Ok(Next::Look)
    }

    async fn cordon(&mut self, hold: &mut Hold, write: &NodeWrite) -> Result<Next, Error> {
        let node = hold.target.node.as_ref().expect("only a Node is cordoned");
        if node.lock == Parsed::Absent {
            let policies = self.fresh_policies().await?;
            let target = self.shared.again(&hold.target, &policies);
            let allowance = target.allowed(&policies, self.shared.now().wall);
            if let Some(not) = NotAllowed::of(allowance) {
                return Ok(Next::End(Held::NotAllowed(not)));
            }
        }
        self.trace.left.suspect = Suspect::Version(write.resource_version.clone());
        match api_lock::write(&self.shared.setup.client, node, write).await {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::NotFound) => {}
            Err(error) => return Err(error),
        }
        self.trace.left.suspect = Suspect::No;
        Ok(Next::Look)
    }

    async fn drain(&mut self, hold: &mut Hold) -> Next {
        let left = &self.trace.left;
        let ours = |leases: &[LeaseSeen]| {
            leases
                .iter()
                .any(|lease| lock::standing(lease, &left.holder, &left.run) == lock::Standing::Ours)
        };
        if hold.drain.is_none() {
            let lease = hold
                .leases
                .iter()
                .find(|lease| ours(std::slice::from_ref(lease)));
            let group = lease.and_then(|lease| group_of_lease(&lease.name));
            let group = group.unwrap_or_else(|| hold.target.group.clone());
            hold.drain = Drain::start(&self.shared, &hold.target, &group);
        }
        let Some(drain) = &mut hold.drain else {
            return Next::Look;
        };
        self.say(
            reason::DRAINING,
            "it holds the lock; pods are moved away from its node",
        );
        match drain.run(ours).await {
            Drained::Done { note } => {
                (hold.drained, hold.note, hold.drain) = (true, note, None);
                Next::Look
            }
            Drained::Failed { why } => Next::End(Held::DrainFailed { why }),
            Drained::NotAllowed(not) => Next::End(Held::NotAllowed(not)),
            Drained::Look => Next::Look,
        }
    }

    /// Waits until the remediator is done with the Node, or it is gone.
    async fn until_not_fenced(&self, name: &NodeName) {
        let client = self.shared.setup.client.clone();
        let mut node = watch_node(client, name.as_str()).boxed();
        while let Some(event) = node.next().await {
            if !is_fenced(&event) {
                return;
            }
        }
    }

    /// Before anybody is told: from here on the lock is the client's.
    async fn answer(
        &mut self,
        hold: &mut Hold,
        lease: &LeaseSeen,
        record: &LockRecord,
    ) -> Result<Next, Error> {
        let told = self
            .shared
            .hand(&self.trace.left.holder)
            .bid(lease, record)
            .await;
        match told {
            BidOutcome::Won(told) => {
                let holder = &self.trace.left.holder;
                let mut why = format!("{holder} holds Lease {}", told.name);
                if let Some(node) = hold.target.node_name() {
                    why = format!("{why}; node {node} is cordoned and drained");
                }
                if let Some(note) = &hold.note {
                    why = format!("{why} ({note})");
                }
                self.shared.queue(&hold.target.group).saw([*told]);
                Ok(Next::End(Held::Told { why }))
            }
            BidOutcome::Lost { .. } => Ok(Next::Look),
            BidOutcome::Unknown(error) | BidOutcome::Refused(error) => Err(error),
        }
    }

    /// Everybody here is told of them: who looks again must not find older ones.
    async fn fresh_policies(&self) -> Result<Policies, Error> {
        let policies = policy::policies(&self.shared.setup.client).await?;
        self.shared.saw_policies(policies.clone());
        Ok(policies)
    }

    async fn read_node(&mut self) -> Result<Option<ApiNode>, Error> {
        self.shared.node_of(&mut self.trace.left.host).await
    }
}

fn is_fenced(event: &Event<Node>) -> bool {
    let fenced = |node: &Node| node_seen(node).is_ok_and(|node| node.fenced);
    match event {
        Event::Restarted(nodes) => nodes.first().is_some_and(fenced),
        Event::Applied(node) => fenced(node),
        Event::Deleted(_) => false,
        // It passes by itself.
        Event::Trouble(_) => true,
    }
}

/// How many may be out in a group of so many.
pub(super) fn max_of(target: &Target, members: u32) -> u32 {
    let max = target
        .max
        .of(usize::try_from(members).unwrap_or(usize::MAX));
    u32::try_from(max).unwrap_or(u32::MAX)
}

fn not(why: &str) -> Held {
    Held::Not { why: why.into() }
}

/// How long one that gave the lock back leaves it to others.
pub(super) fn pause_after(given_back: u32, jitter: f64) -> Duration {
    lock::give_back_pause(given_back.saturating_add(1), jitter)
}
