//! Runs the demo, story by story: all nodes want a reboot, a budget blocks one drain for a while, and
//! an admin's cordon must stay; two hosts without nodes are controlled through their annotations; one
//! machine fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiReply, ApiRequest, ApiServer};
use dogwatch_kubesim::clock::{ClusterClock as _, TokioClock};
use dogwatch_kubesim::world::{ActorTask, SimulatedCluster};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{DemoConfig, DemoError};
use super::files::HostFiles;
use super::hosts::DemoHosts;
use super::installation;
use super::machine::{self, DemoMachineConfig};
use super::story::DemoStory;
use super::verdict::{self, DemoVerdict};
use crate::names;
use crate::observer::{
    ClusterObserver, NodeView, ObservedKind, ObserverEntry, PodView, PromiseChecks,
    PromiseViolation, ShortNames, change_entries,
};
use crate::scenario::{DecisionLog, ScenarioTimeline, TimelineLine, coordinator_user};

/// Events within this time are shown together.
const TICK: Duration = Duration::from_millis(120);
/// When all nodes get their triggers at the earliest, in seconds from the start.
const TRIGGER_AFTER_SECONDS: f64 = 0.7;
/// How long the database's budget blocks a drain, in seconds.
const DRAIN_BLOCKED_SECONDS: f64 = 2.5;
/// How long nothing more happens before the next story begins, in seconds.
const PAUSE_SECONDS: f64 = 0.8;
/// The demo fails after this much more than its planned time. The reserve allows for a busy
/// machine: one with a thirtieth of a core needed more than two minutes.
const OVERTIME_LIMIT: Duration = Duration::from_mins(10);

/// A running demo. Dropping it stops it.
pub struct Demo {
    pub(super) config: DemoConfig,
    server: ApiServer,
    pub(super) observer: ClusterObserver,
    pub(super) checks: PromiseChecks,
    pub(super) bare_metal_hosts: DemoHosts,
    /// Broken promises about hosts.
    pub(super) broken: Vec<PromiseViolation>,
    short_names: ShortNames,
    pub(super) decision_log: DecisionLog,
    timeline: ScenarioTimeline,
    files: BTreeMap<String, HostFiles>,
    /// The node that an admin has cordoned.
    pub(super) cordoned: Option<String>,
    blocked_since: Option<Instant>,
    freed: bool,
    story: DemoStory,
    /// Since when the present story is over.
    story_over_since: Option<Instant>,
    start: Instant,
    _machines: Vec<ActorTask>,
    clock: Arc<TokioClock>,
    _cluster: Arc<SimulatedCluster>,
}

impl Demo {
    /// Builds the cluster and the hosts, and waits until they have settled.
    pub async fn start_demo(config: DemoConfig) -> Result<Self, DemoError> {
        let (server, clock, cluster) = config.build_cluster().await?;
        let minds = DecisionLog::default();
        let spec = cluster.spec().clone();
        let (mut files, mut machines) = (BTreeMap::new(), Vec::new());
        for (node, kubelet) in cluster.kubelets() {
            let host = HostFiles::create_folder(&config.folder, node)?;
            files.insert(node.clone(), host.clone());
            let machine = DemoMachineConfig {
                node: names::node_name(node),
                files: host,
                client: server.client_for_user(&coordinator_user(node)),
                config: config.coordinator_config(),
                clock: Arc::clone(&clock),
                runs: spec.seed.stream_for_actor(&format!("coordinator/{node}")),
                decision_log: minds.clone(),
                cluster: Arc::downgrade(&cluster),
            };
            machines.push(machine::start_machine(machine, kubelet.watch_power())?);
        }
        // Each of two nodes must take the other's pods, so neither is cordoned.
        let last = spec.node_names().last().filter(|_| config.nodes > 2);
        let flags = config.coordinator_config();
        installation::install_dogwatch(&server)?;
        let metal = DemoHosts::start_hosts(&config, &server, &clock)?;
        let mut demo = Self {
            config,
            observer: ClusterObserver::start_observer(&server),
            server,
            checks: PromiseChecks::new(flags),
            bare_metal_hosts: metal,
            broken: Vec::new(),
            clock,
            short_names: ShortNames::default(),
            decision_log: minds,
            timeline: ScenarioTimeline::new(TICK),
            files,
            cordoned: last,
            blocked_since: None,
            freed: false,
            story: DemoStory::Opening,
            story_over_since: None,
            start: Instant::now(),
            _machines: machines,
            _cluster: cluster,
        };
        demo.observe_changes(false);
        demo.cordon_node()?;
        Ok(demo)
    }

    /// The API server, to be served on a port.
    pub fn api_server(&self) -> &ApiServer {
        &self.server
    }

