//! Loopback ports that stay ours across a restart.

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

use crate::Error;

/// Below Linux' default range for outgoing connections (32768 up): a port taken from that range could be handed to some
/// client while the API server is stopped, and the server could not come back on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port nobody listens on now. Processes start to look in different places, so that two of them seldom race.
pub(crate) fn free() -> Result<u16, Error> {
    let origin = u16::try_from(u64::from(std::process::id()) * 31 % u64::from(COUNT))
        .expect("less than COUNT");
    (0..COUNT)
        .map(|_| FIRST + (origin + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or(Error::NoPort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_never_given_twice_in_a_row() {
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 100);
    }
}
