//! Why a node reboots, waits, or does not reboot.

use crate::reason::reasons;

reasons! {
    /// The reason of a decision about a planned reboot, by a coordinator or by the healer.
    pub enum RebootReason, held_back_by() -> HeldBackBy {
        NoRebootWanted(Progress),
        /// The admission policies do not know the account that the coordinator runs as.
        AccountUnknown(Warning) =
            "use a ServiceAccount whose name contains `dogwatch-coordinator`; see security",
        NodeNotSeen(Progress) = "check that the API server can be reached",
        /// The API server says that our Node does not exist.
        NodeGone(Alarm) = "let the kubelet register it again, or correct `--node-name`",
        /// The host's boot id cannot be read. Without it no reboot can be proved, so none begins.
        BootIdUnreadable(Alarm) = "correct `--boot-id-file`",
        /// The record on the Node cannot be parsed; Dogwatch does not change it.
        RecordUnreadable(Alarm) = "correct or remove it",
        /// The request on the Node cannot be parsed; Dogwatch does not change it.
        RequestUnreadable(Alarm) = "correct or remove it",
        /// A sentinel could not be read.
        TriggerUnknown(Warning) = "the message states why and what to correct",
        /// A trigger is still present after the boot it caused.
        SentinelSurvivedReboot(Alarm) = "remove it, or touch it for another reboot",
        SupersededByNewerRun(Warning) = "run only one coordinator per node",
        /// A request stands on the Node; its coordinator has not accepted it yet.
        RebootRequested(Progress),
        /// A trigger appeared; the node starts to wait for its reboot.
        RebootPlanned(Progress),
        /// This run takes over the record of an older run.
        AdoptingOlderRun(Progress),
        LookingAtPolicies(Progress, Policy),
        /// The RebootPolicies cannot be read: no reboot begins.
        PoliciesUnreadable(Alarm, BadPolicy) = "apply `deploy/base`, which gives the right",
        /// A field of the policy cannot be parsed: no reboot of its nodes begins.
        PolicyInvalid(Alarm, BadPolicy) = "correct the field that the message names",
        Paused(Waiting, Calendar) = "`dogwatch resume POLICY`, or wait for `until`",
        /// No window of the policy is open.
        OutsideWindow(Waiting, Calendar) = "the message states when the next window opens",
        /// A window is open, but closes before a drain would have to be finished.
        WindowTooShort(Waiting, Calendar) = "lower `drain.timeout`, or make the window longer",
        /// The node's last reboot is more recent than the policy's `minInterval`.
        RebootedTooRecently(Waiting, MinInterval),
        /// The policy's rollout is halted: too many reboots failed.
        RolloutHalted(Alarm, RolloutStop) =
            "repair what the message names, then `dogwatch resume POLICY`",
        /// The controller has not written a state for the policy's `rollout` as it is now.
        RolloutNotStarted(Waiting, RolloutStop) = "check that the controller runs",
        /// Other nodes go first, as the policy's `rollout` asks.
        AwaitingCanary(Waiting, RolloutWait),
        /// The canaries are back; nothing begins for a while.
        RolloutSoaking(Waiting, RolloutWait),
        LookingAtGates(Progress),
        GateShut(Waiting, Policy) = "the message names what keeps the gate closed (gates)",
        /// The lock API has taken this node out of service.
        LockedThroughApi(Waiting, Cluster) = "unlock it there; then the coordinator continues",
        /// The remediator is fencing this machine.
        BeingFenced(Waiting, Cluster) =
            "nothing: it continues by itself. To follow: `dogwatch explain node/NODE`",
        /// A person stopped the reboot.
        Aborted(Progress) = "for another reboot, touch the sentinel or request again",
        LookingAtLock(Progress),
        /// Every slot is held by other holders.
        LockHeldByOther(Waiting) = "run `dogwatch explain` for the holder",
        /// Another node is next in line.
        NotOurTurn(Progress),
        Bidding(Progress),
        /// It is unknown whether the last bid succeeded; the node bids again to find out.
        SettlingBid(Progress),
        /// A Lease whose holder is proved gone is cleared.
        BreakingLock(Waiting),
        CountingBudget(Progress),
        /// Too many nodes of the group are unavailable.
        OverBudget(Waiting, Cluster) =
            "bring them back, or raise the policy's `maxUnavailable` (or `--max-unavailable`)",
        /// An attempt failed; the next one waits.
        BackingOff(Progress, Cluster) = "see the message for the reason",
        Draining(Progress),
        /// Something keeps the drain from going on for the moment.
        DrainBlocked(Warning) =
            "if the message names a PodDisruptionBudget, make room in it: more replicas, or \
             healthy pods. If it names a webhook or a policy, find out what that waits for",
        /// A controller replaces pods on the cordoned node each time they leave; its last pod stays.
        PodsComeBack(Warning) = "check whether its pods should tolerate the cordon",
        /// A pod was evicted although a rule wanted a rollout to replace it first.
        NotRolledFirst(Warning) = "the message says why: change the rule, or the workload",
        /// The remaining pods are deleted, because the deadline has passed.
        DeletingRest(Waiting),
        /// Volumes of drained pods are still attached.
        DetachingVolumes(Waiting),
        /// The drain took longer than `drainTimeout`.
        DrainTimedOut(Warning) = "see the message for the remaining pods",
        /// The eviction of a pod failed for good.
        DrainIncomplete(Warning) = "see the API server's answer in the message",
        /// Somebody uncordoned the node while we drained it.
        UncordonedByOther(Warning),
        /// We no longer hold the lock.
        LockLost(Warning) = "find out who freed it",
        /// Every trigger of this reboot is gone.
        TriggerGone(Progress),
        /// The node is kept out of service, as a request asks.
        Held(Waiting) = "when the work on it is done: `dogwatch release NODE`",
        /// The hold was withdrawn; the node goes back into service.
        HoldEnded(Progress),
        /// The node was held, and is back in service.
        Released(Progress),
        Rebooting(Progress),
        /// The reboot command was started; the node waits for the new boot.
        AwaitingReboot(Waiting),
        /// The command exited with an error; a delayed shutdown may still come.
        RebootCommandFailed(Alarm) = "see the coordinator's log",
        /// systemd restarted userspace instead of rebooting: the kernel is the same.
        SoftRebootOnly(Alarm) =
            "remove /run/nextroot on the host or correct `--reboot-command`, or set \
             `reboot.acceptSoft` in the policy",
        RebootCommandNotStarted(Warning) = "correct `--reboot-command` or `--reboot-method`",
        /// The node did not reboot, and no further attempt is safe.
        RebootFailed(Alarm) = "reboot the machine by hand",
        NewBoot(Progress),
        /// A soft reboot was made, and the policy accepts it.
        SoftRebooted(Progress),
        AwaitingReady(Waiting) = "check the kubelet",
        /// The Node has to stay Ready for a while.
        Settling(Waiting),
        /// The node is back, and `return.ready` of its policy is not met yet.
        ReadyChecksUnmet(Waiting) = "see what the message names",
        /// `return.ready` was not met in time.
        ReadyChecksTimedOut(Alarm) =
            "repair what the message names, change `return.ready`, or `dogwatch abort NODE`",
        Uncordoning(Progress),
        ReturnGatesShut(Waiting),
        /// Names of budgets in the record that cannot be read from the API server.
        BudgetsIgnored(Warning) = "find out who wrote the record",
        /// A return gate stayed shut past its deadline.
        ReturnGatesTimedOut(Alarm) = "repair what the message names",
        ReleasingLock(Progress),
        /// The reboot is complete and the node is back in service.
        Rebooted(Progress),
        /// A needed read fails: the call is refused, or the API server cannot be reached.
        CannotLook(Warning, Cluster) = "the message quotes the answer",

        // Of the healer, which takes a coordinator's place with these or the reasons above.
        /// The healer waits to see whether the node's coordinator gives a sign.
        WatchingCoordinator(Waiting),
        /// The coordinator gave no sign, so the healer takes its next step.
        CoordinatorGaveNoSign(Warning) = "find out why its pod does not run",
        /// The node is proved to have booted anew, but its kubelet has not reported since.
        AwaitingKubelet(Warning) = "check the kubelet",
        /// A lock that was held without being used is released.
        LockUnused(Waiting),
        /// A lock is held for a Node that has no reboot under way.
        LockWithoutReboot(Waiting),
        /// Two reads have to show whether the holder's Node still exists.
        LookingAtHolder(Progress),
        /// A host that is not a Node has held a lock for long.
        LockHeldForLong(Alarm) = "ask its owner; `dogwatch unlock LEASE --force --reason WHY`",
        /// The request of a lock API process that is gone is removed from its lock.
        LockRequestGone(Progress),
        /// A node is locked through the lock API, and no Lease is held for it.
        ApiLockWithoutLease(Warning) = "if nobody works on the machine any more, uncordon the node and remove the annotation",
        /// Annotation `dogwatch.dev/api-lock` cannot be parsed; Dogwatch does not change it.
        ApiLockUnreadable(Alarm) = "uncordon the node and remove the annotation",
        /// A process of the lock API is gone; its presence Lease is deleted.
        LockApiProcessGone(Progress),
        /// A reboot that does not happen is handed over to the power controller.
        RebootEscalated(Warning),
        /// The reboot cannot be handed over to the power controller.
        EscalationBlocked(Alarm) = "see the message",
    }
}

