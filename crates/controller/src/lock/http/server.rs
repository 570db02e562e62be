//! The listeners: they accept connections and shut down in order.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_runtime::connections::{self, ConnectionTable};
use dogwatch_runtime::open_files::raise_open_file_limit;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::auth::{LockAccess, LockAccessGuard};
use super::config::{LockApiConfig, LockApiLimits, LockApiStartError, LockAuthMode, TlsFiles};
use super::connection::{self, ListenerContext};
use super::request_metrics::{LockProtocol, RequestMetrics};
use super::tls::ReloadingTls;
use super::unauthenticated_limit::UnauthenticatedLimit;
use super::waiter_limit::{LockApiState, Shutdown};
use super::{fleetlock, lock_api};
use crate::lock::service::LockService;

/// After a failed accept (no file descriptors left, say), so that the loop does not spin.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Connections to accept before those already accepted are read: far fewer than one peer may have
/// idle, so that none is closed for the next one before it was read. Accepting them one by one
/// overflows the kernel's queue when 2,000 hosts come at once.
const MAX_ACCEPTS_BEFORE_YIELD: usize = 32;

/// From the last answers to the end of the last connection.
const LAST_WRITES_TIMEOUT: Duration = Duration::from_secs(3);

pub struct LockApiDeps {
    pub service: Arc<dyn LockService>,
    /// Not asked with `--lock-auth none`.
    pub access: Arc<dyn LockAccess>,
    pub record: Arc<dyn RequestMetrics>,
}

/// A server that has its sockets and has read its certificates.
pub struct LockApiServer {
    listeners: Vec<(TcpListener, SocketAddr, Arc<ListenerContext>)>,
    limits: Arc<LockApiLimits>,
    end: tokio::sync::watch::Sender<bool>,
}

impl LockApiServer {
    /// Refuses an unsafe configuration, reads the certificates, binds the sockets.
    pub async fn bind(
        config: LockApiConfig,
        parts: LockApiDeps,
    ) -> Result<Self, LockApiStartError> {
        config.check_exposure()?;
        let limits = Arc::new(config.limits);
        let (end, ending) = Shutdown::channel();
        let app = Arc::new(LockApiState::new(
            LockAccessGuard::new(config.auth, parts.access),
            Arc::clone(&limits),
            (config.fleetlock_groups.clone(), config.fleetlock_drain),
            parts.service,
            Arc::clone(&parts.record),
            ending.clone(),
        ));
        let door = |protocol, router, tls| {
            Arc::new(ListenerContext {
                protocol,
                router,
                record: Arc::clone(&parts.record),
                limits: Arc::clone(&limits),
                tls,
                handshakes: Semaphore::new(limits.handshakes),
                // FleetLock callers are never authenticated.
                strangers: (protocol == LockProtocol::Api)
                    .then(|| UnauthenticatedLimit::new(limits.strangers)),
                ending: ending.clone(),
            })
        };
        let files = config.tls.as_ref();
        let tls = read_tls(files, config.auth == LockAuthMode::Kubernetes)?;
        let api = door(
            LockProtocol::Api,
            lock_api::lock_api_router(Arc::clone(&app)),
            tls,
        );
        let mut listeners = vec![bind_listener("--lock-listen", config.listen, api).await?];
        if let Some(address) = config.fleetlock {
            if config.fleetlock_groups.allows_any_group() {
                tracing::warn!(
                    "--fleetlock-groups contains *: every client that reaches FleetLock can create Leases for any group, and Dogwatch never deletes them"
                );
            }
            let door = door(
                LockProtocol::FleetLock,
                fleetlock::fleetlock_router(app),
                read_tls(files, false)?,
            );
            listeners.push(bind_listener("--fleetlock-listen", address, door).await?);
        }
        raise_open_file_limit(limits.connections * listeners.len());
        Ok(Self {
            listeners,
            limits,
            end,
        })
    }

