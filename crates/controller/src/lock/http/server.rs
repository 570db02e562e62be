//! The listeners: who gets in, and how it all ends.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_process::connections::{self, Connections};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::auth::{Access, Guard};
use super::config::{Config, Limits, LockAuth, StartError, TlsFiles};
use super::connection::{self, Door};
use super::record::{Protocol, Record};
use super::strangers::Strangers;
use super::tls::Tls;
use super::waiting::{App, Ending};
use super::{fleetlock, lock_api};
use crate::lock::service::LockService;

/// After a failed accept (no file descriptors left, say), so that it does not spin.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Connections that are accepted before those who have come are read: far fewer than one peer may have idle, so
/// that none is closed for the next one before it was read. One by one the kernel's queue overflows when 2,000
/// hosts come at once.
const AT_ONCE: usize = 32;

/// From the last answers to the end of the last connection.
const LAST_WRITES: Duration = Duration::from_secs(3);

/// Descriptors for everything else in the process.
const OTHER_FILES: u64 = 1_024;

/// What the protocols need of the rest of the program.
pub struct Parts {
    /// The lock.
    pub service: Arc<dyn LockService>,
    /// Who may use the lock API; not asked with `--lock-auth none`.
    pub access: Arc<dyn Access>,
    /// What counts requests.
    pub record: Arc<dyn Record>,
}

/// A server that has its sockets and has read its certificates.
pub struct Server {
    listeners: Vec<(TcpListener, SocketAddr, Arc<Door>)>,
    limits: Arc<Limits>,
    end: tokio::sync::watch::Sender<bool>,
}

impl Server {
    /// Refuses an unsafe configuration, reads the certificates, takes the sockets.
    pub async fn bind(config: Config, parts: Parts) -> Result<Self, StartError> {
        config.check()?;
        let limits = Arc::new(config.limits);
        let (end, ending) = Ending::channel();
        let app = Arc::new(App::new(
            Guard::new(config.auth, parts.access),
            Arc::clone(&limits),
            (config.fleetlock_groups.clone(), config.fleetlock_drain),
            parts.service,
            Arc::clone(&parts.record),
            ending.clone(),
        ));
        let door = |protocol, router, tls| {
            Arc::new(Door {
                protocol,
                router,
                record: Arc::clone(&parts.record),
                limits: Arc::clone(&limits),
                tls,
                handshakes: Semaphore::new(limits.handshakes),
                // Nobody is ever known to FleetLock.
                strangers: (protocol == Protocol::Api).then(|| Strangers::new(limits.strangers)),
                ending: ending.clone(),
            })
        };
        let files = config.tls.as_ref();
        let tls = read(files, config.auth == LockAuth::Kubernetes)?;
        let api = door(Protocol::Api, lock_api::router(Arc::clone(&app)), tls);
        let mut listeners = vec![listen("--lock-listen", config.listen, api).await?];
        if let Some(address) = config.fleetlock {
            if config.fleetlock_groups.is_any() {
                tracing::warn!(
                    "--fleetlock-groups has *: whoever reaches FleetLock can make Leases for any group, and nobody deletes them"
                );
            }
            let door = door(
                Protocol::FleetLock,
                fleetlock::router(app),
                read(files, false)?,
            );
            listeners.push(listen("--fleetlock-listen", address, door).await?);
        }
        open_more_files(&limits, listeners.len());
        Ok(Self {
            listeners,
            limits,
            end,
        })
    }

    /// Where a protocol is served: the port that was found for port 0.
    pub fn address(&self, protocol: Protocol) -> Option<SocketAddr> {
        let mut all = self.listeners.iter();
        all.find(|(_, _, door)| door.protocol == protocol)
            .map(|(_, address, _)| *address)
    }

    /// Serves until `shutdown` is ready, and then for up to 18 s more: waiting calls are answered by the lock
    /// (which should hear of the shutdown too), or dropped after [`Limits::last_call`].
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let mut tasks = JoinSet::new();
        let mut rereaders = JoinSet::new();
        for (listener, address, door) in self.listeners {
            tracing::info!(protocol = door.protocol.as_str(), %address, tls = door.tls.is_some(), "the lock is served");
            rereaders.spawn(reread(Arc::clone(&door)));
            tasks.spawn(accept(listener, door));
        }
        shutdown.await;
        // Nobody listens any more only when the tasks are gone, which is after this.
        self.end.send_replace(true);
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(self.limits.last_call + LAST_WRITES, all)
            .await
            .is_err()
        {
            tracing::warn!("some clients did not take their last answer in time");
        }
    }
}

fn read(files: Option<&TlsFiles>, authenticate: bool) -> Result<Option<Tls>, StartError> {
    let tls = files.map(|files| Tls::read(files, authenticate));
    Ok(tls.transpose()?)
}

async fn listen(
    flag: &'static str,
    address: SocketAddr,
    door: Arc<Door>,
) -> Result<(TcpListener, SocketAddr, Arc<Door>), StartError> {
    let failed = |source| StartError::Bind {
        flag,
        address,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    // Room for everybody who comes at once: whom the kernel turns away comes again a second later, or never.
    let most = i32::try_from(door.limits.connections).unwrap_or(i32::MAX);
    rustix::net::listen(&listener, most).map_err(|error| failed(error.into()))?;
    let found = listener.local_addr().map_err(failed)?;
    Ok((listener, found, door))
}

/// Each connection needs a descriptor, and 1,024 is what many hosts give unless asked.
fn open_more_files(limits: &Limits, listeners: usize) {
    let wanted = (limits.connections * listeners) as u64 + OTHER_FILES;
    let now = getrlimit(Resource::Nofile);
    let Some(current) = now.current.filter(|current| *current < wanted) else {
        return;
    };
    let possible = now.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let more = Rlimit {
        current: Some(possible),
        maximum: now.maximum,
    };
    if setrlimit(Resource::Nofile, more).is_err() || possible < wanted {
        tracing::warn!(
            current,
            possible,
            wanted,
            "few files may be open: that many clients cannot be served at once"
        );
    }
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    let places = Connections::new(connections::Limits {
        connections: door.limits.connections,
        idle_per_peer: door.limits.idle_per_peer,
    });
    let mut connections = JoinSet::new();
    let mut newcomers = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            () = door.ending.begun() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                if let Some(place) = places.enter(peer.ip()) {
                    connections.spawn(connection::run(stream, peer, place, Arc::clone(&door)));
                }
                newcomers += 1;
                if newcomers % AT_ONCE == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Takes changed certificates; keeps the old ones while the new are of no use.
async fn reread(door: Arc<Door>) {
    let mut told = String::new();
    loop {
        tokio::time::sleep(door.limits.reread).await;
        let reader = Arc::clone(&door);
        let read = tokio::task::spawn_blocking(move || {
            let tls = reader.tls.as_ref();
            tls.map_or(Ok(false), Tls::reread)
        });
        match read.await {
            Ok(Ok(true)) => {
                told.clear();
                tracing::info!("the certificates have changed and are in use");
            }
            Ok(Ok(false)) => told.clear(),
            Ok(Err(error)) => {
                let error = dogwatch_k8s::error::in_words(&error);
                if error != told {
                    tracing::warn!(
                        error,
                        "the changed certificates are of no use: the old ones stay"
                    );
                    told = error;
                }
            }
            // The process ends, or reading panicked: then there is nothing that would go better again.
            Err(_) => return,
        }
    }
}
