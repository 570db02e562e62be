//! Limits the connections of one listener: the oldest idle ones are closed when there are too many.
//!
//! **For:** every listener of Dogwatch. A connection is *idle* while the server waits for its
//! client (for a handshake, a request, the rest of one, or until it has read its answer), and
//! *busy* while the client waits for the server.
//! **Promises:** a new connection never waits behind idle ones: the oldest idle one is closed for
//! it. One peer never has more idle connections than its limit, and then loses its own oldest one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::mutex::lock_ignoring_poison;
use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections of all peers together.
    pub connections: usize,
    /// Idle connections of one peer. Busy ones are not counted: many hosts may stand behind one
    /// address.
    pub idle_per_peer: usize,
}

#[derive(Debug, Clone)]
pub struct ConnectionTable {
    limits: ConnectionLimits,
    open: Arc<Mutex<OpenConnections>>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// By number, which is never used again.
    all: BTreeMap<u64, ConnectionEntry>,
    /// Numbers arrivals and ends of service: the smaller, the longer idle.
    next: u64,
}

#[derive(Debug)]
struct ConnectionEntry {
    peer: IpAddr,
    /// `None` while the connection is busy.
    idle_since: Option<u64>,
    closed: Arc<Notify>,
}

/// One open connection. Dropping it frees its place.
#[derive(Debug)]
pub struct ConnectionSlot {
    connections: ConnectionTable,
    number: u64,
    closed: Arc<Notify>,
}

/// The connection is busy while this lives.
#[derive(Debug)]
pub struct BusyConnectionGuard {
    connections: ConnectionTable,
    number: u64,
}

impl ConnectionTable {
    pub fn new(limits: ConnectionLimits) -> Self {
        let open = Arc::default();
        Self { limits, open }
    }

    /// A slot for a new connection, idle at first; an idle one is closed for it if need be. `None`
    /// if all others are busy.
    pub fn admit_peer(&self, peer: IpAddr) -> Option<ConnectionSlot> {
        let peer = network_of(peer);
        let mut open = self.lock_open();
        let of_peer = open
            .idle_connections()
            .filter(|(_, entry)| entry.peer == peer)
            .count();
        if of_peer >= self.limits.idle_per_peer {
            open.close_oldest_idle(Some(peer));
        }
        if open.all.len() >= self.limits.connections && !open.close_oldest_idle(None) {
            return None;
        }
        let closed = Arc::new(Notify::new());
        let number = open.next_number();
        let entry = ConnectionEntry {
            peer,
            idle_since: Some(number),
            closed: Arc::clone(&closed),
        };
        open.all.insert(number, entry);
        drop(open);
        Some(ConnectionSlot {
            connections: self.clone(),
            number,
            closed,
        })
    }

    pub fn count_open(&self) -> usize {
        self.lock_open().all.len()
    }

    fn lock_open(&self) -> MutexGuard<'_, OpenConnections> {
        lock_ignoring_poison(&self.open)
    }
}

impl OpenConnections {
    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn idle_connections(&self) -> impl Iterator<Item = (u64, &ConnectionEntry)> {
        let all = self.all.iter();
        all.filter_map(|(_, entry)| Some((entry.idle_since?, entry)))
    }

    /// Returns whether there was an idle one, of this peer or, with `None`, of any.
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

impl ConnectionSlot {
    /// Ready when the connection must be closed for a new one.
    pub async fn wait_for_close(&self) {
        self.closed.notified().await;
    }

    /// The connection is busy until the guard is dropped.
    pub fn mark_busy(&self) -> BusyConnectionGuard {
        if let Some(entry) = self.connections.lock_open().all.get_mut(&self.number) {
            entry.idle_since = None;
        }
        BusyConnectionGuard {
            connections: self.connections.clone(),
            number: self.number,
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock_open().all.remove(&self.number);
    }
}

impl Drop for BusyConnectionGuard {
    fn drop(&mut self) {
        let mut open = self.connections.lock_open();
        let now = open.next_number();
        if let Some(entry) = open.all.get_mut(&self.number) {
            entry.idle_since = Some(now);
        }
    }
}

/// The network of a peer: a host with IPv6 has a whole /64 of addresses, and IPv4 may arrive mapped
/// into IPv6.
fn network_of(address: IpAddr) -> IpAddr {
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
