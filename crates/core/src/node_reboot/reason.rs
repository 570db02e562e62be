//! Why a `NodeReboot` waits, or how it ended.

use crate::reason::reasons;

reasons! {
    /// The reason of a decision about a NodeReboot; also the outcome of an attempt.
    pub enum NodeRebootReason {
        /// The request can be served.
        Accepted(Progress),
        /// The spec cannot be understood.
        InvalidSpec(Alarm) = "create another NodeReboot with the field corrected",
        /// A power cycle is asked for, and this controller does not control the power of hosts.
        PowerNotControlled(Alarm) =
            "run the controller with component power, then create another NodeReboot",
        /// A power cycle is asked for, and no host is linked to the Node.
        NoHostKnown(Alarm) =
            "write annotation dogwatch.dev/node on the BareMetalHost, then create another NodeReboot",
        /// The links between the Node and its host contradict each other.
        HostContradicted(Alarm) = "correct the link that is named, then create another NodeReboot",
        /// The host has spec.disablePowerOff.
        HostAlwaysOn(Alarm) =
            "use method Reboot; or unset spec.disablePowerOff, then create another NodeReboot",
        /// The host's BMC belongs to another machine than the Node's.
        OtherMachine(Alarm) =
            "correct the BMC's address, or the link to the host, then create another NodeReboot",
        /// There was no Node of this name.
        NodeNotFound(Alarm) = "create another NodeReboot with the name of a Node",
        /// The Node of this name has another UID than the spec.
        OtherNodeUid(Alarm) = "read the Node's UID again; the machine has registered a new Node",
        /// The Node was deleted, or replaced by another one of its name.
        NodeGone(Warning),
        /// The API server did not answer whether the Node still exists.
        NodeUnreadable(Waiting) = "wait; the read is repeated",
        /// `notBefore` lies ahead.
        NotBefore(Waiting) = "wait until the time in the message, or cancel it",
        /// An older NodeReboot of the node comes first: a hold and a reboot are never joined.
        OlderFirst(Waiting) = "wait for the NodeReboot that is named, or cancel it",
        /// Another reboot or hold of the node has begun; this one is served afterwards.
        RebootUnderWay(Waiting) = "`dogwatch explain node/NAME` shows what it waits for",
        /// Somebody wrote a request with a later `notBefore` on the Node.
        RequestForLater(Waiting) =
            "wait until the time in the message, or take that request back with `dogwatch abort NODE`",
        /// A request or a record on the Node cannot be parsed.
        AnnotationUnreadable(Alarm) = "correct or remove the annotation that is named",
        /// The status cannot be parsed: nothing is done until it can.
        StatusUnreadable(Alarm) = "update the controller, or delete the status",
        /// The attempt is recorded, and the Node is asked.
        AskingNode(Progress),
        /// The Node carries the request; the node waits for the lock, a window or a gate.
        WaitingForLock(Waiting) = "`dogwatch explain node/NAME` shows what it waits for",
        /// The node is cordoned, its pods are leaving.
        DrainingNode(Progress),
        /// The reboot command may have been started.
        RebootingNode(Progress),
        /// The host cannot be read from the API server.
        HostUnreadable(Waiting) = "wait; the read is repeated",
        /// Something else keeps the host off, reboots it, or remediates it.
        HostInUse(Waiting) = "wait until that has ended, or end it",
        /// The host is in no state in which it can be switched off and on.
        HostNotReady(Waiting) = "correct what the message names",
        /// The host's BMC does not answer, or its power is not known.
        HostUnreachable(Warning) = "`dogwatch explain host/NAMESPACE/NAME` shows the host's power",
        /// The node was drained for a power cycle, and is not cordoned any more: its host stays on.
        CordonRemoved(Alarm) = "cordon and drain the node by hand, or run `dogwatch abort NODE`",
        /// The key is put on the host, and the host is switched off.
        SwitchingOff(Progress),
        /// The key is taken off the host.
        ReleasingHost(Progress),
        /// Nothing of the request keeps the host off; a new boot is awaited.
        SwitchingOn(Progress),
        /// The host was replaced while it was to be switched off and on.
        HostReplaced(Alarm) = "reboot the machine by hand, or run `dogwatch abort NODE`",
        /// The host was not proved off in time: the key was taken off it.
        OffNotProved(Alarm) =
            "repair the BMC, or reboot the machine by hand; `dogwatch abort NODE` if neither helps",
        /// A new boot was seen, or a hold was released.
        ReturningNode(Progress),
        /// Drained and kept out of service.
        NodeHeld(Waiting) = "delete or cancel the NodeReboot when the work on the machine is done",
        /// The request is being taken back.
        Withdrawing(Progress),
        /// Back in service; the conditions of `success` are awaited.
        AwaitingSuccess(Progress),
        /// A new boot id was seen, and the node is back in service.
        Rebooted(Progress),
        /// Rebooted, and all conditions of `success` were met.
        SuccessReached(Progress),
        /// Rebooted, but the conditions of `success` were not met in time, with any method.
        SuccessNotReached(Alarm) = "look at the conditions that the message names, and at the machine",
        /// The hold was ended by its NodeReboot.
        Released(Progress),
        /// Cancelled or deleted before anything had begun.
        Cancelled(Progress),
        /// Nothing had begun by `deadline`.
        DeadlinePassed(Warning),
        /// Somebody stopped it with `dogwatch abort`.
        Aborted(Warning),
        /// Somebody removed the request from the Node before anything had begun.
        RequestRemoved(Warning),
    }
}
