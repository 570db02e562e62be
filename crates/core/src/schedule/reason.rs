//! Why a schedule does what it does now, and how its occurrences ended.

use crate::reason::reasons;

reasons! {
    /// The reason of a decision about a schedule, or the outcome of an occurrence.
    pub enum ScheduleReason {
        /// The schedule can be parsed.
        Valid(Progress),
        /// The schedule cannot be parsed, and none of its requests are issued.
        Invalid(Alarm) = "correct the field that the message names",
        /// The next occurrence lies ahead.
        WaitingForTime(Progress),
        /// An occurrence's time has come, and its requests are sent.
        Issuing(Progress),
        /// `spec.suspend` is set.
        Suspended(Waiting) = "unset spec.suspend",
        /// No occurrence is left.
        Completed(Progress),
        /// The schedule is being deleted.
        Deleting(Progress),

        /// Every target was asked, or had a request already.
        Requested(Progress),
        /// Some targets were asked, others could not be.
        PartlyRequested(Warning),
        /// No target could be asked.
        Failed(Warning),
        /// The time passed while no controller was there to issue it.
        Missed(Warning) =
            "missed occurrences are not repeated: request the reboot with dogwatch reboot or \
             dogwatch power cycle, or give spec.startingDeadline more time",
        /// The schedule was suspended or changed while it was being issued.
        Cancelled(Progress),
        /// No target matched.
        NoTargets(Warning) = "check that its names and selectors match a node or a host",

        /// NodeReboots of the occurrence have not ended.
        AwaitingReboots(Progress),
        /// All NodeReboots of the occurrence succeeded.
        Rebooted(Progress),
        /// Some NodeReboots of the occurrence did not succeed.
        NotAllRebooted(Warning) = "look at the NodeReboots that the message names",
    }
}
