//! How the program ends: a code for programs, a sentence and the next step for people.

use std::process::ExitCode;

use dogwatch_k8s::{ConnectError, Kind};

/// The codes that `--help` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// Something went wrong.
    Failed = 1,
    /// The command line is wrong. clap ends with the same code.
    Usage = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// No cluster, or none that answers.
    Unreachable = 4,
    /// Not allowed.
    Forbidden = 5,
    /// `check` found something in the way.
    Blocked = 6,
    /// Ended by ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    what: String,
    next: Option<String>,
}

impl Failure {
    /// What went wrong, without a next step.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            next: None,
        }
    }

    /// What to do about it.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The operating system gave us no timer or no poller.
    pub fn runtime(error: &std::io::Error) -> Self {
        Self::new(
            Exit::Failed,
            format!("the runtime could not start: {error}"),
        )
    }

    /// There is no way to the cluster.
    pub fn connect(error: &ConnectError) -> Self {
        let failure = Self::new(Exit::Unreachable, error.in_words());
        match error {
            ConnectError::NoCluster => {
                failure.next("set KUBECONFIG, or start a cluster with `dogwatch demo --serve`")
            }
            ConnectError::Kubeconfig { .. }
            | ConnectError::NoContext(_)
            | ConnectError::ServiceAccount(_)
            | ConnectError::Settings { .. } => failure.next("see what `kubectl config view` says"),
        }
    }

    /// The API server did not do what was asked, or was not there.
    pub fn api(what: &str, server: &str, error: &dogwatch_k8s::Error) -> Self {
        let said = error.in_words();
        match error.kind() {
            Kind::Forbidden => Self::new(Exit::Forbidden, format!("not allowed to {what}: {said}"))
                .next("ask for that right, or take another user with --context"),
            Kind::NotFound => Self::new(Exit::NotFound, format!("failed to {what}: {said}")),
            Kind::Transient => Self::new(
                Exit::Unreachable,
                format!("failed to {what} at {server}: {said}"),
            )
            .next("is the cluster up? `dogwatch demo --serve` starts one to try"),
            Kind::AlreadyExists
            | Kind::Conflict
            | Kind::Gone
            | Kind::Throttled { .. }
            | Kind::Refused => Self::new(Exit::Failed, format!("failed to {what}: {said}")),
        }
    }

    /// The kind RebootPolicy is not installed.
    pub fn no_policies_installed() -> Self {
        Self::new(
            Exit::NotFound,
            "RebootPolicies are not installed in this cluster, so there is nothing to pause",
        )
        .next("dogwatch crds | kubectl apply --server-side -f -")
    }

    /// What was to be printed could not be. A reader that went away (`| head`) is no failure.
    pub fn output(error: &std::io::Error) -> Self {
        let exit = if error.kind() == std::io::ErrorKind::BrokenPipe {
            Exit::Success
        } else {
            Exit::Failed
        };
        Self::new(exit, format!("failed to write the output: {error}"))
    }

    /// Says it, and gives the code.
    pub fn report(self) -> ExitCode {
        if self.exit != Exit::Success {
            eprintln!("dogwatch: {}", self.what);
            if let Some(next) = self.next {
                eprintln!("  → {next}");
            }
        }
        self.exit.into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::output(&error)
    }
}
