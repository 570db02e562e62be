//! The parts of the manifests: the folders of `deploy/`, in the order in which they are applied.

use crate::command::crds::CRD_MANIFESTS;

/// A part that `--only` can select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum ManifestPart {
    /// The CRDs of group dogwatch.dev
    Crds,
    /// Dogwatch's namespace
    Namespace,
    /// The coordinators and their rights
    Coordinator,
    /// The controller and its rights
    Controller,
    /// Roles for people, bound to nobody
    People,
    /// The right to delete pods that a drain has not moved by its deadline
    DeletePods,
    /// The right to restart Deployments before their pods are drained
    RollFirst,
    /// The right to read MachineDrainRules of Cluster API before pods are drained
    MachineDrainRules,
    /// The rights over BareMetalHosts
    Power,
    /// The rights over Cluster API's Machines, whose health checks learn of planned reboots
    ClusterApi,
    /// The rights of remediation, and of the health checks that request it
    Remediation,
    /// The rights in medik8s' namespace of Leases
    Medik8s,
    /// The lock API as a Deployment of its own, and its rights
    Lock,
    /// The dashboard as a Deployment of its own, its rights and its NetworkPolicy
    Web,
    /// The admission policies
    Policies,
    /// The NetworkPolicies of Dogwatch's pods
    NetworkPolicies,
}

pub(super) const BASE_PARTS: [ManifestPart; 5] = [
    ManifestPart::Crds,
    ManifestPart::Namespace,
    ManifestPart::Coordinator,
    ManifestPart::Controller,
    ManifestPart::People,
];

impl ManifestPart {
    pub(super) fn manifest_files(self) -> &'static [&'static str] {
        match self {
            ManifestPart::Crds => &CRD_MANIFESTS,
            ManifestPart::Namespace => &[
                include_str!("../../../../../deploy/base/namespace.yaml"),
                include_str!("../../../../../deploy/base/quota.yaml"),
            ],
            ManifestPart::Coordinator => &[
                include_str!("../../../../../deploy/base/rbac.yaml"),
                include_str!("../../../../../deploy/base/daemonset.yaml"),
            ],
            ManifestPart::Controller => &[
                include_str!("../../../../../deploy/base/controller-rbac.yaml"),
                include_str!("../../../../../deploy/base/controller.yaml"),
            ],
            ManifestPart::People => &[include_str!("../../../../../deploy/base/people-rbac.yaml")],
            ManifestPart::DeletePods => {
                &[include_str!("../../../../../deploy/delete-pods/rbac.yaml")]
            }
            ManifestPart::RollFirst => &[
                include_str!("../../../../../deploy/roll-first/rbac.yaml"),
                include_str!("../../../../../deploy/roll-first/policy.yaml"),
            ],
            ManifestPart::MachineDrainRules => &[include_str!(
                "../../../../../deploy/machine-drain-rules/rbac.yaml"
            )],
            ManifestPart::Power => &[include_str!("../../../../../deploy/power/rbac.yaml")],
            ManifestPart::ClusterApi => {
                &[include_str!("../../../../../deploy/cluster-api/rbac.yaml")]
            }
            ManifestPart::Remediation => &[
                include_str!("../../../../../deploy/remediation/rbac.yaml"),
                include_str!("../../../../../deploy/remediation/health-checks.yaml"),
            ],
            ManifestPart::Medik8s => &[include_str!("../../../../../deploy/medik8s/rbac.yaml")],
            ManifestPart::Lock => &[
                include_str!("../../../../../deploy/lock/rbac.yaml"),
                include_str!("../../../../../deploy/lock/lock.yaml"),
            ],
            ManifestPart::Web => &[
                include_str!("../../../../../deploy/web/rbac.yaml"),
                include_str!("../../../../../deploy/web/web.yaml"),
                include_str!("../../../../../deploy/web/network-policy.yaml"),
            ],
            ManifestPart::Policies => &[
                include_str!("../../../../../deploy/policies/rbac.yaml"),
                include_str!("../../../../../deploy/policies/others.yaml"),
                include_str!("../../../../../deploy/policies/coordinators.yaml"),
                include_str!("../../../../../deploy/policies/events.yaml"),
                include_str!("../../../../../deploy/policies/locks.yaml"),
                include_str!("../../../../../deploy/policies/requests.yaml"),
                include_str!("../../../../../deploy/policies/remediation.yaml"),
                include_str!("../../../../../deploy/policies/bmcs.yaml"),
            ],
            ManifestPart::NetworkPolicies => &[include_str!(
                "../../../../../deploy/network-policies/network-policies.yaml"
            )],
        }
    }

    /// The program that the part runs, which needs an image; `None` when it runs none.
    pub(super) fn image_program(self) -> Option<ManifestProgram> {
        match self {
            ManifestPart::Coordinator => Some(ManifestProgram::Coordinator),
            ManifestPart::Controller => Some(ManifestProgram::Controller),
            ManifestPart::Lock => Some(ManifestProgram::Lock),
            ManifestPart::Web => Some(ManifestProgram::Web),
            ManifestPart::Crds
            | ManifestPart::Namespace
            | ManifestPart::People
            | ManifestPart::DeletePods
            | ManifestPart::RollFirst
            | ManifestPart::MachineDrainRules
            | ManifestPart::Power
            | ManifestPart::ClusterApi
            | ManifestPart::Remediation
            | ManifestPart::Medik8s
            | ManifestPart::Policies
            | ManifestPart::NetworkPolicies => None,
        }
    }
}

/// The admission policies that remediation always needs: they guard who may request it, who may
/// confirm that a host is off, and which BMC a host has. They do not check on which node a token's
/// pod runs.
pub(super) const GUARD_POLICY_FILES: [&str; 5] = [
    include_str!("../../../../../deploy/policies/rbac.yaml"),
    include_str!("../../../../../deploy/policies/others.yaml"),
    include_str!("../../../../../deploy/policies/requests.yaml"),
    include_str!("../../../../../deploy/policies/remediation.yaml"),
    include_str!("../../../../../deploy/policies/bmcs.yaml"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManifestProgram {
    Coordinator,
    Controller,
    /// `dogwatch` again, serving only the lock API.
    Lock,
    /// `dogwatch` again, serving only the dashboard.
    Web,
}

impl ManifestProgram {
    pub(super) fn image_flag(self) -> &'static str {
        match self {
            ManifestProgram::Coordinator => "--image",
            ManifestProgram::Controller | ManifestProgram::Lock | ManifestProgram::Web => {
                "--controller-image"
            }
        }
    }

    pub(super) fn workload_name(self) -> &'static str {
        match self {
            ManifestProgram::Coordinator => dogwatch_api::COORDINATOR,
            ManifestProgram::Controller => dogwatch_api::CONTROLLER,
            ManifestProgram::Lock => dogwatch_api::LOCK_API_ACCOUNT,
            ManifestProgram::Web => dogwatch_api::WEB_ACCOUNT,
        }
    }
}
