//! The loop's interface to the host. [`crate::host`] implements it for real hosts, and the embedded
//! cluster for simulated ones, so that both run the same loop.

use std::time::Duration;

use dogwatch_core::name::BootId;
use dogwatch_core::reboot::{CommandEnd, ObservedTrigger};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub trait HostOps: Send + 'static {
    /// The boot id of the running kernel, or why it cannot be read and what to do. Read once: it
    /// cannot change while this process runs.
    fn read_boot_id(&mut self) -> Result<BootId, String>;

    /// systemd's `SoftRebootsCount`; `None`: it cannot be read, or this systemd has none. Read once: a
    /// soft reboot ends this process.
    fn read_soft_reboots(&mut self) -> BoxFuture<'static, Option<u32>>;

    /// All sentinels, again after each change. The first item comes at once.
    fn watch_triggers(&mut self) -> BoxStream<'static, Vec<ObservedTrigger>>;

    /// Starts the reboot command within this time, or not at all.
    fn start_reboot(
        &mut self,
        within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, RebootNotStarted>>;
}

/// The reboot command was not started, and will not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootNotStarted {
    /// The start failed: why, and what to do.
    Failed(String),
    /// The time was over before the start: the loop checks everything again.
    TooLate(String),
}

/// How a started reboot command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootEnd {
    /// The command itself never began, and why.
    NeverBegun(String),
    Ran(CommandEnd),
}
