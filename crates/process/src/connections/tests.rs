use std::pin::pin;
use std::task::{Context, Waker};

use super::*;

/// Whether it was told to close. Told once: the answer is true only the first time.
fn is_closed(connection: &Connection) -> bool {
    let closed = pin!(connection.closed());
    let mut context = Context::from_waker(Waker::noop());
    closed.poll(&mut context).is_ready()
}

fn connections(connections: usize, idle_per_peer: usize) -> Connections {
    Connections::new(Limits {
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
    let first = connections.enter(peer(1)).unwrap();
    let second = connections.enter(peer(2)).unwrap();
    let third = connections.enter(peer(3)).unwrap();
    assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
    assert_eq!(connections.open(), 2);
    // What was closed is gone once, not twice.
    drop(first);
    assert_eq!(connections.open(), 2);
}

#[test]
fn a_connection_that_was_just_served_is_not_the_oldest() {
    let connections = connections(2, 2);
    let first = connections.enter(peer(1)).unwrap();
    let second = connections.enter(peer(2)).unwrap();
    drop(first.busy());
    let _third = connections.enter(peer(3)).unwrap();
    assert!(!is_closed(&first) && is_closed(&second));
}

#[test]
fn who_waits_for_an_answer_is_never_closed() {
    let connections = connections(2, 2);
    let first = connections.enter(peer(1)).unwrap();
    let second = connections.enter(peer(2)).unwrap();
    let (waits, also_waits) = (first.busy(), second.busy());
    assert!(connections.enter(peer(3)).is_none());
    drop(waits);
    let _third = connections.enter(peer(3)).unwrap();
    assert!(is_closed(&first) && !is_closed(&second));
    drop(also_waits);
}

#[test]
fn one_peer_closes_only_its_own_idle_connections() {
    let connections = connections(100, 2);
    let other = connections.enter(peer(9)).unwrap();
    let first = connections.enter(peer(1)).unwrap();
    let _second = connections.enter(peer(1)).unwrap();
    let flood: Vec<_> = (0..50).filter_map(|_| connections.enter(peer(1))).collect();
    assert!(is_closed(&first) && !is_closed(&other));
    assert_eq!(connections.open(), 3);
    drop(flood);
    assert_eq!(connections.open(), 1);
}

#[test]
fn hosts_behind_one_address_may_all_wait_for_their_answers() {
    let connections = connections(100, 2);
    let hosts: Vec<_> = (0..50)
        .map(|_| {
            let host = connections.enter(peer(1)).unwrap();
            let busy = host.busy();
            (host, busy)
        })
        .collect();
    assert!(hosts.iter().all(|(host, _)| !is_closed(host)));
}

#[test]
fn the_addresses_of_one_host_are_one_peer() {
    let connections = connections(100, 1);
    let enter = |text: &str| connections.enter(text.parse().unwrap()).unwrap();
    let first = enter("2001:db8:1:2:aaaa::1");
    let other = enter("2001:db8:1:3::1");
    let _second = enter("2001:db8:1:2:bbbb::2");
    assert!(is_closed(&first) && !is_closed(&other));
    let plain = enter("192.0.2.1");
    let _mapped = enter("::ffff:192.0.2.1");
    assert!(is_closed(&plain));
}
