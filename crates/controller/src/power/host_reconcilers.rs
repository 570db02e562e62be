//! The reconcilers of all hosts, during one term of the leader.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use dogwatch_core::power::HostName;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, info};

use super::host_reconciler::{HostInput, HostReconciler};
use super::host_registry::HostRegistry;
use super::services::PowerServices;
use crate::StopSignal;

/// Dropping it stops all of them at once.
pub(super) struct HostReconcilers {
    services: Arc<PowerServices>,
    board: HostRegistry,
    stop: StopSignal,
    inputs: BTreeMap<HostName, watch::Sender<HostInput>>,
    tasks: JoinSet<()>,
}

impl HostReconcilers {
    pub(super) fn new(services: Arc<PowerServices>, board: HostRegistry, stop: StopSignal) -> Self {
        info!("power control starts and reads every BMC again");
        Self {
            services,
            board,
            stop,
            inputs: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Updates the host's reconciler, or starts one. A host with another UID gets a new reconciler.
    pub(super) fn update_host(&mut self, input: &HostInput) {
        let name = &input.host.name;
        let known = self.inputs.get(name);
        if known.is_some_and(|known| known.borrow().host.uid != input.host.uid) {
            self.remove_host(name);
        }
        match self.inputs.get(name) {
            Some(keeper) => {
                keeper.send_replace(input.clone());
            }
            None => self.start_reconciler(input.clone()),
        }
    }

    /// The host's reconciler ends when its input is dropped.
    pub(super) fn remove_host(&mut self, name: &HostName) {
        self.inputs.remove(name);
        self.board.remove_host(name);
    }

    fn start_reconciler(&mut self, input: HostInput) {
        let spot = (self.board).add_host(
            HostReconciler::initial_snapshot(&input),
            input.seniority.clone(),
        );
        let name = input.host.name.clone();
        let (sender, receiver) = watch::channel(input);
        let keeper = HostReconciler::new(Arc::clone(&self.services), receiver, spot);
        // Boxed, because spawning a large value keeps two copies of it.
        let keeper = Box::new(keeper);
        self.tasks
            .spawn(keeper.run_until_stopped(self.stop.clone()));
        self.inputs.insert(name, sender);
    }

    /// Logs reconcilers that panic. Cancel-safe.
    pub(super) async fn report_ended_tasks(&mut self) -> Infallible {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(())) => {}
                Some(Err(defect)) => {
                    error!(error = %defect, "the task of a host ended unexpectedly; this is a defect of Dogwatch");
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until all have finished their running work, after their `stop` has fired.
    pub(super) async fn wait_until_finished(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Drop for HostReconcilers {
    fn drop(&mut self) {
        self.board.clear();
    }
}
