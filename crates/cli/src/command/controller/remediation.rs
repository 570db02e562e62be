//! The flags of remediation. Source: specification §4.4.

use std::num::NonZeroU32;
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::reboot;
use dogwatch_core::remediation::RemediationConfig;

#[derive(Debug, Clone, clap::Args)]
pub struct RemediationArgs {
    /// How many hosts remediation may hold off at once; hosts whose BMC does not answer are not
    /// counted
    #[arg(
        long,
        env = "DOGWATCH_MAX_FENCED",
        value_name = "N",
        default_value = "5"
    )]
    pub max_fenced: NonZeroU32,

    /// How long a host is left alone after its remediation
    #[arg(long, env = "DOGWATCH_FENCE_COOLDOWN", value_name = "DURATION", default_value = "5m", value_parser = duration::parse_duration)]
    pub fence_cooldown: Duration,

    /// Release no node unless its host's BMC reports the node's system UUID
    #[arg(long, env = "DOGWATCH_REQUIRE_HOST_IDENTITY")]
    pub require_host_identity: bool,
}

impl RemediationArgs {
    /// `reboot` holds the flags of planned reboots.
    pub fn remediation_config(&self, reboot: reboot::RebootConfig) -> RemediationConfig {
        RemediationConfig {
            max_fenced: self.max_fenced.get(),
            cooldown: self.fence_cooldown,
            require_identity: self.require_host_identity,
            reboot,
        }
    }
}
