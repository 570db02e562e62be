//! What is played: everything wants a reboot, a budget is in the way for a while, an admin's cordon
//! has to stay. Beside it two hosts that are no nodes are powered through their annotations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{DemoConfig, DemoError};
use super::files::HostFiles;
use super::machine::{self, MachineConfig};
use super::metal::Metal;
use super::verdict::{self, Verdict};
use crate::api::{ApiServer, Reply, Request};
use crate::chronicle::{
    Checks, Entry, Kind, Names, NodeView, Observer, PodView, Violation, holder_of, lines,
};
use crate::clock::{Clock as _, TokioClock};
use crate::scenario::{Minds, Timeline, Told, coordinator_user};
use crate::world::{Actor, Cluster};

/// What happens within this time is told together.
const MOMENT: Duration = Duration::from_millis(120);
/// After the start, everything wants a reboot.
const TRIGGERED_AFTER: f64 = 0.7;
/// For so long the database's budget holds a drain up.
const BLOCKED_FOR: f64 = 4.0;
/// So much longer than planned is a failure. The rest is for a machine that is busy with something else: one
/// that had a thirtieth of a core was not done after two minutes.
const PATIENCE: Duration = Duration::from_mins(10);

/// A running demo. Dropping it stops it.
pub struct Demo {
    pub(super) config: DemoConfig,
    server: ApiServer,
    pub(super) observer: Observer,
    pub(super) checks: Checks,
    pub(super) metal: Metal,
    /// Promises about hosts that were broken.
    pub(super) broken: Vec<Violation>,
    names: Names,
    minds: Minds,
    timeline: Timeline,
    files: BTreeMap<String, HostFiles>,
    /// The node that an admin has cordoned.
    pub(super) cordoned: Option<String>,
    blocked_since: Option<Instant>,
    freed: bool,
    triggered: bool,
    start: Instant,
    _machines: Vec<Actor>,
    clock: Arc<TokioClock>,
    _cluster: Arc<Cluster>,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: String,
    /// `Ready`, `NotReady`, with `,cordoned`.
    pub status: String,
    /// The phase of its reboot.
    pub phase: String,
    /// How many pods are on it, a DaemonSet's and mirrors left out.
    pub pods: usize,
    /// The lock that it holds.
    pub lock: String,
    /// How many new boots it had.
    pub boots: usize,
    /// What its coordinator does, and why.
    pub why: String,
}

impl Demo {
    /// Builds everything and waits until it has settled.
    pub async fn start(config: DemoConfig) -> Result<Self, DemoError> {
        let (server, clock, cluster) = config.build().await?;
        let minds = Minds::default();
        let spec = cluster.spec().clone();
        let (mut files, mut machines) = (BTreeMap::new(), Vec::new());
        for (node, kubelet) in cluster.kubelets() {
            let host = HostFiles::make(&config.folder, node.as_str())?;
            files.insert(node.to_string(), host.clone());
            let machine = MachineConfig {
                node: node.clone(),
                files: host,
                client: server.client(&coordinator_user(node.as_str())),
                config: config.coordinator(),
                clock: Arc::clone(&clock),
                runs: spec.seed.stream(&format!("coordinator/{node}")),
                minds: minds.clone(),
                cluster: Arc::downgrade(&cluster),
            };
            machines.push(machine::start(machine, kubelet.power())?);
        }
        // Two nodes have to hold each other's pods.
        let last = spec.node_names().last().filter(|_| config.nodes > 2);
        let flags = config.coordinator();
        let metal = Metal::start(&config, &server, &clock)?;
        let mut demo = Self {
            config,
            observer: Observer::start(&server),
            server,
            checks: Checks::new(flags),
            metal,
            broken: Vec::new(),
            clock,
            names: Names::default(),
            minds,
            timeline: Timeline::new(MOMENT),
            files,
            cordoned: last.map(String::from),
            blocked_since: None,
            freed: false,
            triggered: false,
            start: Instant::now(),
            _machines: machines,
            _cluster: cluster,
        };
        demo.look(false);
        demo.cordon()?;
        Ok(demo)
    }

