//! Implements `dogwatch top`: the fleet's view on a terminal, with keys.

mod ansi;
mod commands;
mod keyboard;
mod terminal;

pub use terminal::require_terminal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::report::FleetView;
use dogwatch_top::{TopAction, TopState, draw_top, press_key};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use self::commands::TopCommandRunner;
use self::keyboard::KeyParser;
use self::terminal::TopTerminal;
use crate::args::{ClusterArgs, NAMESPACE_VARIABLE};
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::fleet_feed::{FleetFeed, rollout_estimator};

/// How often ages and deadlines are drawn anew.
const AGE_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct TopArgs {}

pub async fn run(cluster: &ClusterArgs, _args: &TopArgs) -> Result<(), CommandFailure> {
    require_terminal()?;
    let connected = ConnectedCluster::connect_to(cluster).await?;
    // Without a cluster, a sentence and an exit code say more than an empty screen.
    let names = connected.fleet.list_node_names(None).await;
    names.map_err(|error| connected.api_failure("list Nodes", &error))?;
    let feed = FleetFeed::start(&connected.fleet, Some(rollout_estimator()));
    let session = TopSession {
        views: feed.subscribe(),
        cluster_flags: cluster_flags(cluster),
        environment: vec![(NAMESPACE_VARIABLE, PathBuf::from(&cluster.namespace))],
    };
    session.run_until_quit().await
}

/// The flags that choose the same cluster again.
fn cluster_flags(cluster: &ClusterArgs) -> Vec<String> {
    let mut flags = Vec::new();
    if let Some(context) = &cluster.context {
        flags.extend(["--context".to_owned(), context.clone()]);
    }
    if cluster.namespace_given {
        flags.extend(["--namespace".to_owned(), cluster.namespace.clone()]);
    }
    flags
}

/// What a terminal shows, and how commands reach the same cluster.
pub struct TopSession {
    pub views: watch::Receiver<Arc<FleetView>>,
    pub cluster_flags: Vec<String>,
    /// Variables for the commands that keys run.
    pub environment: Vec<(&'static str, PathBuf)>,
}

impl TopSession {
    /// Returns after `q`, Ctrl-C, SIGTERM or SIGHUP; the terminal is then as it was before.
    pub async fn run_until_quit(mut self) -> Result<(), CommandFailure> {
        let mut signals = EndSignals::listen_for_signals()?;
        let mut resized = listen_for_signal(SignalKind::window_change())?;
        let mut terminal = TopTerminal::open_terminal()?;
        let mut state = TopState::new(program_name(), terminal.read_size()?);
        state.cluster_flags = std::mem::take(&mut self.cluster_flags);
        let mut commands = TopCommandRunner::new(self.environment);
        let mut parser = KeyParser::default();
        let mut refresh = tokio::time::interval(AGE_REFRESH_INTERVAL);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut view = self.views.borrow_and_update().clone();
        loop {
            terminal.show_buffer(draw_top(&view, &state, current_time().wall))?;
            tokio::select! {
                // On a machine that is short of time, keys go before ages and views.
                biased;
                () = signals.wait_for_end() => return Ok(()),
                bytes = terminal.read_input() => {
                    // The terminal has gone, and with it whoever looked at it.
                    let Ok(bytes) = bytes else { return Ok(()) };
                    for key in parser.parse_bytes(&bytes) {
                        let (next, action) = press_key(state, key, &view);
                        state = next;
                        match action {
                            TopAction::Redraw => {}
                            TopAction::Quit => return Ok(()),
                            TopAction::Run { title, words } => commands.start_command(title, words),
                        }
                    }
                }
                Ok(()) = self.views.changed() => {
                    view = self.views.borrow_and_update().clone();
                    state.follow_view(&view);
                }
                Some((title, lines)) = commands.next_output() => state.show_output(&title, lines),
                _ = resized.recv() => {
                    state.size = terminal.read_size()?;
                    terminal.forget_screen();
                }
                _ = refresh.tick() => {}
            }
        }
    }
}

/// As the person called it.
fn program_name() -> &'static str {
    let called = std::env::args_os().next();
    let called = called.as_deref().map(std::path::Path::new);
    match called.and_then(|path| path.file_stem()) {
        Some(name) if name == "kubectl-dogwatch" => "kubectl dogwatch",
        Some(_) | None => "dogwatch",
    }
}

fn listen_for_signal(kind: SignalKind) -> Result<Signal, CommandFailure> {
    signal(kind).map_err(|error| {
        let text = format!("failed to listen for signals: {error}");
        CommandFailure::new(CliExitCode::Failed, text)
    })
}

/// What ends the program from outside; in raw mode, Ctrl-C is a key.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl EndSignals {
    fn listen_for_signals() -> Result<Self, CommandFailure> {
        Ok(Self {
            interrupt: listen_for_signal(SignalKind::interrupt())?,
            terminate: listen_for_signal(SignalKind::terminate())?,
            hangup: listen_for_signal(SignalKind::hangup())?,
        })
    }

    async fn wait_for_end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
