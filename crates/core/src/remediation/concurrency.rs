//! The other remediations, hosts and reboots that the guards take into account. Source:
//! specification §4.4.

use std::collections::BTreeMap;

use super::RemediationReason;
use super::key::RemediationKey;
use super::machine::ObjectName;
use super::node_cluster::NodeCluster;
use super::types::{Remediation, RemediationDecision, RemediationSubject};
use crate::name::NodeName;
use crate::policy::ClusterPolicies;
use crate::power::HostName;
use crate::reboot::WatchedReboots;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConcurrentRemediations {
    /// Hosts that are held off or about to be.
    pub fenced: Vec<FencedHost>,
    /// The planned reboots of the controller's own cluster.
    pub planned: PlannedReboots,
    /// The planned reboots of workload clusters.
    pub workload: BTreeMap<ObjectName, PlannedReboots>,
}

/// The planned reboots of one cluster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlannedReboots {
    /// All holders of the control plane's locks for planned reboots: names of Nodes, or other holder
    /// ids.
    pub control_plane_locks: Vec<String>,
    /// The cluster's RebootPolicies: a policy's `rebootTimeout` takes precedence over the flag's.
    pub policies: ClusterPolicies,
    /// When each planned reboot entered its present phase.
    pub reboots: WatchedReboots,
}

/// A host that is held off, or about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedHost {
    pub subject: RemediationSubject,
    pub host: HostName,
    pub node: Option<NodeName>,
    /// The cluster of the Node.
    pub cluster: NodeCluster,
    /// Whether the Node can be read. A cluster that cannot be reached must not use up the limit of
    /// all others.
    pub is_cluster_readable: bool,
    pub control_plane: bool,
    /// Whether the BMC answers. We cannot switch off a host whose BMC does not, so it counts
    /// towards no limit.
    pub bmc_answers: bool,
    pub stage: RemediationStage,
}

/// How far a remediation is, as the guards of the others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemediationStage {
    /// Its Lease is held, and its key is not on the host yet.
    Preparing,
    /// The guards let it go ahead, in this pass or in a job that is still running.
    Admitted,
    HeldOff,
    /// Its key is gone, and its Node is not back.
    Returning,
}

impl ConcurrentRemediations {
    /// Collects the state of all remediations. `answers` says whether a host's BMC answers.
    pub fn from_remediations(cases: &[Remediation], answers: impl Fn(&HostName) -> bool) -> Self {
        let fenced = cases.iter().filter_map(|case| {
            let stage = case.remediation_stage()?;
            FencedHost::from_remediation(case, stage, &answers)
        });
        Self {
            fenced: fenced.collect(),
            ..Self::default()
        }
    }

    /// Adds a remediation that goes ahead to the list, so that those decided later see it, and
    /// removes one that only prepared and was refused: of several of one Node the last one then
    /// frees what they hold. Call it after each decision of a pass, and for each job that is still
    /// running.
    pub fn admit_decided(
        &mut self,
        case: &Remediation,
        decision: &RemediationDecision,
        answers: bool,
    ) {
        let is_admitted = decision.cause.reason == RemediationReason::Preparing;
        // The decision of a running job has actions: this pass may yet let its remediation go ahead.
        if !is_admitted && !decision.actions.is_empty() {
            return;
        }
        let of_it = |seen: &FencedHost| {
            seen.subject == case.subject && seen.stage == RemediationStage::Preparing
        };
        self.fenced.retain(|seen| !of_it(seen));
        if is_admitted {
            let seen = FencedHost::from_remediation(case, RemediationStage::Admitted, |_| answers);
            self.fenced.extend(seen);
        }
    }

    pub(super) fn other_fenced_hosts<'a>(
        &'a self,
        case: &'a Remediation,
    ) -> impl Iterator<Item = &'a FencedHost> {
        let fenced = self.fenced.iter();
        fenced.filter(|seen| seen.subject != case.subject)
    }

    /// Whether another remediation has claimed this Node.
    pub(super) fn is_node_claimed(&self, case: &Remediation, node: &NodeName) -> bool {
        self.other_fenced_hosts(case)
            .any(|seen| seen.node.as_ref() == Some(node) && seen.cluster == case.cluster.name)
    }

    /// Whether the remediation of this name has claimed the same Node.
    pub(super) fn is_claimed_by(&self, case: &Remediation, node: &NodeName, subject: &str) -> bool {
        self.other_fenced_hosts(case).any(|seen| {
            seen.node.as_ref() == Some(node)
                && seen.cluster == case.cluster.name
                && seen.subject.to_string() == subject
        })
    }

    /// The planned reboots of this remediation's cluster, as far as they are known.
    pub(super) fn planned_reboots(&self, case: &Remediation) -> Option<&PlannedReboots> {
        match &case.cluster.name {
            NodeCluster::Management => Some(&self.planned),
            NodeCluster::Workload(name) => self.workload.get(name),
        }
    }
}

impl FencedHost {
    fn from_remediation(
        case: &Remediation,
        stage: RemediationStage,
        answers: impl Fn(&HostName) -> bool,
    ) -> Option<Self> {
        let host = case.host.as_ref().ok()?;
        Some(Self {
            subject: case.subject.clone(),
            host: host.name.clone(),
            node: case.node_name.clone(),
            cluster: case.cluster.name.clone(),
            is_cluster_readable: case.cluster.problem.is_none(),
            control_plane: case.control_plane,
            bmc_answers: answers(&host.name),
            stage,
        })
    }
}

impl Remediation {
    /// Whether its host is known and carries no key of any remediation.
    pub fn is_host_without_key(&self) -> bool {
        let host = self.host.as_ref().ok();
        host.is_some_and(|host| RemediationKey::keys_on_host(host).next().is_none())
    }

    /// The remediation's stage; `None` if it is not under way.
    pub fn remediation_stage(&self) -> Option<RemediationStage> {
        if self.is_keyed() {
            return Some(RemediationStage::HeldOff);
        }
        let is_open = |record: &super::RemediationRecord| record.ended_at().is_none();
        if self.record.as_ref().is_some_and(is_open) {
            return Some(RemediationStage::Returning);
        }
        (self.needs_remediation && self.has_claim()).then_some(RemediationStage::Preparing)
    }

    /// Whether its Lease is held, or the Node's mark is set where no Lease counts the Node.
    fn has_claim(&self) -> bool {
        let is_marked = || self.node.as_ref().is_some_and(|node| node.being_fenced);
        self.held_lease.is_some() || (!self.cluster.has_dogwatch && is_marked())
    }

    pub fn is_keyed(&self) -> bool {
        let host = self.host.as_ref().ok();
        host.is_some_and(|host| self.key.is_on_host(host))
    }
}
