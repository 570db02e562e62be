//! Errors of a window's definition.

/// Why a window is invalid: the field, what is wrong, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// `days` contains something that is not a day.
    #[error("days: {value:?} is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun")]
    Day { value: String },
    #[error("days: the list is empty; name a day, or leave `days` out for every day")]
    NoDays,
    /// `days` and `rrule` are both given.
    #[error(
        "rrule: `days` is set as well, and both choose the weekdays on which the window starts; keep one"
    )]
    DaysAndRule,
    /// `start` without `end`, or the other way round.
    #[error("{missing}: is missing; write both `start` and `end`, or neither for the whole day")]
    OneTime { missing: &'static str },
    #[error("{field}: {value:?} is not a time of day; write HH:MM, such as \"04:00\" or \"22:30\"")]
    Time {
        /// `start` or `end`.
        field: &'static str,
        value: String,
    },
    /// A time zone that the database does not have.
    #[error(
        "timeZone: {value:?} is not a known time zone; write a name such as Europe/Berlin, or UTC"
    )]
    TimeZone { value: String },
    #[error(
        "excludedDates: {value:?} is not a date; write YYYY-MM-DD, MM-DD for each year, or two of one kind with .. between"
    )]
    Date { value: String },
    #[error("excludedDates: {value:?} ends before it starts; write the earlier date first")]
    DatesReversed { value: String },
    /// A recurrence rule that is invalid or not supported.
    #[error("rrule: {why}")]
    Rule {
        /// What is wrong, and what to write.
        why: String,
    },
}
