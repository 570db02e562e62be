//! Runs the command lines of the page in this process.

use clap::Parser as _;
use dogwatch_k8s::ClusterConnection;
use dogwatch_k8s::admission::read_own_user;
use dogwatch_web::{
    CommandOutcome, CommandOutput, CommandRights, CommandRunner, DashboardCommand, ViewerToken,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::args::{Args, ClusterArgs, GivenConnection};
use crate::command::{self, DogwatchCommand};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::CapturedOutput;

/// Parses the words as a shell's, and runs the same code.
pub struct InProcessRunner {
    pub cluster: ClusterArgs,
}

impl CommandRunner for InProcessRunner {
    fn run_command(
        &self,
        command: DashboardCommand,
        rights: CommandRights,
    ) -> BoxFuture<'static, CommandOutput> {
        run_with_rights(self.cluster.clone(), command, rights).boxed()
    }
}

async fn run_with_rights(
    mut cluster: ClusterArgs,
    command: DashboardCommand,
    rights: CommandRights,
) -> CommandOutput {
    let captured = CapturedOutput::default();
    let mut words = command.to_words();
    let run = async {
        if let CommandRights::Viewer(token) = &rights {
            let connection = connect_as_viewer(&cluster, token).await?;
            words.extend(requester_word(&command, &connection).await);
            cluster.given_connection = Some(GivenConnection(connection));
        }
        run_words(&cluster, &words).await
    };
    let done = Box::pin(captured.capture(run)).await;
    let mut text = captured.to_text();
    let outcome = match done {
        Ok(()) => CommandOutcome::Succeeded,
        Err(failure) => {
            text.push_str(&failure.to_text());
            text.push('\n');
            outcome_of(failure.exit_code())
        }
    };
    CommandOutput { outcome, text }
}

async fn connect_as_viewer(
    cluster: &ClusterArgs,
    token: &ViewerToken,
) -> Result<ClusterConnection, CommandFailure> {
    let connection =
        dogwatch_k8s::connect_with_token(cluster.context.as_deref(), token.reveal_secret()).await;
    connection.map_err(|error| CommandFailure::from_connect_error(&error))
}

/// Requests name who asked: the token's owner, and not the user of this process.
async fn requester_word(
    command: &DashboardCommand,
    connection: &ClusterConnection,
) -> Option<String> {
    match command {
        DashboardCommand::Reboot { .. }
        | DashboardCommand::Hold { .. }
        | DashboardCommand::Abort { .. } => {}
        DashboardCommand::Explain { .. }
        | DashboardCommand::Check { .. }
        | DashboardCommand::Release { .. }
        | DashboardCommand::Pause { .. }
        | DashboardCommand::Resume { .. } => return None,
    }
    // Who cannot be named cannot do anything either, and the command says why.
    let user = read_own_user(&connection.client).await.ok().flatten()?;
    Some(format!("--requester={user}"))
}

async fn run_words(cluster: &ClusterArgs, words: &[String]) -> Result<(), CommandFailure> {
    let program = std::iter::once("dogwatch");
    let parsed = Args::try_parse_from(program.chain(words.iter().map(String::as_str)));
    let parsed = parsed.map_err(|error| {
        CommandFailure::new(CliExitCode::Usage, error.to_string().trim().to_owned())
    })?;
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the words come from DashboardCommand; a new command gets no button by itself"
    )]
    match &parsed.command {
        DogwatchCommand::Explain(args) => command::explain::run(cluster, args).await,
        DogwatchCommand::Check(args) => command::check::check_nodes(cluster, args).await,
        DogwatchCommand::Reboot(args) => command::reboot::run(cluster, args).await,
        DogwatchCommand::Hold(args) => command::hold::run(cluster, args).await,
        DogwatchCommand::Release(args) => command::hold::release::run(cluster, args).await,
        DogwatchCommand::Abort(args) => command::abort::run(cluster, args).await,
        DogwatchCommand::Pause(args) => command::pause::run(cluster, args).await,
        DogwatchCommand::Resume(args) => command::pause::resume::run(cluster, args).await,
        other => {
            let text = format!("the dashboard does not run {other:?}");
            Err(CommandFailure::new(CliExitCode::Usage, text))
        }
    }
}

fn outcome_of(exit: CliExitCode) -> CommandOutcome {
    match exit {
        CliExitCode::Success => CommandOutcome::Succeeded,
        CliExitCode::NotFound => CommandOutcome::NotFound,
        CliExitCode::Unreachable => CommandOutcome::Unreachable,
        CliExitCode::Forbidden => CommandOutcome::Forbidden,
        CliExitCode::Blocked => CommandOutcome::Blocked,
        CliExitCode::Failed | CliExitCode::Usage | CliExitCode::Interrupted => {
            CommandOutcome::Failed
        }
    }
}
