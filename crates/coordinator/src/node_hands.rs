//! The hands of a coordinator on a real host: sentinels, boot id and reboot put together.

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::name::BootId;
use dogwatch_core::reboot::TriggerSeen;
use dogwatch_k8s::error::in_words;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use tokio::sync::watch;

use crate::agent::{Hands, NotStarted, RebootEnd};
use crate::args::Args;
use crate::host::boot_id;
use crate::host::reboot::{Ended, Reboot, Running, StartError};
use crate::host::sentinel::{self, SentinelError};
use crate::host::sentinel_command::SentinelCommand;

/// This process' hands on its host.
pub struct NodeHands {
    boot_id_file: PathBuf,
    reboot: Reboot,
    files: watch::Receiver<Vec<TriggerSeen>>,
    command: Option<watch::Receiver<Option<TriggerSeen>>>,
}

impl NodeHands {
    /// Begins to watch the sentinels. Needs a tokio runtime.
    pub fn new(args: &Args) -> Result<Self, SentinelError> {
        Ok(Self {
            boot_id_file: args.boot_id_file.clone(),
            reboot: args.reboot(),
            files: sentinel::watch(&args.host_root, &args.sentinel)?,
            command: args.sentinel_command().map(SentinelCommand::watch),
        })
    }
}

impl Hands for NodeHands {
    fn boot_id(&mut self) -> Result<BootId, String> {
        boot_id::read(&self.boot_id_file).map_err(|error| in_words(&error))
    }

    fn triggers(&mut self) -> BoxStream<'static, Vec<TriggerSeen>> {
        let mut files = self.files.clone();
        files.mark_changed();
        let state = (files, self.command.clone());
        stream::unfold(state, |(mut files, mut command)| async move {
            tokio::select! {
                biased;
                changed = files.changed() => changed.ok()?,
                () = command_changed(command.as_mut()) => {}
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

    fn reboot(
        &mut self,
        within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, NotStarted>> {
        let reboot = self.reboot.clone();
        async move {
            match reboot.start(within).await {
                Ok(running) => Ok(end(running).boxed()),
                Err(error @ StartError::TooLate(_)) => Err(NotStarted::TooLate(in_words(&error))),
                Err(
                    error @ (StartError::Spawn { .. }
                    | StartError::Alone(_)
                    | StartError::Logind(_)
                    | StartError::Signal { .. }),
                ) => Err(NotStarted::Failed(in_words(&error))),
            }
        }
        .boxed()
    }
}

/// Never, where there is no command.
async fn command_changed(command: Option<&mut watch::Receiver<Option<TriggerSeen>>>) {
    if let Some(command) = command
        && command.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

async fn end(mut running: Running) -> RebootEnd {
    match running.ended().await {
        Ended::NeverBegun(why) => RebootEnd::NeverBegun(why),
        Ended::Ran(end) => RebootEnd::Ran(end),
    }
}
