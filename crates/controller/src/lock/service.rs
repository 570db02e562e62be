//! What both protocols ask of the lock.

use std::fmt;
use std::time::Duration;

pub use dogwatch_core::lock::api_lock::Wait;
use futures::future::BoxFuture;

/// Who wants the lock. Names were checked by the protocol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// A host of the lock API: a DNS subdomain, lower case. It may be a Node of this cluster.
    Api {
        /// Its name.
        host: String,
    },
    /// A client of FleetLock.
    FleetLock {
        /// Its group, case-sensitive.
        group: String,
        /// Its id, case-sensitive.
        id: String,
    },
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Client::Api { host } => write!(f, "api/{host}"),
            Client::FleetLock { group, id } => write!(f, "fleetlock/{group}/{id}"),
        }
    }
}

/// One request for the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRequest {
    /// Who asks.
    pub client: Client,
    /// Whether the answer may come later.
    pub wait: Wait,
}

/// How a request for the lock ended. Each `why` is one line without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockAnswer {
    /// It is held; a host that is a Node is cordoned and drained.
    Held {
        /// Which Lease, and whether it was before.
        why: String,
    },
    /// It cannot be had now, and the client did not want to wait.
    Busy {
        /// Who holds it, or who is out.
        why: String,
    },
    /// The policy does not allow it now: it is paused, outside its windows, a gate is shut, or the host was
    /// rebooted lately.
    NotAllowed {
        /// Why, and until when where that is known.
        why: String,
        /// When to ask again.
        again: Duration,
    },
    /// The drain failed and was undone.
    DrainFailed {
        /// The drain's own reason.
        why: String,
    },
    /// It cannot be had at all as things stand (the node is being rebooted by its coordinator, say).
    Refused {
        /// Why, and what to do.
        why: String,
    },
    /// Too many wait already.
    TooMany {
        /// How many may.
        why: String,
    },
    /// The API server does not answer, or this process ends.
    Unavailable {
        /// Why; nothing is held.
        why: String,
    },
}

/// How a request to give the lock up ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnlockAnswer {
    /// Nothing is held by this client any more.
    Free {
        /// Whether anything was.
        why: String,
    },
    /// It could not be given up, and is still held.
    Failed {
        /// Why, and what to do.
        why: String,
    },
    /// The API server does not answer, or this process ends.
    Unavailable {
        /// Why.
        why: String,
    },
}

/// The lock, as the protocols see it. Dropping a future is the client going away: its place is
/// given up, a drain is undone, and what its own retry has got meanwhile stays.
pub trait LockService: Send + Sync + 'static {
    /// Asks for the lock.
    fn lock(&self, request: LockRequest) -> BoxFuture<'static, LockAnswer>;

    /// Gives it up. Repeating it is success, on any replica.
    fn unlock(&self, client: Client) -> BoxFuture<'static, UnlockAnswer>;
}
