//! Loopback ports that stay ours across a restart, and one where nobody ever listens.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    sync::atomic::{AtomicU16, Ordering},
};

use tokio::net::TcpSocket;

use crate::Error;

/// Below Linux' default range for outgoing connections (32768 up): a port taken from that range could be handed to some
/// client while the API server is stopped, and the server could not come back on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port nobody listens on now, by TCP or by UDP. Processes start to look in different places, so that two of them seldom race.
pub(crate) fn free() -> Result<u16, Error> {
    let origin = u16::try_from(u64::from(std::process::id()) * 31 % u64::from(COUNT))
        .expect("less than COUNT");
    (0..COUNT)
        .map(|_| FIRST + (origin + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| {
            let address = (Ipv4Addr::LOCALHOST, *port);
            TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
        })
        .ok_or(Error::NoPort)
}

/// A TCP port on loopback that refuses every connection. While this lives nobody else gets it, as somebody may get one that
/// was listened on and left.
#[derive(Debug)]
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// One that nobody has.
    pub fn new() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self(socket))
    }

    /// Its number.
    pub fn number(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_refuses_and_is_nobody_elses() {
        let closed = ClosedPort::new().unwrap();
        let address = (Ipv4Addr::LOCALHOST, closed.number().unwrap());
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(address).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_is_never_given_twice_in_a_row() {
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 100);
    }
}
