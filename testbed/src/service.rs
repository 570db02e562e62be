//! A server in a child process, with a folder of its own; dropped, both are gone.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{Error, brood::Brood, control_plane::end, readiness::tail};

/// Measured: 1 s for the slowest (sushy), alone on 2 cores. The rest is for a machine that compiles beside it.
const READY_WITHIN: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(20);

/// The folder, and the guard that removes it; the process comes later, once its files are written.
#[derive(Debug)]
pub(crate) struct Service {
    // Dropped in this order: the process, then its guard, then the folder.
    process: Option<Process>,
    brood: Brood,
    folder: TempDir,
    name: &'static str,
}

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

impl Service {
    /// An empty folder under guard.
    pub(crate) fn new(name: &'static str) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("dogwatch-{name}-"))
            .tempdir()
            .map_err(Error::io("make a folder in", std::env::temp_dir()))?;
        let brood = Brood::new(folder.path())?;
        Ok(Self {
            process: None,
            brood,
            folder,
            name,
        })
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the process; whatever it starts is gone with it.
    pub(crate) fn spawn(&mut self, command: &mut Command) -> Result<(), Error> {
        let child = self.brood.spawn(command, &self.log())?;
        self.process = Some(Process(child));
        Ok(())
    }

    /// Waits until the server answers.
    pub(crate) async fn wait_until(
        &mut self,
        mut answers: impl AsyncFnMut() -> bool,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        while !answers().await {
            self.check_alive()?;
            if Instant::now() > deadline {
                return Err(Error::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    last: format!("no answer from {}", self.name),
                    log: tail(&self.log()),
                });
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// The process, where it was started.
    pub(crate) fn child(&self) -> Option<&Child> {
        self.process.as_ref().map(|process| &process.0)
    }

    fn check_alive(&mut self) -> Result<(), Error> {
        let status = self.process.as_mut().and_then(|process| {
            let status = process.0.try_wait();
            status.expect("a child of ours can be waited for")
        });
        match status {
            None => Ok(()),
            Some(status) => Err(Error::Died {
                program: self.name,
                status,
                log: tail(&self.log()),
            }),
        }
    }

    fn log(&self) -> PathBuf {
        self.folder().join("log")
    }
}
