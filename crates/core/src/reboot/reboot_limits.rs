//! The limits of a reboot under way. The coordinator writes them in the record, because the
//! controller does not know the coordinator's flags. Source: specification §4.4.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::RebootConfig;
use super::snapshot::ObservedNode;

/// The longest time that a record may ask for. Whoever can write the Node chooses the numbers, and a
/// failed machine is not remediated before its `rebootTimeout` has passed.
const MAX_RECORDED_SECONDS: u64 = 24 * 60 * 60;
const MAX_RECORDED_ATTEMPTS: u32 = 100;

/// The limits by which the coordinator judges this reboot: its flags, overridden by its policy. What
/// is absent was written by an older version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RebootLimits {
    /// How long each attempt waits for a new boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_timeout_seconds: Option<u64>,
    /// How often the command may be run in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_attempts: Option<u32>,
    /// How long the Node must stay Ready before it counts as back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<u64>,
}

impl RebootLimits {
    pub(super) fn from_config(config: &RebootConfig) -> Self {
        Self {
            reboot_timeout_seconds: Some(round_up_to_seconds(config.reboot_timeout)),
            reboot_attempts: Some(config.reboot_attempts),
            settle_seconds: Some(round_up_to_seconds(config.settle)),
        }
    }

    pub(crate) fn reboot_timeout(self) -> Option<Duration> {
        let seconds = self.reboot_timeout_seconds?;
        Some(Duration::from_secs(seconds.clamp(1, MAX_RECORDED_SECONDS)))
    }

    fn settle(self) -> Option<Duration> {
        let seconds = self.settle_seconds?;
        Some(Duration::from_secs(seconds.min(MAX_RECORDED_SECONDS)))
    }

    fn overlay_flags(self, flags: &RebootConfig) -> RebootConfig {
        let attempts = self.reboot_attempts;
        RebootConfig {
            reboot_timeout: self.reboot_timeout().unwrap_or(flags.reboot_timeout),
            reboot_attempts: attempts.map_or(flags.reboot_attempts, |attempts| {
                attempts.clamp(1, MAX_RECORDED_ATTEMPTS)
            }),
            settle: self.settle().unwrap_or(flags.settle),
            ..flags.clone()
        }
    }
}

/// The flags of the node's coordinator, as far as the record shows them; the rest is from `flags`. A
/// policy overrides them all the same, so its author can decide how long a node may reboot.
pub(crate) fn flags_of_coordinator<'a>(
    node: &ObservedNode,
    flags: &'a RebootConfig,
) -> Cow<'a, RebootConfig> {
    let limits = node.record.get().map(|record| record.limits);
    match limits.filter(|limits| *limits != RebootLimits::default()) {
        Some(limits) => Cow::Owned(limits.overlay_flags(flags)),
        None => Cow::Borrowed(flags),
    }
}

fn round_up_to_seconds(time: Duration) -> u64 {
    let part = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(part)
}
