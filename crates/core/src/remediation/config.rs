//! The remediator's flags and constants.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct RemediationConfig {
    /// `--max-fenced`: how many hosts are held off at once for remediation.
    pub max_fenced: u32,
    /// `--fence-cooldown`: how long after the end of one remediation a host is left alone.
    pub cooldown: Duration,
    /// `--require-host-identity`: a host whose BMC reports no system UUID is not released.
    pub require_identity: bool,
    /// The flags for planned reboots, here `rebootTimeout`; a policy takes precedence.
    pub reboot: crate::reboot::RebootConfig,
}

impl RemediationConfig {
    /// Maximum age of the reads on which the deletion of a Node rests. Older reads are repeated.
    /// Source: specification §4.1.
    pub const RELEASE_WITHIN: Duration = Duration::from_secs(5);
    /// A state that lasts longer than this raises a Warning: a host that is not proved off, a Node
    /// that does not come back. metal3's own remediation waits as long.
    pub const WARN_AFTER: Duration = Duration::from_mins(10);
    /// How long a write without an answer may still be carried out: kube-apiserver gives up on a
    /// request after a minute (`--request-timeout`).
    pub const UNANSWERED_WRITE_LIFETIME: Duration = Duration::from_secs(70);
}

impl Default for RemediationConfig {
    fn default() -> Self {
        Self {
            max_fenced: 5,
            cooldown: Duration::from_mins(5),
            require_identity: false,
            reboot: crate::reboot::RebootConfig::default(),
        }
    }
}
