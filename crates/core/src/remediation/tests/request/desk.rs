//! Requests in the simulated town: who creates them, and what the API server does with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::super::super::*;
use super::super::kit::*;
use super::super::town::Town;
use crate::condition::{self, CurrentCondition};
use crate::decision::DecisionReport;
use crate::name::NodeName;
use crate::reboot::ObservedNode;

/// The API server's objects for requests.
#[derive(Default)]
pub(in super::super) struct Desk {
    pub(in super::super) requests: BTreeMap<ObjectName, PowerRequest>,
    /// What is left on a tainted Node until the test removes it.
    pub(in super::super) left: Vec<String>,
    /// `timeAdded` of the taint out-of-service, by Node.
    pub(in super::super) taints: BTreeMap<NodeName, Timestamp>,
    pub(in super::super) handed_back: Vec<String>,
    made: u32,
}

pub(in super::super) const DELETE: RemediationStrategy = RemediationStrategy {
    kind: StrategyType::DeleteNode,
    retry_limit: 1,
    timeout: Duration::from_mins(10),
};

pub(super) const TAINT: RemediationStrategy = RemediationStrategy {
    kind: StrategyType::OutOfServiceTaint,
    ..DELETE
};

pub(super) fn request_name(name: &str) -> ObjectName {
    ObjectName::new("machines", name)
}

impl Desk {
    pub(in super::super) fn objects(&self) -> BTreeMap<ObjectName, Arc<PowerRequest>> {
        let requests = self.requests.iter();
        requests
            .map(|(name, it)| (name.clone(), Arc::new(it.clone())))
            .collect()
    }

    pub(in super::super) fn needs(&self, name: &ObjectName) -> bool {
        let request = self.requests.get(name);
        request.is_some_and(super::super::super::request::needs_remediation)
    }

    fn write(&mut self, seen: &PowerRequest, change: impl FnOnce(&mut PowerRequest)) -> bool {
        self.made += 1;
        let version = self.made.to_string();
        let there = self.requests.get_mut(&seen.name);
        let there =
            there.filter(|it| it.uid == seen.uid && it.resource_version == seen.resource_version);
        let Some(there) = there else { return false };
        change(there);
        there.resource_version = version;
        true
    }
}

impl Town {
    /// A health check creates a request of this name for the Machine of this name.
    pub(super) fn ask_as(&mut self, name: &str, machine: &str, strategy: RemediationStrategy) {
        self.desk.made += 1;
        let made = self.desk.made;
        let request = PowerRequest {
            name: request_name(name),
            uid: format!("uid-r{made}"),
            resource_version: made.to_string(),
            created: self.now().wall,
            has_finalizer: false,
            node_name: Some(format!("n-{machine}")),
            strategy: Ok(strategy),
            ..request()
        };
        self.desk.requests.insert(request.name.clone(), request);
    }

    pub(super) fn ask(&mut self, name: &str, strategy: RemediationStrategy) {
        self.ask_as(name, name, strategy);
    }

    /// The kubelet falls silent, Kubernetes notices it, and then a request is created.
    pub(super) fn fails(&mut self, name: &str, strategy: RemediationStrategy) {
        self.site(name).is_connected = false;
        self.until("seen failed", |town| !town.node(name).unwrap().seen.ready);
        self.ask(name, strategy);
    }

    /// The machine failed, and will be healthy after its next boot.
    pub(super) fn heals_by_boot(&mut self, name: &str) {
        self.until("off", |town| !town.is_on(name));
        self.site(name).is_connected = true;
    }

    pub(in super::super) fn is_on(&self, name: &str) -> bool {
        let mut sites = self.sites.iter();
        sites.find(|site| site.name == name).unwrap().power.is_on()
    }

    pub(in super::super) fn is_keyed(&self, name: &str) -> bool {
        RemediationKey::keys_on_host(self.host(name))
            .next()
            .is_some()
    }

    /// How often its power was cut.
    pub(super) fn cuts(&self, name: &str) -> usize {
        let site = self.sites.iter().find(|site| site.name == name).unwrap();
        let cuts = site.power.transitions.iter();
        cuts.filter(|(_, is_on)| !is_on).count()
    }

