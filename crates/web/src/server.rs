//! The listener.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_runtime::connections::{ConnectionLimits, ConnectionTable};
use dogwatch_runtime::open_files::raise_open_file_limit;
use dogwatch_runtime::stop::{StopSignal, StopTrigger};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::access::{DashboardAccess, HostNames};
use crate::command::CommandRunner;
use crate::connection::serve_connection;
use crate::feed::{ViewReceiver, start_encoding};
use crate::routes::DashboardState;
use crate::session::{LinkSession, SessionSecret};

/// After a failed accept (no file descriptors left, say), so that the loop does not spin.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Connections beside the streams: those over which pages and answers come.
const OTHER_CONNECTIONS: usize = 64;

/// A browser opens six at most.
const MAX_IDLE_PER_PEER: usize = 24;

/// From the stop to the end of the last connection.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DashboardLimits {
    /// Open streams of all viewers.
    pub streams: usize,
    /// The shortest time between two views. Source: specification §12.1, "at most once a second".
    pub update_interval: Duration,
    /// Commands that run at once: `explain` and `check` list all Nodes.
    pub commands: usize,
    /// How long a client may take for its header or its body, and stay silent between requests.
    pub read_timeout: Duration,
    /// How long a client may take to read one answer, or one event of a stream.
    pub write_timeout: Duration,
    pub command_timeout: Duration,
}

impl Default for DashboardLimits {
    fn default() -> Self {
        Self {
            streams: 1_000,
            update_interval: Duration::from_secs(1),
            commands: 4,
            read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            command_timeout: Duration::from_mins(1),
        }
    }
}

pub struct DashboardConfig {
    pub listen: SocketAddr,
    pub access: DashboardAccess,
    /// By which names the server is reached.
    pub hosts: HostNames,
    /// How a command line begins that reaches the same cluster: `dogwatch --context east`.
    pub command_prefix: Vec<String>,
    pub limits: DashboardLimits,
}

/// Why the dashboard cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DashboardError {
    #[error(
        "cannot listen on {0}: the port is in use: choose another port, or 0 for any free port"
    )]
    PortInUse(SocketAddr),
    #[error("cannot listen on {0}: choose an address of this host")]
    Bind(SocketAddr, #[source] io::Error),
    #[error("cannot make the secret of the link from /dev/urandom")]
    Secret(#[source] io::Error),
}

/// A server that has its socket.
pub struct DashboardServer {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<DashboardState>,
    stop: StopTrigger,
    stopped: StopSignal,
}

impl DashboardServer {
    pub async fn bind(
        config: DashboardConfig,
        views: ViewReceiver,
        commands: Arc<dyn CommandRunner>,
    ) -> Result<Self, DashboardError> {
        let listen = config.listen;
        let failed = |error: io::Error| {
            if error.kind() == io::ErrorKind::AddrInUse {
                DashboardError::PortInUse(listen)
            } else {
                DashboardError::Bind(listen, error)
            }
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        raise_open_file_limit(config.limits.streams + OTHER_CONNECTIONS);
        let link = match config.access {
            DashboardAccess::OneTimeLink | DashboardAccess::DemoLink => {
                Some(LinkSession::generate().map_err(DashboardError::Secret)?)
            }
            DashboardAccess::ReadOnly => None,
        };
        let process = SessionSecret::generate().map_err(DashboardError::Secret)?;
        let process = process.reveal()[..8].to_owned();
        let interval = config.limits.update_interval;
        let encoded = start_encoding(views, process, interval);
        let (stop, stopped) = StopSignal::new();
        let state = Arc::new(DashboardState {
            link,
            rights: config.access.describe_rights(),
            cookie: format!("dogwatch-{}", address.port()),
            hosts: config.hosts,
            command_prefix: config.command_prefix,
            encoded,
            commands,
            streams: Arc::new(Semaphore::new(config.limits.streams)),
            running: Arc::new(Semaphore::new(config.limits.commands)),
            limits: config.limits,
            stop: stopped.clone(),
        });
        Ok(Self {
            listener,
            address,
            state,
            stop,
            stopped,
        })
    }

    /// The address, with the port that was found for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a person opens. It works once if it has a token.
    pub fn opening_url(&self) -> String {
        let address = self.address;
        match &self.state.link {
            Some(link) => format!("http://{address}/?token={}", link.link_token()),
            None => format!("http://{address}/"),
        }
    }

    /// Serves until `stop` is ready; open streams then end at once.
    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        tokio::select! {
            biased;
            () = stop => {}
            () = accept_connections(&self.listener, &self.state, &mut connections) => {}
        }
        self.stop.signal_stop();
        drop(self.listener);
        let all = async { while connections.join_next().await.is_some() {} };
        // What does not end by itself is aborted with its task.
        let _ = tokio::time::timeout(FINISH_TIMEOUT, all).await;
        drop(self.stopped);
    }
}

/// Never returns.
async fn accept_connections(
    listener: &TcpListener,
    state: &Arc<DashboardState>,
    connections: &mut JoinSet<()>,
) {
    let table = ConnectionTable::new(ConnectionLimits {
        connections: state.limits.streams + OTHER_CONNECTIONS,
        idle_per_peer: MAX_IDLE_PER_PEER,
    });
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(slot) = table.admit_peer(peer.ip()) {
                    connections.spawn(serve_connection(stream, slot, Arc::clone(state)));
                }
                // The new connection reads its request before the next one can take its place.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}
