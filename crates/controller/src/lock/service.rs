//! The interface between the two protocols and the lock.

use std::fmt;
use std::time::Duration;

pub use dogwatch_core::lock::api_lock::WaitMode;
use futures::future::BoxFuture;

/// The client that asks. The protocol has checked its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockRequester {
    /// A host of the lock API: a DNS subdomain, lower case. It may be a Node of this cluster.
    Api { host: String },
    FleetLock {
        /// Case-sensitive.
        group: String,
        /// Case-sensitive.
        id: String,
    },
}

impl fmt::Display for LockRequester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockRequester::Api { host } => write!(f, "api/{host}"),
            LockRequester::FleetLock { group, id } => write!(f, "fleetlock/{group}/{id}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRequest {
    pub client: LockRequester,
    /// Whether the request may wait for the lock.
    pub wait: WaitMode,
}

/// How a request for the lock ended. Each `why` is one line without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockAnswer {
    /// The client holds the lock. A host that is a Node is cordoned and drained.
    Held {
        /// Names the Lease, and whether the client already held it.
        why: String,
    },
    /// The lock is not free, and the client does not wait.
    Busy {
        /// Names the holder, or the unavailable nodes.
        why: String,
    },
    /// The policy does not allow the reboot now: it is paused, outside its windows, a gate is shut,
    /// or the host was rebooted lately.
    NotAllowed {
        /// The reason, and until when if that is known.
        why: String,
        /// When to ask again.
        again: Duration,
    },
    /// The drain failed and was undone.
    DrainFailed {
        /// The drain's own reason.
        why: String,
    },
    /// The lock is refused as things stand (the node is being rebooted by its coordinator, say).
    Refused {
        /// The reason, and what to do.
        why: String,
    },
    /// Too many requests wait already.
    TooMany {
        /// Names the limit.
        why: String,
    },
    /// The API server does not answer, or this process ends.
    Unavailable {
        /// The reason; the client holds nothing.
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnlockAnswer {
    /// The client holds no lock any more.
    Free {
        /// Whether it held one.
        why: String,
    },
    /// The lock could not be released, and is still held.
    Failed {
        /// The reason, and what to do.
        why: String,
    },
    /// The API server does not answer, or this process ends.
    Unavailable { why: String },
}

/// The lock, as the protocols see it. A protocol drops the future when its client disconnects: the
/// place is given up and a drain is undone, but a lock that the client's own retry got meanwhile
/// stays held.
pub trait LockService: Send + Sync + 'static {
    fn lock_host(&self, request: LockRequest) -> BoxFuture<'static, LockAnswer>;

    /// Repeating it succeeds, on any replica.
    fn unlock_host(&self, client: LockRequester) -> BoxFuture<'static, UnlockAnswer>;
}