    pub(super) fn request(&self, name: &str) -> Option<&PowerRequest> {
        self.desk.requests.get(&request_name(name))
    }

    pub(super) fn status(&self, name: &str) -> RequestStatus {
        self.request(name).unwrap().status.clone()
    }

    pub(super) fn attempt(&self, name: &str) -> Option<RemediationAttempt> {
        self.request(name)?.status.attempt
    }

    pub(super) fn condition(&self, name: &str, kind: &str) -> Option<(String, String)> {
        let conditions = &self.request(name)?.status.conditions;
        let condition = conditions.iter().find(|it| it.kind == kind)?;
        Some((condition.status.clone(), condition.reason.clone()))
    }

    /// A person or a health check changes the request.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut PowerRequest)) {
        let seen = self.request(name).unwrap().clone();
        assert!(self.desk.write(&seen, change));
    }

    /// A person or a health check deletes the request.
    pub(super) fn delete(&mut self, name: &str) {
        if self.request(name).unwrap().has_finalizer {
            self.change(name, |it| it.deleting = true);
        } else {
            self.desk.requests.remove(&request_name(name));
        }
    }

    pub(in super::super) fn write_status(
        &mut self,
        request: &PowerRequest,
        status: &RequestStatus,
    ) -> bool {
        let status = status.clone();
        self.desk.write(request, |it| {
            let conditions = std::mem::take(&mut it.status.conditions);
            it.status = RequestStatus {
                conditions,
                ..status
            };
        })
    }

    pub(in super::super) fn add_finalizer(&mut self, request: &PowerRequest) -> bool {
        self.desk.write(request, |it| it.has_finalizer = true)
    }

    pub(in super::super) fn remove_finalizer(&mut self, request: &PowerRequest) -> bool {
        let taken = self.desk.write(request, |it| it.has_finalizer = false);
        self.desk
            .requests
            .retain(|_, it| !it.deleting || it.has_finalizer);
        taken
    }

    pub(in super::super) fn hand_back(&mut self, machine: &ObservedMachine, message: &str) -> bool {
        let text = format!("{}: {message}", machine.name);
        self.desk.handed_back.push(text);
        true
    }

    pub(in super::super) fn untaint(&mut self, node: &ObservedNode, tainted_at: Timestamp) -> bool {
        if self.desk.taints.get(&node.name) != Some(&tainted_at) {
            return true;
        }
        let runs = self.node_runs(&node.name);
        assert!(
            runs,
            "the taint of {} goes before its machine runs",
            node.name
        );
        self.desk.taints.remove(&node.name);
        let there = self.nodes.get_mut(&node.name).unwrap();
        there.seen.out_of_service = false;
        true
    }

    fn node_runs(&self, node: &NodeName) -> bool {
        let mut sites = self.sites.iter();
        let site = sites.find(|site| node_name(&site.name) == *node);
        site.unwrap().power.is_on()
    }

    pub(in super::super) fn taint(&mut self, node: &NodeName, at: Timestamp) {
        self.desk.taints.entry(node.clone()).or_insert(at);
        let there = self.nodes.get_mut(node).unwrap();
        there.seen.out_of_service = true;
    }

    pub(in super::super) fn leftovers(&self) -> WorkloadLeftovers {
        WorkloadLeftovers {
            asked_at: self.mono(),
            pods: self.desk.left.clone(),
            attachments: Vec::new(),
        }
    }

    /// Writes the conditions as the loop does.
    pub(in super::super) fn tell(&mut self, case: &Remediation, report: &DecisionReport) {
        let now = self.now();
        let RemediationSubject::Request(name) = &case.subject else {
            return;
        };
        let Some(request) = self.desk.requests.get_mut(name) else {
            return;
        };
        let standing = &mut request.status.conditions;
        for write in condition::conditions_to_write(standing, &report.conditions, now) {
            let wanted = write.observation;
            standing.retain(|it| it.kind != wanted.kind);
            standing.push(CurrentCondition {
                kind: wanted.kind.to_owned(),
                status: wanted.status.as_str().to_owned(),
                reason: wanted.reason,
                message: wanted.message,
                last_transition: Some(write.last_transition),
                last_heartbeat: Some(now.wall),
            });
        }
    }
}
