//! A coordinator's actions on a simulated host.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_coordinator::agent::{HostOps, RebootEnd, RebootNotStarted};
use dogwatch_core::name::BootId;
use dogwatch_core::reboot::{CommandEnd, ObservedTrigger};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::disk::SimDisk;

/// What the reboot command of a simulated host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootCommand {
    /// Ends at once with success; the machine goes down after this time.
    Works {
        /// From the command to the machine's stop.
        after: Duration,
    },
    /// The command does not exist.
    Missing,
    /// Ends with status 1 and does nothing.
    Fails,
    /// Ends with success and does nothing.
    DoesNothing,
    /// Never ends, and does nothing.
    Hangs,
    /// Ends with success; systemd restarts userspace after two seconds, and the kernel stays.
    SoftReboots,
}

impl Default for RebootCommand {
    fn default() -> Self {
        RebootCommand::Works {
            after: Duration::from_secs(2),
        }
    }
}

/// Called when the machine must go down and boot again, or restart its userspace.
pub type PowerCycle = Arc<dyn Fn() + Send + Sync>;

/// From the command to the end of userspace.
const SOFT_REBOOT_DELAY: Duration = Duration::from_secs(2);

/// The host actions of one coordinator process; it knows one boot.
pub struct SimHostOps {
    pub(super) boot: BootId,
    pub(super) disk: SimDisk,
    pub(super) sentinels: Vec<String>,
    pub(super) command: Arc<Mutex<RebootCommand>>,
    pub(super) cycle: PowerCycle,
    /// How often userspace was restarted in this boot.
    pub(super) soft_reboots: u32,
    pub(super) soft_reboot: PowerCycle,
    pub(super) started: Arc<Mutex<Vec<Instant>>>,
}

impl HostOps for SimHostOps {
    fn read_boot_id(&mut self) -> Result<BootId, String> {
        Ok(self.boot.clone())
    }

    fn read_soft_reboots(&mut self) -> BoxFuture<'static, Option<u32>> {
        std::future::ready(Some(self.soft_reboots)).boxed()
    }

    fn watch_triggers(&mut self) -> BoxStream<'static, Vec<ObservedTrigger>> {
        let mut changes = self.disk.watch_changes();
        changes.mark_changed();
        let state = (changes, self.disk.clone(), self.sentinels.clone());
        stream::unfold(state, |(mut changes, disk, sentinels)| async move {
            changes.changed().await.ok()?;
            let seen = sentinels
                .iter()
                .map(|path| disk.read_sentinel(path))
                .collect();
            Some((seen, (changes, disk, sentinels)))
        })
        .boxed()
    }

    fn start_reboot(
        &mut self,
        _within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, RebootNotStarted>> {
        let command = *self.command.lock().expect("nothing panics while it is set");
        let mut started = self.started.lock().expect("nothing panics while it counts");
        started.push(Instant::now());
        drop(started);
        let cycle = Arc::clone(&self.cycle);
        let started = match command {
            RebootCommand::Missing => Err(RebootNotStarted::Failed(
                "cannot start \"systemctl\": no such file: correct --reboot-command".into(),
            )),
            RebootCommand::Works { after } => {
                call_later(after, cycle);
                Ok(ready_command_end(CommandEnd::Success))
            }
            RebootCommand::SoftReboots => {
                call_later(SOFT_REBOOT_DELAY, Arc::clone(&self.soft_reboot));
                Ok(ready_command_end(CommandEnd::Success))
            }
            RebootCommand::Fails => Ok(ready_command_end(CommandEnd::Failure(
                "exit status: 1".into(),
            ))),
            RebootCommand::DoesNothing => Ok(ready_command_end(CommandEnd::Success)),
            RebootCommand::Hangs => Ok(std::future::pending().boxed()),
        };
        std::future::ready(started).boxed()
    }
}

/// The shutdown continues without the process that requested it.
fn call_later(after: Duration, end: PowerCycle) {
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        end();
    });
}

fn ready_command_end(end: CommandEnd) -> BoxFuture<'static, RebootEnd> {
    std::future::ready(RebootEnd::Ran(end)).boxed()
}
