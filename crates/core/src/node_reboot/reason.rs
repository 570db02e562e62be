//! Why a `NodeReboot` waits, or how it ended.

use crate::reason::reasons;

reasons! {
    /// The reason of a decision about a NodeReboot; also the outcome of an attempt.
    pub enum NodeRebootReason {
        /// The request can be served.
        Accepted(Progress),
        /// The spec cannot be understood.
        InvalidSpec(Alarm) = "create another NodeReboot with the field corrected",
        /// This version does not serve the method.
        MethodNotServed(Alarm) = "create another NodeReboot with method Reboot",
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
