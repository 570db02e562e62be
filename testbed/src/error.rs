//! Errors of the testbed.

use std::{io, path::PathBuf};

/// The testbed could not do something. The message says what to do where that is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no Go to build with.
    #[error(
        "find `go`, which makes {program}: install Go 1.26 or newer (on Debian: apt-get install \
         golang-go); or set KUBEBUILDER_ASSETS to a folder with the control plane's programs"
    )]
    NoGo { program: &'static str },
    /// `DOGWATCH_KUBERNETES` names a release that the Go module cannot build.
    #[error("build Kubernetes {wanted}: set DOGWATCH_KUBERNETES to one of {known}, or to nothing")]
    UnknownKubernetes { wanted: String, known: String },
    /// None of `DOGWATCH_CACHE`, `XDG_CACHE_HOME` and `HOME` is set.
    #[error("find a cache folder: set DOGWATCH_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// `go build` failed.
    #[error("build {program}: go ended with {status}:\n{output}")]
    Build {
        program: &'static str,
        status: std::process::ExitStatus,
        output: String,
    },
    /// An installation failed.
    #[error("install {what}: {command} ended with {status}:\n{output}")]
    Install {
        what: &'static str,
        command: String,
        status: std::process::ExitStatus,
        output: String,
    },
    /// An operation on a file or a process failed.
    #[error("{what} {}", path.display())]
    Io {
        /// The operation, as a verb.
        what: &'static str,
        /// The file, folder or program.
        path: PathBuf,
        source: io::Error,
    },
    /// No loopback port was free.
    #[error("find a free loopback port")]
    NoPort,
    /// Generating keys or certificates failed.
    #[error("create the control plane's keys")]
    Keys(#[from] rcgen::Error),
    /// A program exited by itself.
    #[error("keep {program} running: it ended with {status}; the end of its log:\n{log}")]
    Died {
        program: &'static str,
        status: std::process::ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// A program did not become ready in time.
    #[error(
        "see the control plane ready within {seconds} s; last answer: {last}; the end of its log:\n{log}"
    )]
    NotReady {
        /// The time limit.
        seconds: u64,
        last: String,
        /// The last lines of its log.
        log: String,
    },
    /// kubectl failed.
    #[error("run kubectl {arguments}: {stderr}")]
    Kubectl {
        arguments: String,
        /// Its standard error.
        stderr: String,
    },
    /// A line of the audit log could not be parsed.
    #[error("read the audit log")]
    Audit(#[from] serde_json::Error),
    /// The audit log does not contain a request that was answered.
    #[error("see the marker request in the audit log within {seconds} s")]
    AuditSilent {
        /// The time limit.
        seconds: u64,
    },
    /// A real node's emulator did not say that its processors have stopped.
    #[error("stop the processors of a real node: its machine is off, or its emulator hangs")]
    MachineOff,
    /// The API server is stopped.
    #[error("ask the API server: it is stopped (start_api starts it again)")]
    Stopped,
}

impl Error {
    pub(crate) fn io_error(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

/// An error and its causes in one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("failed to {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