    /// The address of a protocol, with the port that was found for port 0.
    pub fn address_of(&self, protocol: LockProtocol) -> Option<SocketAddr> {
        let mut all = self.listeners.iter();
        all.find(|(_, _, door)| door.protocol == protocol)
            .map(|(_, address, _)| *address)
    }

    /// Serves until `shutdown` is ready, and then for up to 18 s more: the lock answers waiting
    /// requests (it should receive the shutdown too), or they are dropped after
    /// [`LockApiLimits::shutdown_grace`].
    pub async fn serve_until(self, shutdown: impl Future<Output = ()> + Send) {
        let mut tasks = JoinSet::new();
        let mut rereaders = JoinSet::new();
        for (listener, address, door) in self.listeners {
            tracing::info!(protocol = door.protocol.as_str(), %address, tls = door.tls.is_some(), "serves the lock API");
            rereaders.spawn(reload_certificates(Arc::clone(&door)));
            tasks.spawn(accept_connections(listener, door));
        }
        shutdown.await;
        // The receivers are gone only when the tasks have ended, which is later.
        self.end.send_replace(true);
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(self.limits.shutdown_grace + LAST_WRITES_TIMEOUT, all)
            .await
            .is_err()
        {
            tracing::warn!("some clients did not read their last answer in time");
        }
    }
}

fn read_tls(
    files: Option<&TlsFiles>,
    authenticate: bool,
) -> Result<Option<ReloadingTls>, LockApiStartError> {
    let tls = files.map(|files| ReloadingTls::read_files(files, authenticate));
    Ok(tls.transpose()?)
}

async fn bind_listener(
    flag: &'static str,
    address: SocketAddr,
    door: Arc<ListenerContext>,
) -> Result<(TcpListener, SocketAddr, Arc<ListenerContext>), LockApiStartError> {
    let failed = |source| LockApiStartError::Bind {
        flag,
        address,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    // A backlog for all clients at once: a client that the kernel refuses retries a second later,
    // or never.
    let most = i32::try_from(door.limits.connections).unwrap_or(i32::MAX);
    rustix::net::listen(&listener, most).map_err(|error| failed(error.into()))?;
    let found = listener.local_addr().map_err(failed)?;
    Ok((listener, found, door))
}

async fn accept_connections(listener: TcpListener, door: Arc<ListenerContext>) {
    let places = ConnectionTable::new(connections::ConnectionLimits {
        connections: door.limits.connections,
        idle_per_peer: door.limits.idle_per_peer,
    });
    let mut connections = JoinSet::new();
    let mut newcomers = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            () = door.ending.wait_for_shutdown() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                if let Some(place) = places.admit_peer(peer.ip()) {
                    connections.spawn(connection::serve_connection(
                        stream,
                        peer,
                        place,
                        Arc::clone(&door),
                    ));
                }
                newcomers += 1;
                if newcomers % MAX_ACCEPTS_BEFORE_YIELD == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Reloads changed certificates; keeps the old ones while the new ones are invalid.
async fn reload_certificates(door: Arc<ListenerContext>) {
    let mut told = String::new();
    loop {
        tokio::time::sleep(door.limits.reread).await;
        let reader = Arc::clone(&door);
        let read = tokio::task::spawn_blocking(move || {
            let tls = reader.tls.as_ref();
            tls.map_or(Ok(false), ReloadingTls::reload_if_changed)
        });
        match read.await {
            Ok(Ok(true)) => {
                told.clear();
                tracing::info!("the certificates have changed; the new ones are in use");
            }
            Ok(Ok(false)) => told.clear(),
            Ok(Err(error)) => {
                let error = dogwatch_k8s::error::error_chain(&error);
                if error != told {
                    tracing::warn!(
                        error,
                        "the changed certificates are invalid; the old ones stay in use"
                    );
                    told = error;
                }
            }
            // The process ends, or the read panicked, which another try would not cure.
            Err(_) => return,
        }
    }
}
