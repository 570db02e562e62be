//! The configuration of the two listeners, and the checks that refuse an unsafe one.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;

use super::tls::TlsError;

/// The audience of the lock API's tokens without `--lock-audience`.
pub const DEFAULT_LOCK_AUDIENCE: &str = "dogwatch";

#[derive(Debug, Clone)]
pub struct LockApiConfig {
    /// The lock API's address (`--lock-listen`).
    pub listen: SocketAddr,
    /// Who may use the lock API (`--lock-auth`).
    pub auth: LockAuthMode,
    /// The audiences that a token may be made for (`--lock-audience`).
    pub audiences: Vec<String>,
    /// Certificates for both listeners (`--lock-tls-cert`, …). Without them both listen on loopback
    /// only.
    pub tls: Option<TlsFiles>,
    /// FleetLock's address (`--fleetlock-listen`), if it is served.
    pub fleetlock: Option<SocketAddr>,
    /// The groups that FleetLock's clients may lock (`--fleetlock-groups`).
    pub fleetlock_groups: FleetlockGroups,
    /// Whether the engine drains for FleetLock (`--fleetlock-drain`). Then its requests do not wait
    /// for the lock, see [`LockApiLimits::fleetlock_wait`].
    pub fleetlock_drain: bool,
    pub limits: LockApiLimits,
}

impl LockApiConfig {
    /// The lock API without FleetLock, with the default limits.
    pub fn new(listen: SocketAddr, auth: LockAuthMode) -> Self {
        Self {
            listen,
            auth,
            audiences: vec![DEFAULT_LOCK_AUDIENCE.to_owned()],
            tls: None,
            fleetlock: None,
            fleetlock_groups: FleetlockGroups::default(),
            fleetlock_drain: false,
            limits: LockApiLimits::default(),
        }
    }

    /// Refuses a configuration in which unchecked callers could drain nodes, or tokens could be
    /// read on the wire.
    pub fn check_exposure(&self) -> Result<(), LockApiStartError> {
        if self.auth == LockAuthMode::None && !self.listen.ip().is_loopback() {
            return Err(LockApiStartError::OpenToAll(self.listen));
        }
        if let Some(address) = self.fleetlock
            && self.fleetlock_groups.is_empty()
        {
            return Err(LockApiStartError::NoGroups(address));
        }
        let listeners = [
            ("--lock-listen", Some(self.listen)),
            ("--fleetlock-listen", self.fleetlock),
        ];
        for (flag, address) in listeners {
            if let Some(address) = address.filter(|address| !address.ip().is_loopback())
                && self.tls.is_none()
            {
                return Err(LockApiStartError::InTheClear { flag, address });
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAuthMode {
    /// Callers whom the API server knows and allows verb `lock` on `rebootlocks.dogwatch.dev`.
    Kubernetes,
    /// Everybody who can connect: on loopback only.
    None,
}

/// PEM files; read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and the intermediate certificates up to its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities of client certificates, if such are accepted.
    pub client_authority: Option<PathBuf>,
}

impl TlsFiles {
    /// From `--lock-tls-cert`, `--lock-tls-key` and `--lock-client-ca`.
    pub fn from_flags(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        client_authority: Option<PathBuf>,
    ) -> Result<Option<Self>, LockApiStartError> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Self {
                certificate,
                key,
                client_authority,
            })),
            (None, None) if client_authority.is_none() => Ok(None),
            (None, None) => Err(LockApiStartError::AuthorityAlone),
            (Some(_), None) => Err(LockApiStartError::HalfTls("--lock-tls-key")),
            (None, Some(_)) => Err(LockApiStartError::HalfTls("--lock-tls-cert")),
        }
    }
}

/// Source: specification §2.7 and §6.
#[derive(Debug, Clone)]
pub struct LockApiLimits {
    /// From the first byte of a request to the end of its header; also for a TLS handshake.
    pub header: Duration,
    /// From the end of the header to the end of the body: some 30 bytes come at once or not at all.
    pub body: Duration,
    /// For a connection without a request.
    pub idle: Duration,
    pub body_bytes: usize,
    /// Requests for the lock under way, of both protocols together.
    pub waiters: usize,
    /// FleetLock's share of `waiters`: nobody checks its callers, and they must not take all
    /// places.
    pub fleetlock_waiters: usize,
    /// From the signal to end until requests that still wait are dropped. The lock answers them
    /// earlier, once it has released unanswered locks. 3 s more are left for writing: 18 s in all,
    /// less than [`FINISH_TIMEOUT`](crate::run::FINISH_TIMEOUT).
    pub shutdown_grace: Duration,
    /// Open connections of one listener: as many for others as for waiters. The oldest idle one is
    /// closed for a new one.
    pub connections: usize,
    /// Connections of one peer on which no authorized request waits. The peer's oldest is closed
    /// for a newer one. The limit is generous, because all hosts may come through one proxy.
    pub idle_per_peer: usize,
    /// TLS handshakes under way. Other connections wait, and keep only their socket meanwhile.
    pub handshakes: usize,
    /// Requests to the lock API that are read at once before their caller is authenticated. Others
    /// keep only the bytes of their header that have arrived, 8 KiB at most.
    pub strangers: usize,
    /// How long a FleetLock request is held open for the lock: below the 30 minutes after which
    /// Zincati hangs up. With `--fleetlock-drain` it is not held open at all, so that the drain has
    /// all of that time: a drain that began late would be undone when the client hangs up, and done
    /// again for its next try.
    pub fleetlock_wait: Duration,
    /// How often the certificate files are compared.
    pub reread: Duration,
}

impl Default for LockApiLimits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            body_bytes: 4 * 1024,
            waiters: 2_000,
            fleetlock_waiters: 1_000,
            shutdown_grace: Duration::from_secs(15),
            connections: 4_096,
            idle_per_peer: 256,
            handshakes: 64,
            strangers: 64,
            fleetlock_wait: Duration::from_mins(25),
            reread: Duration::from_secs(5),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LockApiStartError {
    /// `--lock-auth none` on an address that is not loopback.
    #[error(
        "--lock-auth none is for loopback only, and --lock-listen {0} is not on loopback: use --lock-auth kubernetes"
    )]
    OpenToAll(SocketAddr),
    /// FleetLock without groups would serve nobody, or everybody by accident.
    #[error(
        "--fleetlock-listen {0} needs --fleetlock-groups: name the groups of your hosts (fleetlock clients without a group are in \"default\"), or '*' for any"
    )]
    NoGroups(SocketAddr),
    /// Without TLS, tokens could be read on the wire.
    #[error(
        "{flag} {address} is not on loopback: give --lock-tls-cert and --lock-tls-key, or listen on 127.0.0.1"
    )]
    InTheClear {
        flag: &'static str,
        address: SocketAddr,
    },
    #[error("{0} is missing: a certificate and its key go together")]
    HalfTls(&'static str),
    #[error("--lock-client-ca needs --lock-tls-cert and --lock-tls-key")]
    AuthorityAlone,
    /// The address does not exist here, the process has no right to the port, or it is in use.
    #[error("cannot listen on {flag} {address}")]
    Bind {
        flag: &'static str,
        address: SocketAddr,
        source: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
}
