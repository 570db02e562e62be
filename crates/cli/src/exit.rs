//! How the program ends: an exit code for programs, a sentence and the next step for people.

use std::process::ExitCode;

use dogwatch_k8s::{ApiErrorKind, ConnectError};

use crate::output;

/// The codes that `--help` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliExitCode {
    Success = 0,
    Failed = 1,
    /// The command line is wrong. clap ends with the same code.
    Usage = 2,
    /// A named object does not exist.
    NotFound = 3,
    /// No cluster is configured, or it does not answer.
    Unreachable = 4,
    Forbidden = 5,
    Blocked = 6,
    Interrupted = 130,
}

impl From<CliExitCode> for ExitCode {
    fn from(exit: CliExitCode) -> Self {
        ExitCode::from(exit as u8)
    }
}

#[derive(Debug)]
pub struct CommandFailure {
    exit: CliExitCode,
    message: String,
    next_step: Option<String>,
}

impl CommandFailure {
    /// `what` says what went wrong, without the next step.
    pub fn new(exit: CliExitCode, what: impl Into<String>) -> Self {
        Self {
            exit,
            message: what.into(),
            next_step: None,
        }
    }

    /// Adds what the person can do about it.
    pub fn with_next_step(mut self, next: impl Into<String>) -> Self {
        self.next_step = Some(next.into());
        self
    }

    /// The async runtime could not be built: the operating system gave no timer or no poller.
    pub fn from_runtime_error(error: &std::io::Error) -> Self {
        Self::new(
            CliExitCode::Failed,
            format!("the async runtime could not start: {error}"),
        )
    }

    /// The client could not be built from the kubeconfig.
    pub fn from_connect_error(error: &ConnectError) -> Self {
        let failure = Self::new(CliExitCode::Unreachable, error.error_chain());
        match error {
            ConnectError::NoCluster => failure
                .with_next_step("set KUBECONFIG, or start a cluster with `dogwatch demo --serve`"),
            ConnectError::Kubeconfig { .. }
            | ConnectError::NoContext(_)
            | ConnectError::ServiceAccount(_)
            | ConnectError::Settings { .. } => {
                failure.with_next_step("check the output of `kubectl config view`")
            }
        }
    }

    /// The API server refused or failed a request, or could not be reached.
    pub fn from_api_error(what: &str, server: &str, error: &dogwatch_k8s::Error) -> Self {
        let said = error.error_chain();
        match error.kind() {
            ApiErrorKind::Forbidden => Self::new(
                CliExitCode::Forbidden,
                format!("not allowed to {what}: {said}"),
            )
            .with_next_step("ask for that right, or use another user with --context"),
            ApiErrorKind::NotFound => {
                Self::new(CliExitCode::NotFound, format!("failed to {what}: {said}"))
            }
            ApiErrorKind::Transient => Self::new(
                CliExitCode::Unreachable,
                format!("failed to {what} at {server}: {said}"),
            )
            .with_next_step("check that the cluster is running; `dogwatch demo --serve` starts a cluster to try Dogwatch"),
            ApiErrorKind::AlreadyExists
            | ApiErrorKind::Conflict
            | ApiErrorKind::Gone
            | ApiErrorKind::Throttled { .. }
            | ApiErrorKind::Refused => {
                Self::new(CliExitCode::Failed, format!("failed to {what}: {said}"))
            }
        }
    }

    pub fn no_policies_installed() -> Self {
        Self::new(
            CliExitCode::NotFound,
            "RebootPolicies are not installed in this cluster, so there is nothing to pause",
        )
        .with_next_step("dogwatch crds | kubectl apply --server-side -f -")
    }

    /// Output could not be written. A reader that went away (`| head`) is no failure.
    pub fn from_output_error(error: &std::io::Error) -> Self {
        let exit = if error.kind() == std::io::ErrorKind::BrokenPipe {
            CliExitCode::Success
        } else {
            CliExitCode::Failed
        };
        Self::new(exit, format!("failed to write the output: {error}"))
    }

    /// What went wrong, and what the person can do about it.
    pub fn to_text(&self) -> String {
        match &self.next_step {
            Some(next) => format!("dogwatch: {}\n  → {next}", self.message),
            None => format!("dogwatch: {}", self.message),
        }
    }

    pub fn exit_code(&self) -> CliExitCode {
        self.exit
    }

    /// Prints the failure to standard error and returns its exit code.
    pub fn print_and_exit_code(self) -> ExitCode {
        if self.exit != CliExitCode::Success {
            output::print_warning(&self.to_text());
        }
        self.exit.into()
    }
}

impl From<std::io::Error> for CommandFailure {
    fn from(error: std::io::Error) -> Self {
        Self::from_output_error(&error)
    }
}
