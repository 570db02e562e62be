//! What can go wrong on the way to a running control plane.

use std::{io, path::PathBuf};

/// Why the control plane, or something asked of it, did not come about. Each text says what to do where that is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no Go to build with.
    #[error(
        "find `go`, which builds {program}: install Go 1.26 or newer (on Debian: apt-get install \
         golang-go); the control plane's programs are also taken from a folder that KUBEBUILDER_ASSETS names"
    )]
    NoGo {
        /// The program that was to be built.
        program: &'static str,
    },
    /// Neither `DOGWATCH_CACHE` nor `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("find a cache folder: set DOGWATCH_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// `go build` failed.
    #[error("build {program}: go ended with {status}:\n{output}")]
    Build {
        /// The program that was to be built.
        program: &'static str,
        /// How `go` ended.
        status: std::process::ExitStatus,
        /// What `go` printed.
        output: String,
    },
    /// Something could not be installed.
    #[error("install {what}: {command} ended with {status}:\n{output}")]
    Install {
        /// What was to be installed.
        what: &'static str,
        /// What was run.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it printed.
        output: String,
    },
    /// A file or a process could not be had.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No loopback port was free.
    #[error("find a free loopback port")]
    NoPort,
    /// Keys or certificates could not be made.
    #[error("make the control plane's keys")]
    Keys(#[from] rcgen::Error),
    /// A part ended by itself.
    #[error("keep {program} running: it ended with {status}; the end of its log:\n{log}")]
    Died {
        /// Which part.
        program: &'static str,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// A part did not become ready in time.
    #[error(
        "see the control plane ready within {seconds} s; last answer: {last}; the end of its log:\n{log}"
    )]
    NotReady {
        /// How long was waited.
        seconds: u64,
        /// The last answer.
        last: String,
        /// The last lines of its log.
        log: String,
    },
    /// kubectl said no.
    #[error("run kubectl {arguments}: {stderr}")]
    Kubectl {
        /// Its arguments.
        arguments: String,
        /// What it printed on standard error.
        stderr: String,
    },
    /// A line of the audit log is not what it should be.
    #[error("read the audit log")]
    Audit(#[from] serde_json::Error),
    /// The audit log does not show a request that was answered.
    #[error("see the marker request in the audit log within {seconds} s")]
    AuditSilent {
        /// How long was waited.
        seconds: u64,
    },
    /// Something is asked of an API server that is stopped.
    #[error("ask the API server: it is stopped (start_api starts it again)")]
    Stopped,
}

impl Error {
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("failed to {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
