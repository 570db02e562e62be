//! Why a machine is remediated, or not, and what a remediation waits for.

use crate::reason::reasons;

reasons! {
    /// The reason of a decision about a remediation.
    pub enum RemediationReason, known_from() -> ReasonSource {
        NotNeeded(Progress),
        /// A request was observed; Dogwatch finds out whether it is needed.
        TakenUp(Progress),
        /// Lease, fencing annotation and fresh reads, before the key.
        Preparing(Progress),
        /// The key was added: the host goes off.
        PoweringOff(Progress),
        /// The power cannot be read: neither on nor off.
        PowerUnknown(Alarm) = "`dogwatch explain host/…`; a second level; `confirm-off`",
        /// The host is off, and its proof is not complete.
        ProvingOff(Progress),
        /// The host is proved off, but its system UUID cannot be compared with the Node's, so that the
        /// Node must be silent for a while.
        WaitingForSilence(Waiting) = "wait until the time in the message",
        /// The Node is deleted, or its workloads are released.
        Released(Progress),
        /// The taint is set, and pods or attachments are left.
        Releasing(Waiting) = "look at the obstacle that is named: a finalizer, or a CSI driver",
        /// The key is removed, so that the host comes back.
        PoweringOn(Progress),
        /// The host is on; its Node is not Ready with another boot yet.
        WaitingForNode(Waiting) =
            "look at the machine's console: its kubelet has not registered the Node yet",
        /// The Node is Ready with another boot.
        Remediated(Progress),
        /// Withdrawn before the host was off.
        Withdrawn(Progress),
        /// The Node is Ready and has sent heartbeats since the request.
        NodeHealthy(Progress),
        /// An attempt failed: its key is removed, and the next attempt begins.
        Retrying(Warning) = "look at the machine",
        /// The Node comes back under its name, so its deletion is not permanent.
        NodeComesBack(Warning),
        AttemptsUsedUp(Alarm) =
            "look at the machine; if a health check still finds it failed, it makes a new request",
        /// The health check has given up on the remediation.
        TimedOut(Warning),
        /// Another control-plane host is held off, or in a planned reboot.
        ControlPlaneOneByOne(Waiting, Objects) =
            "wait; if a remediated host cannot come back, remove annotation \
             `dogwatch.dev/remediation` from it",
        /// `--max-fenced` hosts are held off already.
        TooManyFenced(Waiting, Objects) = "wait for the others, or raise --max-fenced",
        /// This host was remediated a short while ago.
        CoolingDown(Waiting, Objects) = "wait, or change the flag",
        /// The node is in phase `rebooting` of a planned reboot; its `rebootTimeout` has not passed.
        PlannedReboot(Waiting, Objects),
        NoHost(Alarm, Objects) = "set annotation `metal3.io/BareMetalHost`",
        /// The host that the Machine is linked to does not exist.
        HostNotFound(Alarm, Objects) = "correct the link",
        /// The link cannot be parsed, or leads to a host that it may not use.
        BadHostLink(Alarm, Objects) = "correct it; `consumerRef`",
        /// The host's `consumerRef` names somebody else.
        HostOfAnother(Alarm, Objects) = "correct the host's `consumerRef`, or the link",
        /// Two Machines, or two Nodes, are linked to one host.
        HostShared(Alarm, Objects) = "correct one of the links",
        /// The marked Node belongs to a Machine, which has to be marked instead.
        NodeOfAMachine(Alarm, Objects) = "mark the Machine instead",
        /// Two Machines claim one Node.
        NodeShared(Alarm, Objects) = "delete the wrong Machine",
        /// The host carries no Node, and the request names none that has a host.
        NoNode(Alarm, Objects) = "set annotation `dogwatch.dev/node` on the host",
        /// The BMC's system UUID is not the Node's.
        WrongHost(Alarm) = "correct the link or the BMC address: it belongs to another machine",
        /// The system UUIDs cannot be compared, and `--require-host-identity` is set.
        IdentityUnknown(Alarm) =
            "run the controller without --require-host-identity, or link a BMC that reports its \
             system UUID",
        /// The Node sent a heartbeat after its host was read off.
        NodeIsAlive(Alarm) =
            "look at the machine: the BMC is wrong, or the link names another machine",
        /// The host is not provisioned: the power controller ignores reboot annotations there.
        HostNotProvisioned(Alarm, Objects) =
            "set spec.externallyProvisioned on the host, or have metal3 provision it",
        /// The workload cluster does not answer, or denies the reads.
        WorkloadClusterUnreachable(Alarm) =
            "look at the workload cluster's API server, and at the rights of the account there",
        /// There is no Secret with a kubeconfig of the workload cluster.
        KubeconfigMissing(Alarm) =
            "create Secret CLUSTER-dogwatch-kubeconfig (`dogwatch manifests --workload-cluster`)",
        /// The kubeconfig of the workload cluster cannot be used, or would read the controller's disk.
        KubeconfigInvalid(Alarm) = "correct the kubeconfig in the Secret that the message names",
        /// The kubeconfig names another cluster than the Machine's, or the Node is not the Machine's.
        OtherCluster(Alarm) = "correct the kubeconfig in the Secret, or the Machine's status.nodeRef",
        /// `cluster.x-k8s.io/paused`, or `spec.paused` of the Machine's Cluster.
        Paused(Alarm, Objects) = "remove annotation cluster.x-k8s.io/paused, or spec.paused of the Cluster that the message names",
        /// The request's spec is invalid, or the cluster does not allow it.
        BadRequest(Alarm, Objects) = "correct the field that the message names",
        /// Another Node of that name exists.
        NodeReplaced(Alarm) = "delete the request",
        /// A key with our name has a value that is not ours.
        ForeignKey(Alarm, Objects) = "its writer removes it",
        /// A key whose Machine, Node or request is gone.
        OrphanedKey(Progress, Objects),
        /// The backup of the old Node is restored on the new one.
        Restoring(Progress),
        /// The truth table has no row for the observed state.
        NothingToDo(Alarm) = "see the message",
        /// The API server refused the write.
        Refused(Alarm) = "grant the right that the message names, or look at the webhook that it names",
    }
}

/// What a reason follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasonSource {
    /// Also from what the controller has read: the power, or fresh reads of the objects.
    #[default]
    Readings,
    /// From the watched objects alone, so that it holds whatever the controller has read.
    Objects,
}

impl RemediationReason {
    /// Whether it may last for ever without anything being wrong.
    pub(super) fn is_at_rest(self) -> bool {
        matches!(
            self,
            RemediationReason::NotNeeded
                | RemediationReason::Remediated
                | RemediationReason::Withdrawn
                | RemediationReason::TimedOut
                | RemediationReason::AttemptsUsedUp
                | RemediationReason::NodeHealthy
        )
    }
}