/// What keeps a node from beginning its reboot, apart from the lock and the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeldBackBy {
    #[default]
    Nothing,
    /// A window or a pause, for all nodes of the policy at once.
    Calendar,
    /// The policy's `minInterval`.
    MinInterval,
    /// The policy cannot be read or parsed, for all its nodes at once.
    BadPolicy,
    /// The canaries or the soak of the policy's rollout.
    RolloutWait,
    /// The policy's rollout is halted or not begun, for all its nodes at once.
    RolloutStop,
    /// Something else that the policy asks for.
    Policy,
    /// The rest of the cluster, or an earlier attempt.
    Cluster,
}

impl HeldBackBy {
    /// Whether a calendar, a pause or the rollout itself ends the wait, so that nothing has to be
    /// repaired.
    pub fn is_scheduled(self) -> bool {
        match self {
            HeldBackBy::Calendar | HeldBackBy::MinInterval | HeldBackBy::RolloutWait => true,
            HeldBackBy::BadPolicy
            | HeldBackBy::RolloutStop
            | HeldBackBy::Policy
            | HeldBackBy::Cluster
            | HeldBackBy::Nothing => false,
        }
    }

    pub fn is_by_policy(self) -> bool {
        match self {
            HeldBackBy::Calendar
            | HeldBackBy::MinInterval
            | HeldBackBy::BadPolicy
            | HeldBackBy::RolloutWait
            | HeldBackBy::RolloutStop
            | HeldBackBy::Policy => true,
            HeldBackBy::Cluster | HeldBackBy::Nothing => false,
        }
    }

    /// Whether the policy refuses all its nodes, and later allows all of them at once.
    pub fn is_policy_refusal(self) -> bool {
        match self {
            HeldBackBy::Calendar
            | HeldBackBy::BadPolicy
            | HeldBackBy::RolloutWait
            | HeldBackBy::RolloutStop => true,
            HeldBackBy::MinInterval
            | HeldBackBy::Policy
            | HeldBackBy::Cluster
            | HeldBackBy::Nothing => false,
        }
    }
}
