use std::pin::pin;
use std::task::{Context, Waker};

use super::*;

/// Whether it was asked to close; `true` only the first time.
fn is_closed(connection: &ConnectionSlot) -> bool {
    let closed = pin!(connection.wait_for_close());
    let mut context = Context::from_waker(Waker::noop());
    closed.poll(&mut context).is_ready()
}

fn connections(connections: usize, idle_per_peer: usize) -> ConnectionTable {
    ConnectionTable::new(ConnectionLimits {
        connections,
        idle_per_peer,
    })
}

fn peer(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

#[test]
fn a_newcomer_takes_the_place_of_the_connection_that_was_idle_longest() {
    let connections = connections(2, 2);
    let first = connections.admit_peer(peer(1)).unwrap();
    let second = connections.admit_peer(peer(2)).unwrap();
    let third = connections.admit_peer(peer(3)).unwrap();
    assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
    assert_eq!(connections.count_open(), 2);
    // A closed connection frees its place once, not twice.
    drop(first);
    assert_eq!(connections.count_open(), 2);
}

#[test]
fn a_connection_that_was_just_served_is_not_the_oldest() {
    let connections = connections(2, 2);
    let first = connections.admit_peer(peer(1)).unwrap();
    let second = connections.admit_peer(peer(2)).unwrap();
    drop(first.mark_busy());
    let _third = connections.admit_peer(peer(3)).unwrap();
    assert!(!is_closed(&first) && is_closed(&second));
}

#[test]
fn who_waits_for_an_answer_is_never_closed() {
    let connections = connections(2, 2);
    let first = connections.admit_peer(peer(1)).unwrap();
    let second = connections.admit_peer(peer(2)).unwrap();
    let (waits, also_waits) = (first.mark_busy(), second.mark_busy());
    assert!(connections.admit_peer(peer(3)).is_none());
    drop(waits);
    let _third = connections.admit_peer(peer(3)).unwrap();
    assert!(is_closed(&first) && !is_closed(&second));
    drop(also_waits);
}

#[test]
fn one_peer_closes_only_its_own_idle_connections() {
    let connections = connections(100, 2);
    let other = connections.admit_peer(peer(9)).unwrap();
    let first = connections.admit_peer(peer(1)).unwrap();
    let _second = connections.admit_peer(peer(1)).unwrap();
    let flood: Vec<_> = (0..50)
        .filter_map(|_| connections.admit_peer(peer(1)))
        .collect();
    assert!(is_closed(&first) && !is_closed(&other));
    assert_eq!(connections.count_open(), 3);
    drop(flood);
    assert_eq!(connections.count_open(), 1);
}

#[test]
fn hosts_behind_one_address_may_all_wait_for_their_answers() {
    let connections = connections(100, 2);
    let hosts: Vec<_> = (0..50)
        .map(|_| {
            let host = connections.admit_peer(peer(1)).unwrap();
            let busy = host.mark_busy();
            (host, busy)
        })
        .collect();
    assert!(hosts.iter().all(|(host, _)| !is_closed(host)));
}

#[test]
fn the_addresses_of_one_host_are_one_peer() {
    let connections = connections(100, 1);
    let enter = |text: &str| connections.admit_peer(text.parse().unwrap()).unwrap();
    let first = enter("2001:db8:1:2:aaaa::1");
    let other = enter("2001:db8:1:3::1");
    let _second = enter("2001:db8:1:2:bbbb::2");
    assert!(is_closed(&first) && !is_closed(&other));
    let plain = enter("192.0.2.1");
    let _mapped = enter("::ffff:192.0.2.1");
    assert!(is_closed(&plain));
}