    /// The API server, to be served on a port.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Where each node's sentinel is.
    pub fn sentinels(&self) -> impl Iterator<Item = (&str, std::path::PathBuf)> {
        self.files
            .iter()
            .map(|(node, files)| (node.as_str(), files.sentinel()))
    }

    /// Plays on for a moment, and tells what happened.
    pub async fn next(&mut self) -> Result<Vec<Told>, DemoError> {
        let tick = Instant::now() + MOMENT;
        tokio::select! {
            biased;
            () = self.observer.changed() => {}
            () = self.minds.changed() => {}
            () = tokio::time::sleep_until(tick) => {}
        }
        self.look(true);
        self.play()?;
        Ok(self.fresh())
    }

    /// What has happened and was not told yet: the last moment's.
    pub fn rest(&mut self) -> Vec<Told> {
        self.look(true);
        self.timeline.flush(&self.names);
        self.fresh()
    }

    /// Paths are told from the demo's folder on.
    fn fresh(&mut self) -> Vec<Told> {
        let folder = format!("{}/", self.config.folder.display());
        let mut told = self.timeline.fresh(&self.names);
        for told in &mut told {
            told.text = told.text.replace(&folder, "");
        }
        told
    }

    /// Whether every node has had its boot and nothing is left to do, or it takes far too long.
    pub fn is_over(&self) -> bool {
        self.is_late() || (self.triggered && self.is_done())
    }

    fn is_done(&self) -> bool {
        self.unfinished().is_empty() && self.metal.unfinished(&self.observer).is_empty()
    }

    /// Judges what has happened until now.
    pub fn verdict(&self) -> Verdict {
        verdict::verdict(self)
    }

