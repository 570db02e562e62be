//! How a node is taken out of service.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to the node after it was drained. Of several reboots that are asked for at once,
/// the later variant is done; a hold is never joined with a reboot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum RebootMethod {
    /// Its coordinator runs the reboot command.
    #[default]
    Reboot,
    /// Its host is switched off, which is proved, and on again.
    PowerCycle,
    /// Nothing: it stays cordoned and drained until the request is withdrawn.
    Hold,
}

impl RebootMethod {
    /// The name in objects and annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            RebootMethod::Reboot => "Reboot",
            RebootMethod::PowerCycle => "PowerCycle",
            RebootMethod::Hold => "Hold",
        }
    }
}
