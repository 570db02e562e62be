//! The keepers of all hosts, in one time of leading.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use dogwatch_core::power::HostName;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, info};

use super::board::PowerBoard;
use super::keeper::{Input, Keeper};
use super::services::Services;
use crate::Stop;

/// Dropped, they stop where they are.
pub(super) struct Keepers {
    services: Arc<Services>,
    board: PowerBoard,
    stop: Stop,
    inputs: BTreeMap<HostName, watch::Sender<Input>>,
    tasks: JoinSet<()>,
}

impl Keepers {
    /// None yet.
    pub(super) fn new(services: Arc<Services>, board: PowerBoard, stop: Stop) -> Self {
        info!("power control begins; every BMC is read anew");
        Self {
            services,
            board,
            stop,
            inputs: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Tells the host's keeper, or begins to keep it. A host of another UID is another host.
    pub(super) fn tell(&mut self, input: &Input) {
        let name = &input.host.name;
        let known = self.inputs.get(name);
        if known.is_some_and(|known| known.borrow().host.uid != input.host.uid) {
            self.leave(name);
        }
        match self.inputs.get(name) {
            Some(keeper) => {
                keeper.send_replace(input.clone());
            }
            None => self.begin(input.clone()),
        }
    }

    /// The host is gone: its keeper ends when its input does.
    pub(super) fn leave(&mut self, name: &HostName) {
        self.inputs.remove(name);
        self.board.take(name);
    }

    fn begin(&mut self, input: Input) {
        let spot = (self.board).put(Keeper::first(&input), input.seniority.clone());
        let name = input.host.name.clone();
        let (sender, receiver) = watch::channel(input);
        let keeper = Keeper::new(Arc::clone(&self.services), receiver, spot);
        // A task that is given a large value has it twice.
        let keeper = Box::new(keeper);
        self.tasks.spawn(keeper.run(self.stop.clone()));
        self.inputs.insert(name, sender);
    }

    /// Says so when one ends that should not. Losing the future loses nothing.
    pub(super) async fn look_after(&mut self) -> Infallible {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(())) => {}
                Some(Err(defect)) => error!(error = %defect, "a host's keeper ended: a defect"),
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until all have finished what they are at; they were told by their `stop`.
    pub(super) async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Drop for Keepers {
    fn drop(&mut self) {
        self.board.clear();
    }
}