    /// How much of it is done, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let done = self.files.len() - self.unfinished().len();
        let count = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
        if self.triggered {
            count(done) / count(self.files.len())
        } else {
            0.0
        }
    }

    /// The table.
    pub fn rows(&self) -> Vec<Row> {
        self.observer
            .all(Kind::Node)
            .map(|(name, node)| self.row(name, &NodeView::of(node)))
            .collect()
    }

    /// The nodes that reboot as planned, by name.
    pub(super) fn planned(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Since the cluster was there.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Nodes that still have something to do.
    pub(super) fn unfinished(&self) -> Vec<&str> {
        let is_done = |name: &str, node: &NodeView| {
            node.record.is_none() && node.ready && self.checks.boots(name) > 0
        };
        let nodes = self.observer.all(Kind::Node);
        nodes
            .filter(|(name, _)| self.files.contains_key(*name))
            .filter(|(name, node)| !is_done(name, &NodeView::of(node)))
            .map(|(name, _)| name)
            .collect()
    }

    fn is_late(&self) -> bool {
        let each = self.config.time(12.0) + Duration::from_secs(3);
        let nodes = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.elapsed() > each * nodes + PATIENCE
    }

    fn row(&self, name: &str, node: &NodeView) -> Row {
        let ready = if node.ready { "Ready" } else { "NotReady" };
        let cordoned = if node.cordoned { ",cordoned" } else { "" };
        let pods = self
            .observer
            .all(Kind::Pod)
            .map(|(_, pod)| PodView::of(pod));
        let holder = format!("node/{name}");
        let mut leases = self.observer.all(Kind::Lease);
        let lock = leases
            .find(|(_, lease)| holder_of(lease) == Some(&holder))
            .map_or("", |(lease, _)| lease);
        Row {
            node: name.to_owned(),
            status: format!("{ready}{cordoned}"),
            phase: node
                .record
                .as_ref()
                .map_or("", |record| record.phase.as_str())
                .to_owned(),
            pods: pods.filter(|pod| pod.node == name && !pod.stays).count(),
            lock: lock.trim_start_matches("dogwatch-").to_owned(),
            boots: self.checks.boots(name),
            why: self.why(name, node),
        }
    }

    fn why(&self, name: &str, node: &NodeView) -> String {
        if node.record.is_some() {
            return self.minds.reason(name).unwrap_or_default().to_owned();
        }
        node.last
            .as_ref()
            .map_or("", |last| last.outcome.as_str())
            .to_owned()
    }

    fn look(&mut self, tell: bool) {
        for entry in self.metal.news() {
            self.timeline.add(entry, &self.names);
        }
        for change in self.observer.take() {
            let mut broken = self.checks.saw(&change, &self.observer, self.clock.now());
            let of_host = self.metal.judge(&change);
            self.broken.extend(of_host.iter().cloned());
            broken.extend(of_host);
            for entry in lines(&change, &mut self.names) {
                if tell {
                    self.timeline.add(entry, &self.names);
                }
            }
            for violation in broken {
                self.timeline
                    .add(Entry::line("!!", violation.0), &self.names);
            }
        }
        for thought in self.minds.take() {
            self.timeline.think(thought, &self.names);
        }
    }

    fn play(&mut self) -> Result<(), DemoError> {
        if !self.triggered && self.elapsed() >= self.config.time(TRIGGERED_AFTER) {
            self.triggered = true;
            self.trigger()?;
            for done in self.metal.trigger()? {
                self.tell(&done);
            }
        }
        for done in self.metal.play(&self.observer)? {
            self.tell(&done);
        }
        if !self.freed && self.is_blocked_long() {
            self.freed = true;
            self.tell("an admin lets one pod of the database go: its budget wants 1 from now on");
            let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/db";
            self.patch(path, &json!({ "spec": { "minAvailable": 1 } }))?;
        }
        Ok(())
    }

    /// Sentinels everywhere, and a request on one node.
    fn trigger(&mut self) -> Result<(), DemoError> {
        let requested = self
            .files
            .keys()
            .find(|node| node.starts_with('n'))
            .cloned();
        for (node, files) in self.files.clone() {
            if Some(&node) == requested.as_ref() {
                self.tell(&format!(
                    "an admin asks for a reboot of {node}, by annotation"
                ));
                let request = json!({ "reason": "new firmware", "requester": "demo" }).to_string();
                let name = dogwatch_api::annotation::REBOOT_REQUESTED;
                let patch = json!({ "metadata": { "annotations": { name: request } } });
                self.patch(&format!("/api/v1/nodes/{node}"), &patch)?;
            } else {
                self.tell(&format!(
                    "an update on {node} touches {}",
                    files.sentinel().display()
                ));
                files.touch("kernel update")?;
            }
        }
        Ok(())
    }

    fn cordon(&mut self) -> Result<(), DemoError> {
        let Some(node) = self.cordoned.clone() else {
            return Ok(());
        };
        self.tell(&format!(
            "an admin cordons {node}, whose disk is to be replaced; it is not counted meanwhile"
        ));
        let labels = json!({ dogwatch_api::label::IGNORE: "true" });
        let patch = json!({ "spec": { "unschedulable": true }, "metadata": { "labels": labels } });
        self.patch(&format!("/api/v1/nodes/{node}"), &patch)
    }

    /// Whether a pod of the database has kept its node from draining for long enough.
    fn is_blocked_long(&mut self) -> bool {
        let draining = |name: &str| {
            let node = self.observer.get(Kind::Node, name).map(NodeView::of);
            let phase = node.and_then(|node| node.record).map(|record| record.phase);
            phase == Some(dogwatch_core::reboot::Phase::Draining)
        };
        let mut pods = self
            .observer
            .all(Kind::Pod)
            .map(|(_, pod)| PodView::of(pod));
        if !pods.any(|pod| pod.app == "db" && !pod.leaving && draining(&pod.node)) {
            self.blocked_since = None;
            return false;
        }
        let since = *self.blocked_since.get_or_insert_with(Instant::now);
        since.elapsed() >= self.config.time(BLOCKED_FOR)
    }

    fn tell(&mut self, text: &str) {
        self.timeline.say(&format!("> {text}"), &self.names);
    }

    fn patch(&self, path: &str, body: &Value) -> Result<(), DemoError> {
        let request = Request::new("admin", Method::PATCH, path, body.to_string())
            .content_type("application/merge-patch+json");
        match self.server.handle(&request) {
            Reply::Response(answer) if answer.code >= 300 => {
                Err(DemoError::Refused(answer.json()["message"].to_string()))
            }
            Reply::Response(_) | Reply::Watch(_) => Ok(()),
        }
    }
}
