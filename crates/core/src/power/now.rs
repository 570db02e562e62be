//! Whether a host is powered on, as far as we know now. Source: specification §4.1.

/// What the truth table of remediation asks of a host's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerNow {
    /// Our newest reading says on.
    On,
    /// Our two newest readings say off, of every device of the level.
    Off,
    /// Never read, too old, an error, or between the two: neither.
    Unknown,
}