    pub fn sentinel_paths(&self) -> impl Iterator<Item = (&str, std::path::PathBuf)> {
        self.files
            .iter()
            .map(|(node, files)| (node.as_str(), files.sentinel_path()))
    }

    /// Runs for a moment, and returns what happened.
    pub async fn next_lines(&mut self) -> Result<Vec<TimelineLine>, DemoError> {
        let tick = Instant::now() + TICK;
        tokio::select! {
            biased;
            () = self.observer.wait_for_change() => {}
            () = self.decision_log.wait_for_entry() => {}
            () = tokio::time::sleep_until(tick) => {}
        }
        // How the cluster is set up belongs to no story.
        self.observe_changes(self.story != DemoStory::Opening);
        self.advance_play()?;
        Ok(self.take_lines())
    }

    /// Returns the lines of the last moment, which no call has returned yet.
    pub fn remaining_lines(&mut self) -> Vec<TimelineLine> {
        self.observe_changes(true);
        self.timeline.flush_pending(&self.short_names);
        self.take_lines()
    }

    /// Shortens paths to those below the demo's folder.
    fn take_lines(&mut self) -> Vec<TimelineLine> {
        let folder = format!("{}/", self.config.folder.display());
        let mut told = self.timeline.take_lines(&self.short_names);
        for told in &mut told {
            told.text = told.text.replace(&folder, "");
        }
        told
    }

    /// Whether every node has rebooted and nothing is left to do, or the time is exceeded.
    pub fn is_finished(&self) -> bool {
        self.is_overtime() || self.story == DemoStory::Finished
    }

    /// Whether the present story has come to its end.
    fn is_story_over(&self) -> bool {
        let hosts = &self.bare_metal_hosts;
        match self.story {
            DemoStory::Opening => {
                DemoHosts::are_checked(&self.observer)
                    && self.elapsed_time() >= self.config.scaled_time(TRIGGER_AFTER_SECONDS)
            }
            DemoStory::RebootNodes => self.unfinished_nodes().is_empty(),
            DemoStory::SwitchHosts => hosts.are_requests_served(&self.observer),
            DemoStory::RecoverNode => hosts.unfinished_hosts(&self.observer).is_empty(),
            DemoStory::Finished => false,
        }
    }

    /// Judges what has happened so far.
    pub fn judge_demo(&self) -> DemoVerdict {
        verdict::judge_demo(self)
    }

    /// The completed part, from 0 to 1.
    pub fn progress_fraction(&self) -> f64 {
        let done = self.files.len() - self.unfinished_nodes().len();
        let count = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
        if self.story == DemoStory::Opening {
            return 0.0;
        }
        count(done) / count(self.files.len())
    }

