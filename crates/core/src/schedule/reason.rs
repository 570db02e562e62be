//! Reasons: one CamelCase word each, the same in conditions, Events, metrics, logs and docs.

/// Condition: whether the schedule is understood.
pub const ACCEPTED: &str = "Accepted";
/// Condition: whether an occurrence lies ahead or is being issued.
pub const ACTIVE: &str = "Active";
/// Condition: whether the last occurrence was issued to all of its targets.
pub const LAST_ISSUED: &str = "LastOccurrenceIssued";

/// Reason of [`ACCEPTED`]: it is understood.
pub const VALID: &str = "Valid";
/// Reason: it cannot be understood, and nothing of it is issued.
pub const INVALID: &str = "Invalid";
/// Reason: the next occurrence lies ahead.
pub const WAITING: &str = "WaitingForTime";
/// Reason: an occurrence's time has come, and its requests go out.
pub const ISSUING: &str = "Issuing";
/// Reason: `spec.suspend` is set.
pub const SUSPENDED: &str = "Suspended";
/// Reason: no occurrence lies ahead.
pub const COMPLETED: &str = "Completed";
/// Reason: the schedule is being deleted.
pub const DELETING: &str = "Deleting";

/// Outcome: every target was asked, or had a request already.
pub const REQUESTED: &str = "Requested";
/// Outcome: some targets were asked, others could not be.
pub const PARTLY: &str = "PartlyRequested";
/// Outcome: no target could be asked.
pub const FAILED: &str = "Failed";
/// Outcome: the time passed while nobody was there to issue it.
pub const MISSED: &str = "Missed";
/// Outcome: the schedule was suspended or changed while it was being issued.
pub const CANCELLED: &str = "Cancelled";
/// Outcome: nothing matched.
pub const NO_TARGETS: &str = "NoTargets";
