//! What is wrong with a window.

/// Why a window cannot be understood: the field, what is wrong, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    /// `days` has something else than a day.
    #[error("days: {value:?} is no day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun")]
    Day {
        /// What stands there.
        value: String,
    },
    /// `days` is an empty list.
    #[error("days: the list is empty; name a day, or leave `days` out for every day")]
    NoDays,
    /// Two fields say which days.
    #[error("rrule: `days` is there too, and both say on which days the window starts; keep one")]
    DaysAndRule,
    /// `start` without `end`, or the other way round.
    #[error("{missing}: is missing; write both `start` and `end`, or neither for the whole day")]
    OneTime {
        /// The field that is missing.
        missing: &'static str,
    },
    /// A time that is none.
    #[error("{field}: {value:?} is no time of day; write HH:MM, such as \"04:00\" or \"22:30\"")]
    Time {
        /// `start` or `end`.
        field: &'static str,
        /// What stands there.
        value: String,
    },
    /// A time zone that the database does not have.
    #[error("timeZone: {value:?} is not known; write a name such as Europe/Berlin, or UTC")]
    TimeZone {
        /// What stands there.
        value: String,
    },
    /// A date that is none.
    #[error("excludedDates: {value:?} is no date; write YYYY-MM-DD")]
    Date {
        /// What stands there.
        value: String,
    },
    /// A rule that cannot be followed.
    #[error("rrule: {why}")]
    Rule {
        /// What is wrong, and what to write.
        why: String,
    },
}
