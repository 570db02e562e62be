//! A server in a child process with its own folder; dropping it removes both.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    Error, control_plane::kill_and_reap, process_group::GuardedProcessGroup, readiness::tail_log,
};

/// Measured: 1 s for the slowest (sushy), alone on 2 cores. The rest is for a machine that compiles
/// beside it.
const READY_WITHIN: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The folder, and the guard that removes it; the process starts later, once its files are written.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    // Drop order: the process, then its guard, then the folder.
    process: Option<ServerChild>,
    process_group: GuardedProcessGroup,
    folder: TempDir,
    name: &'static str,
}

#[derive(Debug)]
struct ServerChild(Child);

impl Drop for ServerChild {
    fn drop(&mut self) {
        kill_and_reap(&mut self.0);
    }
}

impl ServerProcess {
    /// Creates an empty folder under guard, without a process.
    pub(crate) fn new(name: &'static str) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("dogwatch-{name}-"))
            .tempdir()
            .map_err(Error::io_error("make a folder in", std::env::temp_dir()))?;
        let brood = GuardedProcessGroup::new(folder.path())?;
        Ok(Self {
            process: None,
            process_group: brood,
            folder,
            name,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the process; the guard also kills the processes that it starts.
    pub(crate) fn spawn_process(&mut self, command: &mut Command) -> Result<(), Error> {
        let child = self.process_group.spawn_child(command, &self.log_path())?;
        self.process = Some(ServerChild(child));
        Ok(())
    }

    pub(crate) async fn wait_until_answering(
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
                    log: tail_log(&self.log_path()),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
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
                log: tail_log(&self.log_path()),
            }),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.folder().join("log")
    }
}