    pub(super) fn planned_nodes(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The time since the cluster was built.
    pub fn elapsed_time(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn unfinished_nodes(&self) -> Vec<&str> {
        let is_done = |name: &str, node: &NodeView| {
            node.record.is_none() && node.ready && self.checks.count_boots(name) > 0
        };
        let nodes = self.observer.list_objects(ObservedKind::Node);
        nodes
            .filter(|(name, _)| self.files.contains_key(*name))
            .filter(|(name, node)| !is_done(name, &NodeView::from_object(node)))
            .map(|(name, _)| name)
            .collect()
    }

    fn is_overtime(&self) -> bool {
        let each = self.config.scaled_time(12.0) + Duration::from_secs(3);
        let nodes = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.elapsed_time() > each * nodes + OVERTIME_LIMIT
    }

    fn observe_changes(&mut self, tell: bool) {
        for entry in self.bare_metal_hosts.take_entries() {
            if tell {
                self.timeline.add_entry(entry, &self.short_names);
            }
        }
        while let Some(change) = self.observer.next_change() {
            let mut broken = self
                .checks
                .judge_change(&change, &self.observer, self.clock.now());
            let of_host = self.bare_metal_hosts.judge_change(&change);
            self.broken.extend(of_host.iter().cloned());
            broken.extend(of_host);
            for entry in change_entries(&change, &mut self.short_names) {
                if tell {
                    self.timeline.add_entry(entry, &self.short_names);
                }
            }
            for violation in broken {
                self.timeline.add_entry(
                    ObserverEntry::from_line("!!", violation.0),
                    &self.short_names,
                );
            }
        }
        for thought in self.decision_log.take_entries() {
            self.timeline.add_decision(thought, &self.short_names);
        }
    }

    fn advance_play(&mut self) -> Result<(), DemoError> {
        if self.is_time_for_next_story() {
            self.begin_story(self.story.next_story())?;
        }
        for done in self.bare_metal_hosts.advance_hosts(&self.observer)? {
            self.add_line(&done);
        }
        if !self.freed && self.is_drain_blocked_long_enough() {
            self.freed = true;
            self.add_line(
                "an admin allows one pod of the database to be evicted: its PodDisruptionBudget now needs 1 healthy pod",
            );
            let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/db";
            self.patch_object(path, &json!({ "spec": { "minAvailable": 1 } }))?;
        }
        Ok(())
    }

    /// A short pause after each story keeps its last events apart from the next one.
    fn is_time_for_next_story(&mut self) -> bool {
        if !self.is_story_over() {
            self.story_over_since = None;
            return false;
        }
        let since = *self.story_over_since.get_or_insert_with(Instant::now);
        let pause = match self.story {
            DemoStory::Opening | DemoStory::RecoverNode | DemoStory::Finished => Duration::ZERO,
            DemoStory::RebootNodes | DemoStory::SwitchHosts => {
                self.config.scaled_time(PAUSE_SECONDS)
            }
        };
        since.elapsed() >= pause
    }

    fn begin_story(&mut self, story: DemoStory) -> Result<(), DemoError> {
        self.story = story;
        self.story_over_since = None;
        let introduction = story.introduction(self.config.nodes);
        if !introduction.is_empty() {
            self.timeline.add_remark("", &self.short_names);
            self.timeline.add_remark(&introduction, &self.short_names);
        }
        match story {
            DemoStory::Opening | DemoStory::Finished => {}
            DemoStory::RebootNodes => self.trigger_nodes()?,
            DemoStory::SwitchHosts => {
                for done in self.bare_metal_hosts.trigger_hosts()? {
                    self.add_line(&done);
                }
            }
            DemoStory::RecoverNode => self.bare_metal_hosts.failed_node.permit_failure(),
        }
        Ok(())
    }

    /// Creates sentinels on all nodes but one, and requests a reboot of that one.
    fn trigger_nodes(&mut self) -> Result<(), DemoError> {
        let requested = self
            .files
            .keys()
            .find(|node| node.starts_with('n'))
            .cloned();
        for (node, files) in self.files.clone() {
            if Some(&node) == requested.as_ref() {
                self.add_line(&format!(
                    "an admin requests a reboot of {node} by annotation"
                ));
                let request = json!({ "reason": "new firmware", "requester": "demo" }).to_string();
                let name = dogwatch_api::annotation::REBOOT_REQUESTED;
                let patch = json!({ "metadata": { "annotations": { name: request } } });
                self.patch_object(&format!("/api/v1/nodes/{node}"), &patch)?;
            } else {
                self.add_line(&format!(
                    "an update on {node} touches {}",
                    files.sentinel_path().display()
                ));
                files.touch_sentinel("kernel update")?;
            }
        }
        Ok(())
    }

    fn cordon_node(&mut self) -> Result<(), DemoError> {
        let Some(node) = self.cordoned.clone() else {
            return Ok(());
        };
        self.add_line(&format!(
            "an admin cordons {node} to replace its disk, and labels it so that Dogwatch does not count it"
        ));
        let labels = json!({ dogwatch_api::label::IGNORE: "true" });
        let patch = json!({ "spec": { "unschedulable": true }, "metadata": { "labels": labels } });
        self.patch_object(&format!("/api/v1/nodes/{node}"), &patch)
    }

    /// Whether a pod of the database has blocked its node's drain for long enough.
    fn is_drain_blocked_long_enough(&mut self) -> bool {
        let draining = |name: &str| {
            let node = self
                .observer
                .get_object(ObservedKind::Node, name)
                .map(NodeView::from_object);
            let phase = node.and_then(|node| node.record).map(|record| record.phase);
            phase == Some(dogwatch_core::reboot::RebootPhase::Draining)
        };
        let mut pods = self
            .observer
            .list_objects(ObservedKind::Pod)
            .map(|(_, pod)| PodView::from_object(pod));
        if !pods.any(|pod| pod.app == "db" && !pod.leaving && draining(&pod.node)) {
            self.blocked_since = None;
            return false;
        }
        let since = *self.blocked_since.get_or_insert_with(Instant::now);
        since.elapsed() >= self.config.scaled_time(DRAIN_BLOCKED_SECONDS)
    }

    fn add_line(&mut self, text: &str) {
        self.timeline
            .add_line(&format!("> {text}"), &self.short_names);
    }

    fn patch_object(&self, path: &str, body: &Value) -> Result<(), DemoError> {
        let request = ApiRequest::new("admin", Method::PATCH, path, body.to_string())
            .with_content_type("application/merge-patch+json");
        match self.server.handle_request(&request) {
            ApiReply::Response(answer) if answer.code >= 300 => Err(DemoError::Refused(
                answer.body_json()["message"].to_string(),
            )),
            ApiReply::Response(_) | ApiReply::Watch(_) => Ok(()),
        }
    }
}
