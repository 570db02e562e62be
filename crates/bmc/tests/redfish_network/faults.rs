//! Failures below HTTP.

use std::time::Duration;

use dogwatch_bmc::{DriverOptions, FaultClass, PowerCommand, PowerReading};
use dogwatch_testbed::ClosedPort;
use tokio::net::{TcpSocket, TcpStream};

use crate::server::{Server, Then};
use crate::{WITHIN, address, ask, driver};

#[tokio::test]
async fn each_way_to_fail_has_its_class_and_says_whether_something_was_sent() {
    // Long enough to send the request on a busy machine.
    let short = Duration::from_secs(4);
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"PowerState\": \"Off\"";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let rows = [
        (Then::Hangs(""), FaultClass::TimedOut),
        (
            Then::Hangs("HTTP/1.1 200 OK\r\nContent-Le"),
            FaultClass::TimedOut,
        ),
        // A body that stalls is a timeout, although it cannot be decoded either.
        (Then::Hangs(half), FaultClass::TimedOut),
        (Then::Hangs(chunked), FaultClass::TimedOut),
        (Then::Ends(half), FaultClass::Contradiction),
        (Then::Ends(chunked), FaultClass::Contradiction),
        (
            Then::Ends("SSH-2.0-dropbear\r\n"),
            FaultClass::Contradiction,
        ),
        (Then::Ends(""), FaultClass::Unreachable),
        (Then::Resets, FaultClass::Unreachable),
        (Then::Floods, FaultClass::Contradiction),
    ];
    let asked = rows.map(async |(then, class)| {
        let server = Server::http(then).await;
        let within = if class == FaultClass::TimedOut {
            short
        } else {
            WITHIN
        };
        let fault = ask(&address("redfish+http", server.port), within).await;
        let fault = fault.expect_err("a fault");
        assert_eq!((fault.class, fault.may_have_run), (class, true), "{fault}");
    });
    futures::future::join_all(asked).await;
}

#[tokio::test]
async fn a_refused_connection_has_sent_nothing() {
    let closed = ClosedPort::new().expect("a port");
    let port = closed.port_number().expect("an address");
    for scheme in ["redfish", "redfish+http"] {
        let fault = ask(&address(scheme, port), WITHIN)
            .await
            .expect_err("refused");
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Unreachable, false),
            "{fault}"
        );
    }
}

/// Like a BMC without power: packets get no answer. A full accept queue has the same effect on
/// loopback.
#[tokio::test]
async fn a_connection_that_is_never_made_has_sent_nothing_though_time_ran_out() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let listener = socket.listen(1).expect("listens");
    let port = listener.local_addr().expect("an address").port();
    let connect = || {
        tokio::time::timeout(
            Duration::from_secs(3),
            TcpStream::connect(("127.0.0.1", port)),
        )
    };
    let mut waiting = Vec::new();
    while let Ok(stream) = connect().await {
        waiting.push(stream.expect("a connection"));
    }
    let address = address("redfish+http", port);
    let driver = driver(&address, None, true, &DriverOptions::default()).expect("a driver");
    let (asked, sent) = futures::join!(
        ask(&address, WITHIN),
        driver.send_command(PowerCommand::Off, WITHIN)
    );
    for fault in [asked.map(drop), sent.map(drop)].map(|end| end.expect_err("nobody there")) {
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Unreachable, false),
            "{fault}"
        );
    }
}

/// The redirect's target would have received user and password.
#[tokio::test]
async fn a_redirect_reaches_nobody() {
    let target = Server::http(Then::Serves).await;
    let location = format!("http://127.0.0.1:{}/redfish/v1/", target.port);
    let answer = format!("HTTP/1.1 307 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    let server = Server::http(Then::Ends(Box::leak(answer.into_boxed_str()))).await;
    let options = DriverOptions::default();
    let driver = driver(&address("redfish+http", server.port), None, true, &options);
    let fault = driver
        .expect("a driver")
        .read_power(WITHIN)
        .await
        .expect_err("a redirect");
    assert_eq!(fault.class, FaultClass::Contradiction);
    assert_eq!((server.connections(), target.connections()), (1, 0));
}

#[tokio::test]
async fn a_small_bmc_is_read() {
    let server = Server::http(Then::Serves).await;
    let options = DriverOptions::default();
    let driver = driver(&address("redfish+http", server.port), None, true, &options);
    assert_eq!(
        driver.expect("a driver").read_power(WITHIN).await,
        Ok(PowerReading::On)
    );
}
