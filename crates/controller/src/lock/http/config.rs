//! What the two listeners are told, and what is refused before anything is served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;

use super::tls::TlsError;

/// For whom tokens of the lock API are made, unless `--lock-audience` says it.
pub const AUDIENCE: &str = "dogwatch";

/// What to serve, and how.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the lock API listens (`--lock-listen`).
    pub listen: SocketAddr,
    /// Who may use it (`--lock-auth`).
    pub auth: LockAuth,
    /// For whom a token must have been made (`--lock-audience`).
    pub audiences: Vec<String>,
    /// Certificates for both listeners (`--lock-tls-cert`, …); without them both are on loopback.
    pub tls: Option<TlsFiles>,
    /// Where FleetLock is served (`--fleetlock-listen`), if at all.
    pub fleetlock: Option<SocketAddr>,
    /// Whose lock FleetLock's clients may ask for (`--fleetlock-groups`).
    pub fleetlock_groups: FleetlockGroups,
    /// Whether the engine drains for FleetLock (`--fleetlock-drain`); then its requests do not wait for the
    /// lock, see [`Limits::fleetlock_wait`].
    pub fleetlock_drain: bool,
    /// How much one client, and all of them, may cost.
    pub limits: Limits,
}

impl Config {
    /// The lock API alone, with the usual limits.
    pub fn new(listen: SocketAddr, auth: LockAuth) -> Self {
        Self {
            listen,
            auth,
            audiences: vec![AUDIENCE.to_owned()],
            tls: None,
            fleetlock: None,
            fleetlock_groups: FleetlockGroups::default(),
            fleetlock_drain: false,
            limits: Limits::default(),
        }
    }

    /// Refuses what would let somebody drain nodes whom nobody checked, or read tokens on the wire.
    pub fn check(&self) -> Result<(), StartError> {
        if self.auth == LockAuth::None && !self.listen.ip().is_loopback() {
            return Err(StartError::OpenToAll(self.listen));
        }
        if let Some(address) = self.fleetlock
            && self.fleetlock_groups.is_empty()
        {
            return Err(StartError::NoGroups(address));
        }
        let listeners = [
            ("--lock-listen", Some(self.listen)),
            ("--fleetlock-listen", self.fleetlock),
        ];
        for (flag, address) in listeners {
            if let Some(address) = address.filter(|address| !address.ip().is_loopback())
                && self.tls.is_none()
            {
                return Err(StartError::InTheClear { flag, address });
            }
        }
        Ok(())
    }
}

/// Who may use the lock API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAuth {
    /// Whom the API server knows and allows verb `lock` on `rebootlocks.dogwatch.dev`.
    Kubernetes,
    /// Whoever reaches it: on loopback only.
    None,
}

/// PEM files; read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate and what leads from it to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of client certificates, where such are taken.
    pub client_authority: Option<PathBuf>,
}

impl TlsFiles {
    /// From `--lock-tls-cert`, `--lock-tls-key` and `--lock-client-ca`.
    pub fn from_flags(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        client_authority: Option<PathBuf>,
    ) -> Result<Option<Self>, StartError> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Self {
                certificate,
                key,
                client_authority,
            })),
            (None, None) if client_authority.is_none() => Ok(None),
            (None, None) => Err(StartError::AuthorityAlone),
            (Some(_), None) => Err(StartError::HalfTls("--lock-tls-key")),
            (None, Some(_)) => Err(StartError::HalfTls("--lock-tls-cert")),
        }
    }
}

/// Bounds. Source: specification §2.7 and §6.
#[derive(Debug, Clone)]
pub struct Limits {
    /// From the first byte of a request to the end of its header; also for a TLS handshake.
    pub header: Duration,
    /// From the end of the header to the end of the body: some 30 bytes come at once or not at all.
    pub body: Duration,
    /// A connection without a request.
    pub idle: Duration,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Requests for the lock under way, of both protocols together.
    pub waiters: usize,
    /// Those of FleetLock among them: nobody checks who asks there, and they shall not take all places.
    pub fleetlock_waiters: usize,
    /// From the signal to end until those that still wait are dropped. The lock answers them earlier, when
    /// it has given back what was won. 3 s more are left for writing: 18 s in all, below what
    /// [`FINISH_WITHIN`](crate::run::FINISH_WITHIN) leaves to components.
    pub last_call: Duration,
    /// Open connections of one listener: with as many waiters as may be there is room for as many others. For
    /// a newcomer the oldest idle one is closed.
    pub connections: usize,
    /// Connections of one peer on which nobody waits whose right was checked. Its oldest is closed for a newer
    /// one. Not few, for all hosts may come through one proxy.
    pub idle_per_peer: usize,
    /// TLS handshakes under way. Others wait, and keep nothing but their socket meanwhile.
    pub handshakes: usize,
    /// Requests to the lock API that are read at once while it is not known who asks. Others keep what came of
    /// their header, 8 KiB at most.
    pub strangers: usize,
    /// How long a FleetLock request is held open for the lock: below the 30 minutes after which Zincati hangs
    /// up. With `--fleetlock-drain` it is not held open at all, so that the drain has all of that time: one that
    /// began late would be undone when the client hangs up, and done again for its next try.
    pub fleetlock_wait: Duration,
    /// How often the files of the certificates are compared.
    pub reread: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            body_bytes: 4 * 1024,
            waiters: 2_000,
            fleetlock_waiters: 1_000,
            last_call: Duration::from_secs(15),
            connections: 4_096,
            idle_per_peer: 256,
            handshakes: 64,
            strangers: 64,
            fleetlock_wait: Duration::from_mins(25),
            reread: Duration::from_secs(5),
        }
    }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nobody would be checked.
    #[error(
        "--lock-auth none is for loopback only, and --lock-listen {0} is not: use --lock-auth kubernetes"
    )]
    OpenToAll(SocketAddr),
    /// Nobody could be served, or everybody by accident.
    #[error(
        "--fleetlock-listen {0} needs --fleetlock-groups: name the groups of your hosts (fleetlock clients without a group are in \"default\"), or '*' for any"
    )]
    NoGroups(SocketAddr),
    /// Tokens would be read on the wire.
    #[error(
        "{flag} {address} is not on loopback: give --lock-tls-cert and --lock-tls-key, or listen on 127.0.0.1"
    )]
    InTheClear {
        /// The flag.
        flag: &'static str,
        /// What it says.
        address: SocketAddr,
    },
    /// One of the two flags for TLS is missing.
    #[error("{0} is missing: a certificate and its key go together")]
    HalfTls(&'static str),
    /// Client certificates without TLS.
    #[error("--lock-client-ca needs --lock-tls-cert and --lock-tls-key")]
    AuthorityAlone,
    /// No such address, no right to the port, or somebody else listens there.
    #[error("cannot listen on {flag} {address}")]
    Bind {
        /// The flag.
        flag: &'static str,
        /// What it says.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificates are of no use.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
