//! Implements the loop's host interface on a real host: sentinels, boot id and reboot.

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::name::BootId;
use dogwatch_core::reboot::ObservedTrigger;
use dogwatch_k8s::error::error_chain;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use tokio::sync::watch;

use crate::agent::{HostOps, RebootEnd, RebootNotStarted};
use crate::args::Args;
use crate::host::boot_id;
use crate::host::dbus::{self, SoftRebootsUnknown};
use crate::host::reboot::{HostRebooter, RebootStartError, StartedReboot, StartedRebootEnd};
use crate::host::sentinel::{self, SentinelError};
use crate::host::sentinel_command::SentinelCommand;

/// So often systemd is asked for its count of soft reboots, with this pause.
const SOFT_REBOOT_READS: u32 = 24;
const SOFT_REBOOT_READ_PAUSE: Duration = Duration::from_secs(5);

pub struct LinuxHostOps {
    boot_id_file: PathBuf,
    reboot: HostRebooter,
    files: watch::Receiver<Vec<ObservedTrigger>>,
    command: Option<watch::Receiver<Option<ObservedTrigger>>>,
}

impl LinuxHostOps {
    /// Starts to watch the sentinels. Needs a tokio runtime.
    pub fn new(args: &Args) -> Result<Self, SentinelError> {
        Ok(Self {
            boot_id_file: args.boot_id_file.clone(),
            reboot: args.host_rebooter(),
            files: sentinel::watch_sentinels(&args.host_root, &args.sentinel)?,
            command: args.sentinel_command().map(SentinelCommand::watch_trigger),
        })
    }
}

impl HostOps for LinuxHostOps {
    fn read_boot_id(&mut self) -> Result<BootId, String> {
        boot_id::read_boot_id(&self.boot_id_file).map_err(|error| error_chain(&error))
    }

    fn read_soft_reboots(&mut self) -> BoxFuture<'static, Option<u32>> {
        let socket = self.reboot.bus_socket();
        async move {
            let mut tries = 0;
            loop {
                let count = dbus::read_soft_reboots(&socket).await;
                tries += 1;
                // Right after a boot the bus may not answer yet.
                if count.is_ok() || tries == SOFT_REBOOT_READS {
                    return count.inspect_err(log_unknown_soft_reboots).ok();
                }
                tokio::time::sleep(SOFT_REBOOT_READ_PAUSE).await;
            }
        }
        .boxed()
    }

    fn watch_triggers(&mut self) -> BoxStream<'static, Vec<ObservedTrigger>> {
        let mut files = self.files.clone();
        files.mark_changed();
        let state = (files, self.command.clone());
        stream::unfold(state, |(mut files, mut command)| async move {
            tokio::select! {
                biased;
                changed = files.changed() => changed.ok()?,
                () = wait_for_command_change(command.as_mut()) => {}
            }
            let mut seen = files.borrow_and_update().clone();
            seen.extend(
                command
                    .as_mut()
                    .and_then(|command| command.borrow_and_update().clone()),
            );
            Some((seen, (files, command)))
        })
        .boxed()
    }

    fn start_reboot(
        &mut self,
        within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, RebootNotStarted>> {
        let reboot = self.reboot.clone();
        async move {
            match reboot.start_reboot(within).await {
                Ok(running) => Ok(wait_for_reboot_end(running).boxed()),
                Err(error @ RebootStartError::TooLate(_)) => {
                    Err(RebootNotStarted::TooLate(error_chain(&error)))
                }
                Err(
                    error @ (RebootStartError::Spawn { .. }
                    | RebootStartError::Alone(_)
                    | RebootStartError::Logind(_)
                    | RebootStartError::Signal { .. }),
                ) => Err(RebootNotStarted::Failed(error_chain(&error))),
            }
        }
        .boxed()
    }
}

fn log_unknown_soft_reboots(error: &SoftRebootsUnknown) {
    let error = error_chain(error);
    tracing::info!(
        error,
        "soft reboots cannot be told from reboots that do not happen"
    );
}

/// Pending for ever if there is no command.
async fn wait_for_command_change(command: Option<&mut watch::Receiver<Option<ObservedTrigger>>>) {
    if let Some(command) = command
        && command.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

async fn wait_for_reboot_end(mut running: StartedReboot) -> RebootEnd {
    match running.wait_for_end().await {
        StartedRebootEnd::NeverBegun(why) => RebootEnd::NeverBegun(why),
        StartedRebootEnd::Ran(end) => RebootEnd::Ran(end),
    }
}
