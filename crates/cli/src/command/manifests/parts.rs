//! The parts that the manifests are made of: the folders of `deploy/`, in the order in which they are applied.

use crate::command::crds::CRDS;

/// A part that can be printed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Part {
    /// The kinds of group dogwatch.dev
    Crds,
    /// Dogwatch's namespace
    Namespace,
    /// The coordinators and their rights
    Coordinator,
    /// The controller and its rights
    Controller,
    /// Roles for people, which nobody has until you bind them
    People,
    /// The right to delete what a drain has left past its deadline
    DeletePods,
    /// The rights over BareMetalHosts
    Power,
    /// The rights over Cluster API's Machines, whose health checks are told of planned reboots
    ClusterApi,
    /// The rights of remediation, and of the health checks that ask for it
    Remediation,
    /// The rights in medik8s' namespace of Leases
    Medik8s,
    /// The lock over HTTP, as a program of its own, and its rights
    Lock,
    /// The admission policies
    Policies,
    /// Who may reach Dogwatch's pods, and whom they may reach
    NetworkPolicies,
}

/// What every installation has.
pub(super) const BASE: [Part; 5] = [
    Part::Crds,
    Part::Namespace,
    Part::Coordinator,
    Part::Controller,
    Part::People,
];

impl Part {
    /// Its documents.
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Part::Crds => &CRDS,
            Part::Namespace => &[
                include_str!("../../../../../deploy/base/namespace.yaml"),
                include_str!("../../../../../deploy/base/quota.yaml"),
            ],
            Part::Coordinator => &[
                include_str!("../../../../../deploy/base/rbac.yaml"),
                include_str!("../../../../../deploy/base/daemonset.yaml"),
            ],
            Part::Controller => &[
                include_str!("../../../../../deploy/base/controller-rbac.yaml"),
                include_str!("../../../../../deploy/base/controller.yaml"),
            ],
            Part::People => &[include_str!("../../../../../deploy/base/people-rbac.yaml")],
            Part::DeletePods => &[include_str!("../../../../../deploy/delete-pods/rbac.yaml")],
            Part::Power => &[include_str!("../../../../../deploy/power/rbac.yaml")],
            Part::ClusterApi => &[include_str!("../../../../../deploy/cluster-api/rbac.yaml")],
            Part::Remediation => &[
                include_str!("../../../../../deploy/remediation/rbac.yaml"),
                include_str!("../../../../../deploy/remediation/health-checks.yaml"),
            ],
            Part::Medik8s => &[include_str!("../../../../../deploy/medik8s/rbac.yaml")],
            Part::Lock => &[
                include_str!("../../../../../deploy/lock/rbac.yaml"),
                include_str!("../../../../../deploy/lock/lock.yaml"),
            ],
            Part::Policies => &[
                include_str!("../../../../../deploy/policies/rbac.yaml"),
                include_str!("../../../../../deploy/policies/others.yaml"),
                include_str!("../../../../../deploy/policies/coordinators.yaml"),
                include_str!("../../../../../deploy/policies/events.yaml"),
                include_str!("../../../../../deploy/policies/locks.yaml"),
                include_str!("../../../../../deploy/policies/requests.yaml"),
                include_str!("../../../../../deploy/policies/remediation.yaml"),
                include_str!("../../../../../deploy/policies/bmcs.yaml"),
            ],
            Part::NetworkPolicies => &[include_str!(
                "../../../../../deploy/network-policies/network-policies.yaml"
            )],
        }
    }

    /// Whether it runs a program, so that it needs an image.
    pub(super) fn program(self) -> Option<Program> {
        match self {
            Part::Coordinator => Some(Program::Coordinator),
            Part::Controller => Some(Program::Controller),
            Part::Lock => Some(Program::Lock),
            Part::Crds
            | Part::Namespace
            | Part::People
            | Part::DeletePods
            | Part::Power
            | Part::ClusterApi
            | Part::Remediation
            | Part::Medik8s
            | Part::Policies
            | Part::NetworkPolicies => None,
        }
    }
}

/// Of the policies those that remediation never goes without: they guard who asks for it, who says that a host is
/// off, and which BMC a host has. They do not ask on which node a token's pod runs.
pub(super) const GUARDS: [&str; 5] = [
    include_str!("../../../../../deploy/policies/rbac.yaml"),
    include_str!("../../../../../deploy/policies/others.yaml"),
    include_str!("../../../../../deploy/policies/requests.yaml"),
    include_str!("../../../../../deploy/policies/remediation.yaml"),
    include_str!("../../../../../deploy/policies/bmcs.yaml"),
];

/// Whose image it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// `dogwatch-coordinator`.
    Coordinator,
    /// `dogwatch`, of which the controller is a part.
    Controller,
    /// The same program, serving the lock and nothing else.
    Lock,
}

impl Program {
    /// The flag that names its image.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Program::Coordinator => "--image",
            Program::Controller | Program::Lock => "--controller-image",
        }
    }

    /// The workload that runs it.
    pub(super) fn workload(self) -> &'static str {
        match self {
            Program::Coordinator => dogwatch_api::COORDINATOR,
            Program::Controller => dogwatch_api::CONTROLLER,
            Program::Lock => dogwatch_api::LOCK_API,
        }
    }
}
