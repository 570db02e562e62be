//! Tells others that a node is away because we reboot it: medik8s' Lease of the node, and the
//! annotation by which Cluster API's health checks leave its Machine alone. Source: specification §4.4.
//!
//! **For:** one loop while this process leads: watch, decide ([`handshake::decide`]), do.
//! **May touch:** what [`HandshakeClient`] may.
//! **Promises:** nothing is written while this process does not lead; a mark of ours that a dead leader
//! left is found by the next one, with its first look (S6); where no node reboots and no mark is left,
//! no call is made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::handshake::{self, Action, Rebooting, SAY_AGAIN};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::RebootsWatched;
use dogwatch_k8s::Error;
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::handshake::{HandshakeClient, Marks};
use dogwatch_process::health::Heart;
use tracing::{info, warn};

use crate::Context;
use crate::healer::pace::Pace;
use crate::metrics::{Family, Shape};

/// How often the cluster is looked at at most: with 5,000 nodes something changes many times a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

static TOLD: Family = Family {
    name: "dogwatch_handshake_nodes",
    help: "Nodes that are rebooted as planned, of which other health checkers are told.",
    shape: Shape::Gauge,
};
static ACTIONS: Family = Family {
    name: "dogwatch_handshake_marks_total",
    help: "Marks that were put on or taken off, by mark and by how it ended: done, changed or failed.",
    shape: Shape::Counter,
};

/// Tells others while this process leads.
pub async fn run(context: Context) {
    context
        .while_leading(|| Handshake::new(context.clone()).lead())
        .await;
}

struct Handshake {
    context: Context,
    client: HandshakeClient,
    heart: Heart,
    watched: RebootsWatched,
    /// Of whom others were told when that was last looked at; `None`: not by this leader yet, or it did
    /// not succeed.
    told: Option<BTreeMap<NodeName, Rebooting>>,
    /// When they are looked at again although nothing changes.
    again: Option<Duration>,
    pace: Pace,
    forbidden: BTreeMap<&'static str, String>,
}

impl Handshake {
    fn new(context: Context) -> Self {
        Self {
            client: HandshakeClient::new(context.client.clone()),
            heart: context.board.heart("handshake"),
            context,
            watched: RebootsWatched::default(),
            told: None,
            again: None,
            pace: Pace::default(),
            forbidden: BTreeMap::new(),
        }
    }

    async fn lead(mut self) {
        let mut cluster = self.context.cluster.clone();
        loop {
            let view = cluster.view();
            self.heart.working("handshake");
            let wake = self.pass(&view).await;
            let now = self.context.clock.now().mono;
            self.heart
                .sleeping(wake.map(|wake| wake.saturating_sub(now)));
            tokio::select! {
                _ = cluster.next() => {}
                () = self.context.clock.wake_at(wake) => {}
            }
            self.context.clock.sleep_until(now + LOOK_EVERY).await;
        }
    }

    /// Looks whether anything is to be told, and tells it. When to do so again.
    async fn pass(&mut self, view: &ClusterView) -> Option<Duration> {
        // Before the policies are known nobody can say how long a reboot may take.
        if !view.synced || matches!(view.policies, Policies::NotYet) {
            return None;
        }
        let now = self.context.clock.now();
        self.watched
            .saw(view.nodes.values().map(AsRef::as_ref), now);
        let flags = &self.context.flags;
        let wanted = handshake::wanted(&view.nodes, &self.watched, &view.policies, flags, now);
        let ends = wanted.values().map(|told| told.until).min();
        let paused = self.pace.until().filter(|until| *until > now.mono);
        let settled = self.told.as_ref() == Some(&wanted);
        let due = !settled || self.again.is_some_and(|again| again <= now.mono);
        if due && paused.is_none() {
            self.tell(wanted).await;
        }
        let pace = self.pace.until().filter(|_| self.told.is_none());
        [ends, self.again, pace].into_iter().flatten().min()
    }

    async fn tell(&mut self, wanted: BTreeMap<NodeName, Rebooting>) {
        let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        self.context.metrics.set(&TOLD, &[], count.into());
        let done = self.write(&wanted).await;
        let now = self.context.clock.now().mono;
        // While somebody is to be told, it is looked at now and then whether the marks still stand.
        self.again = (!wanted.is_empty()).then_some(now + SAY_AGAIN);
        match done {
            Ok(true) => {
                self.pace.well();
                self.told = Some(wanted);
            }
            Ok(false) => self.try_again(),
            Err(error) => {
                warn!(
                    error = error.in_words(),
                    "cannot tell others of the nodes that are rebooted as planned; trying again"
                );
                self.try_again();
            }
        }
    }

    fn try_again(&mut self) {
        self.told = None;
        self.pace.trouble(self.context.clock.now().mono);
    }

    /// Reads the marks and mends what is wrong with them. `false`: something had changed meanwhile.
    async fn write(&mut self, wanted: &BTreeMap<NodeName, Rebooting>) -> Result<bool, Error> {
        let nodes: BTreeSet<NodeName> = wanted.keys().cloned().collect();
        let marks = self.client.marks(&nodes).await?;
        self.say_forbidden(&marks);
        let now = self.context.clock.now();
        let actions = handshake::decide(wanted, &marks.machines, marks.leases.as_deref(), now);
        let mut all = true;
        let mut failed = None;
        for action in actions {
            // Trouble with one mark delays only itself.
            match self.act(&action).await {
                Ok(done) => all &= done,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    async fn act(&mut self, action: &Action) -> Result<bool, Error> {
        if self.context.leadership.leads().is_none() {
            return Ok(false);
        }
        let now = self.context.clock.now().wall;
        let done = self.client.act(action, now).await;
        let result = match &done {
            Ok(true) => "done",
            Ok(false) => "changed",
            Err(_) => "failed",
        };
        let labels = [("mark", verb(action)), ("result", result)];
        self.context.metrics.add(&ACTIONS, &labels, 1);
        info!(about = about(action), result, "{}", verb(action));
        done
    }

    /// Where nobody uses it, nobody allows it: that is no alarm, and is said once.
    fn say_forbidden(&mut self, marks: &Marks) {
        for (what, why) in &marks.forbidden {
            if self.forbidden.insert(what, why.clone()).is_none() {
                info!(
                    what,
                    why, "others cannot be told here; see deploy/medik8s and deploy/cluster-api"
                );
            }
        }
    }
}

impl Drop for Handshake {
    /// Who does not lead tells nobody.
    fn drop(&mut self) {
        self.heart.sleeping(None);
        self.context.metrics.replace(&TOLD, []);
    }
}

fn verb(action: &Action) -> &'static str {
    match action {
        Action::MarkMachine(_) => "marks a Machine",
        Action::UnmarkMachine(_) => "takes the mark off a Machine",
        Action::TakeLease { .. } => "takes a node's Lease",
        Action::DeleteLease(_) => "gives a node's Lease back",
    }
}

fn about(action: &Action) -> String {
    match action {
        Action::MarkMachine(machine) | Action::UnmarkMachine(machine) => {
            format!("{}/{}", machine.namespace, machine.name)
        }
        Action::TakeLease { node, .. } => node.to_string(),
        Action::DeleteLease(lease) => lease.name.clone(),
    }
}
