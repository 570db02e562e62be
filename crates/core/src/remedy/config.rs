//! What the remediator was told by its flags.

use std::time::Duration;

/// The flags, and constants with their reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `--max-fenced`: how many hosts are held off at once for remediation.
    pub max_fenced: u32,
    /// `--fence-cooldown`: how long after the end of one remediation a host is left alone.
    pub cooldown: Duration,
    /// `--require-host-identity`: a host whose BMC does not tell its system UUID is not released.
    pub require_identity: bool,
    /// What the flags say of planned reboots; a policy goes before them. Here: `rebootTimeout`.
    pub reboot: crate::reboot::Config,
}

impl Config {
    /// A Node is deleted within so long of the reads that it rests on, else all again.
    /// Source: specification §4.1.
    pub const RELEASE_WITHIN: Duration = Duration::from_secs(5);
    /// Something that should have happened by then is said loudly: a host that is not proved off, a Node
    /// that does not come back. As long as metal3's own remediation waits.
    pub const SAY_AFTER: Duration = Duration::from_mins(10);
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_fenced: 5,
            cooldown: Duration::from_mins(5),
            require_identity: false,
            reboot: crate::reboot::Config::default(),
        }
    }
}
