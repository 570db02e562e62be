//! Who is connected to one listener, and who has to go when there are too many.
//!
//! **For:** every listener of Dogwatch. A connection is *idle* while the server waits for its client (for a
//! handshake, a request, the rest of one, or until it has read its answer), and *busy* while the client
//! waits for the server.
//! **Promises:** a newcomer never waits behind idle connections: the oldest idle one is closed for it. One
//! peer never has more idle connections than it may, and then loses its own oldest one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open at once, of all peers together.
    pub connections: usize,
    /// Idle at once, of one peer. Busy ones are not counted: many hosts may stand behind one address.
    pub idle_per_peer: usize,
}

/// The open connections of one listener. Clones are the same.
#[derive(Debug, Clone)]
pub struct Connections {
    limits: Limits,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    /// By number, which is never used again.
    all: BTreeMap<u64, Entry>,
    /// Counts arrivals and ends of service: the smaller, the longer idle.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    /// Nothing while it is busy.
    idle_since: Option<u64>,
    closed: Arc<Notify>,
}

/// One open connection; dropped, its place is free.
#[derive(Debug)]
pub struct Connection {
    connections: Connections,
    number: u64,
    closed: Arc<Notify>,
}

/// While it lives its connection is busy.
#[derive(Debug)]
pub struct Busy {
    connections: Connections,
    number: u64,
}

impl Connections {
    /// Nobody is connected yet.
    pub fn new(limits: Limits) -> Self {
        let open = Arc::default();
        Self { limits, open }
    }

    /// A place for a newcomer, which is idle at first; another one is closed for it if need be. Nothing
    /// while all others are busy.
    pub fn enter(&self, peer: IpAddr) -> Option<Connection> {
        let peer = network(peer);
        let mut open = self.lock();
        let of_peer = open.idle().filter(|(_, entry)| entry.peer == peer).count();
        if of_peer >= self.limits.idle_per_peer {
            open.close_oldest_idle(Some(peer));
        }
        if open.all.len() >= self.limits.connections && !open.close_oldest_idle(None) {
            return None;
        }
        let closed = Arc::new(Notify::new());
        let number = open.tick();
        let entry = Entry {
            peer,
            idle_since: Some(number),
            closed: Arc::clone(&closed),
        };
        open.all.insert(number, entry);
        drop(open);
        Some(Connection {
            connections: self.clone(),
            number,
            closed,
        })
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.lock().all.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn idle(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let all = self.all.iter();
        all.filter_map(|(_, entry)| Some((entry.idle_since?, entry)))
    }

    /// Whether there was one, of this peer or of any.
    fn close_oldest_idle(&mut self, peer: Option<IpAddr>) -> bool {
        let idle = self.all.iter().filter(|(_, entry)| {
            entry.idle_since.is_some() && peer.is_none_or(|peer| entry.peer == peer)
        });
        let oldest = idle.min_by_key(|(_, entry)| entry.idle_since);
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(entry) = self.all.remove(&number) {
            entry.closed.notify_one();
        }
        true
    }
}

impl Connection {
    /// Ready when it has to be closed for a newcomer.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// It is busy for as long as what is returned lives.
    pub fn busy(&self) -> Busy {
        if let Some(entry) = self.connections.lock().all.get_mut(&self.number) {
            entry.idle_since = None;
        }
        Busy {
            connections: self.connections.clone(),
            number: self.number,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().all.remove(&self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        let now = open.tick();
        if let Some(entry) = open.all.get_mut(&self.number) {
            entry.idle_since = Some(now);
        }
    }
}

/// A host with IPv6 has a whole /64 of addresses, and IPv4 may come mapped into IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests;
