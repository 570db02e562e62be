//! Reasons: one CamelCase word each, the same in conditions, Events, metrics, logs and docs.

/// Condition: whether the schedule can be parsed.
pub const ACCEPTED: &str = "Accepted";
/// Condition: whether an occurrence lies ahead or is being issued.
pub const ACTIVE: &str = "Active";
/// Condition: whether the last occurrence was issued to all of its targets.
pub const LAST_OCCURRENCE_ISSUED: &str = "LastOccurrenceIssued";

/// Reason of [`ACCEPTED`]: the schedule can be parsed.
pub const VALID: &str = "Valid";
/// Reason: the schedule cannot be parsed, and none of its requests are issued.
pub const INVALID: &str = "Invalid";
/// Reason: the next occurrence lies ahead.
pub const WAITING_FOR_TIME: &str = "WaitingForTime";
/// Reason: an occurrence's time has come, and its requests are sent.
pub const ISSUING: &str = "Issuing";
/// Reason: `spec.suspend` is set.
pub const SUSPENDED: &str = "Suspended";
/// Reason: no occurrence is left.
pub const COMPLETED: &str = "Completed";
/// Reason: the schedule is being deleted.
pub const DELETING: &str = "Deleting";

/// Outcome: every target was asked, or had a request already.
pub const REQUESTED: &str = "Requested";
/// Outcome: some targets were asked, others could not be.
pub const PARTLY_REQUESTED: &str = "PartlyRequested";
/// Outcome: no target could be asked.
pub const FAILED: &str = "Failed";
/// Outcome: the time passed while no controller was there to issue it.
pub const MISSED: &str = "Missed";
/// Outcome: the schedule was suspended or changed while it was being issued.
pub const CANCELLED: &str = "Cancelled";
/// Outcome: no target matched.
pub const NO_TARGETS: &str = "NoTargets";
