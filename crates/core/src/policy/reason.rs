//! What the conditions of a RebootPolicy say.

use crate::reason::reasons;

reasons! {
    /// The reason of a policy's condition. Condition `Blocked` also has the reason of the node that
    /// waits longest ([`crate::reboot::RebootReason`]).
    pub enum PolicyReason {
        Valid(Progress),
        Invalid(Alarm) = "correct the fields that the message names",
        /// No node is unavailable, or none waits.
        Idle(Progress),
        NodesOut(Progress),
        /// Nodes wait only for the node that is unavailable.
        InTurn(Progress),
        /// Of condition `Halted`.
        TooManyFailures(Alarm) =
            "repair the nodes that the message names, then `dogwatch resume POLICY`",
        /// Of condition `Halted`: the rollout goes on.
        NotHalted(Progress),
    }
}
