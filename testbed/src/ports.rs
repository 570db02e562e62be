//! Loopback ports that stay ours across a restart, and one that always refuses connections.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    sync::atomic::{AtomicU16, Ordering},
};

use tokio::net::TcpSocket;

use crate::Error;

/// Below Linux' default range for outgoing connections (32768 up): a client could get a port from
/// that range while the API server is stopped, and the server could not listen on it again.
const FIRST_PORT: u16 = 20_000;
const PORT_COUNT: u16 = 12_000;

static NEXT_PORT_OFFSET: AtomicU16 = AtomicU16::new(0);

/// A port that nobody listens on now, by TCP or by UDP. Each process starts its search at a
/// different port, so that two of them seldom race.
pub(crate) fn find_free_port() -> Result<u16, Error> {
    let origin = u16::try_from(u64::from(std::process::id()) * 31 % u64::from(PORT_COUNT))
        .expect("less than COUNT");
    (0..PORT_COUNT)
        .map(|_| {
            FIRST_PORT
                + (origin + NEXT_PORT_OFFSET.fetch_add(1, Ordering::Relaxed) % PORT_COUNT)
                    % PORT_COUNT
        })
        .find(|port| {
            let address = (Ipv4Addr::LOCALHOST, *port);
            TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
        })
        .ok_or(Error::NoPort)
}

/// A TCP port on loopback that refuses every connection. No other program can get the port while
/// this value lives, unlike a port that was merely closed.
#[derive(Debug)]
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// Binds a free port without listening on it.
    pub fn new() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self(socket))
    }

    pub fn port_number(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_refuses_and_is_nobody_elses() {
        let closed = ClosedPort::new().unwrap();
        let address = (Ipv4Addr::LOCALHOST, closed.port_number().unwrap());
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(address).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_is_never_given_twice_in_a_row() {
        let ports: std::collections::BTreeSet<u16> =
            (0..100).map(|_| find_free_port().unwrap()).collect();
        assert_eq!(ports.len(), 100);
    }
}
