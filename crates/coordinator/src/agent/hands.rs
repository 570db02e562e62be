//! What the loop needs of a host. The real one is in [`crate::host`]; the embedded cluster has
//! its own, so that the loop itself is the same everywhere.

use std::time::Duration;

use dogwatch_core::name::BootId;
use dogwatch_core::reboot::{CommandEnd, TriggerSeen};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// A host's sentinels, boot id and power.
pub trait Hands: Send + 'static {
    /// The boot id of the running kernel, or why it cannot be read and what to do. It cannot
    /// change while this process lives, so it is asked for once.
    fn boot_id(&mut self) -> Result<BootId, String>;

    /// All sentinels, anew at each change. The first item comes without waiting for a change.
    fn triggers(&mut self) -> BoxStream<'static, Vec<TriggerSeen>>;

    /// Starts the reboot command within this time, or not at all.
    fn reboot(
        &mut self,
        within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, NotStarted>>;
}

/// The reboot command was not started, and nothing of it will happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStarted {
    /// It could not be: why, and what to do.
    Failed(String),
    /// The time for it was over first: everything is to be checked again.
    TooLate(String),
}

/// How a reboot command ended that had been started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootEnd {
    /// It turned out that it was never begun.
    NeverBegun(String),
    /// It ran.
    Ran(CommandEnd),
}
