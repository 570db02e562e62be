//! The flags of remediation. Source: specification §4.4.

use std::num::NonZeroU32;
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::reboot;
use dogwatch_core::remedy::Config;

/// How failed machines are remediated.
#[derive(Debug, Clone, clap::Args)]
pub struct RemediationArgs {
    /// How many hosts may be held off at once for remediation; one whose BMC does not answer does not count
    #[arg(
        long,
        env = "DOGWATCH_MAX_FENCED",
        value_name = "N",
        default_value = "5"
    )]
    pub max_fenced: NonZeroU32,

    /// How long after its remediation a host is left alone
    #[arg(long, env = "DOGWATCH_FENCE_COOLDOWN", value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub fence_cooldown: Duration,

    /// Releases no node whose host's BMC does not tell the node's system UUID
    #[arg(long, env = "DOGWATCH_REQUIRE_HOST_IDENTITY")]
    pub require_host_identity: bool,
}

impl RemediationArgs {
    /// What the component is started with. `reboot`: what the flags say of planned reboots.
    pub fn config(&self, reboot: reboot::Config) -> Config {
        Config {
            max_fenced: self.max_fenced.get(),
            cooldown: self.fence_cooldown,
            require_identity: self.require_host_identity,
            reboot,
        }
    }
}
