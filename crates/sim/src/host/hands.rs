//! The hands of a coordinator on a simulated host.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_coordinator::agent::{Hands, NotStarted, RebootEnd};
use dogwatch_core::name::BootId;
use dogwatch_core::reboot::{CommandEnd, TriggerSeen};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::disk::Disk;

/// What the reboot command of a simulated host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootCommand {
    /// Ends at once; the machine goes down after this time.
    Works {
        /// From the command to the machine's stop.
        after: Duration,
    },
    /// Is not there.
    Missing,
    /// Ends with status 1; nothing else happens.
    Fails,
    /// Ends well; nothing else happens.
    DoesNothing,
    /// Never ends; nothing else happens.
    Hangs,
}

impl Default for RebootCommand {
    fn default() -> Self {
        RebootCommand::Works {
            after: Duration::from_secs(2),
        }
    }
}

/// Called when the machine is to go down and come back.
pub type PowerCycle = Arc<dyn Fn() + Send + Sync>;

/// One process' hands: they know one boot.
pub struct SimHands {
    pub(super) boot: BootId,
    pub(super) disk: Disk,
    pub(super) sentinels: Vec<String>,
    pub(super) command: Arc<Mutex<RebootCommand>>,
    pub(super) cycle: PowerCycle,
    pub(super) started: Arc<Mutex<Vec<Instant>>>,
}

impl Hands for SimHands {
    fn boot_id(&mut self) -> Result<BootId, String> {
        Ok(self.boot.clone())
    }

    fn triggers(&mut self) -> BoxStream<'static, Vec<TriggerSeen>> {
        let mut changes = self.disk.changes();
        changes.mark_changed();
        let state = (changes, self.disk.clone(), self.sentinels.clone());
        stream::unfold(state, |(mut changes, disk, sentinels)| async move {
            changes.changed().await.ok()?;
            let seen = sentinels.iter().map(|path| disk.look(path)).collect();
            Some((seen, (changes, disk, sentinels)))
        })
        .boxed()
    }

    fn reboot(
        &mut self,
        _within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, NotStarted>> {
        let command = *self.command.lock().expect("nothing panics while it is set");
        let mut started = self.started.lock().expect("nothing panics while it counts");
        started.push(Instant::now());
        drop(started);
        let cycle = Arc::clone(&self.cycle);
        let started = match command {
            RebootCommand::Missing => Err(NotStarted::Failed(
                "cannot start \"systemctl\": no such file: correct --reboot-command".into(),
            )),
            RebootCommand::Works { after } => {
                // The shutdown goes on without the process that asked for it.
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    cycle();
                });
                Ok(ran(CommandEnd::Success))
            }
            RebootCommand::Fails => Ok(ran(CommandEnd::Failure("exit status: 1".into()))),
            RebootCommand::DoesNothing => Ok(ran(CommandEnd::Success)),
            RebootCommand::Hangs => Ok(std::future::pending().boxed()),
        };
        std::future::ready(started).boxed()
    }
}

fn ran(end: CommandEnd) -> BoxFuture<'static, RebootEnd> {
    std::future::ready(RebootEnd::Ran(end)).boxed()
}
