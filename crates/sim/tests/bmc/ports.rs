//! The same BMCs on a port, through the driver as it is connected in a cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Bmc, Class, Command, Options, Reading, connect};
use dogwatch_core::power::Address;
use dogwatch_sim::bmc::{BmcSpec, Park, Shape, SimBmc, State, port};
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::Actor;
use futures::future::join_all;
use tokio::net::TcpListener;

use crate::bench::{Bench, CALL, credentials};

/// Long enough for loopback on a busy machine; what is meant to hang is waited for so long.
const SHORT: Duration = Duration::from_secs(4);
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

struct Served {
    bench: Bench,
    driver: Arc<dyn Bmc>,
    server: Actor,
}

async fn served(shape: Shape) -> Served {
    let bench = Bench::with(true, |spec| BmcSpec {
        acts_after: Duration::from_millis(20),
        ..spec.shaped(shape)
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let server = Actor::spawn(port::serve(listener, bench.bmc.clone()));
    let driver = dial(&format!("redfish+http://{at}{}", bench.bmc.path()));
    Served {
        bench,
        driver,
        server,
    }
}

fn dial(address: &str) -> Arc<dyn Bmc> {
    let address = Address::parse(address).unwrap();
    connect(
        &address,
        &credentials("sekret16"),
        true,
        &Options::default(),
    )
    .unwrap()
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

#[tokio::test]
async fn a_bmc_on_a_port_goes_off_and_on() {
    let Served {
        bench,
        driver,
        server: _server,
    } = served(Shape::supermicro()).await;
    assert_eq!(driver.read(CALL).await, Ok(Reading::On));
    driver.send(Command::Off, CALL).await.unwrap();
    within(bench.machine.until(|state| *state == State::Off)).await;
    assert_eq!(driver.read(CALL).await, Ok(Reading::Off));
    driver.send(Command::On, CALL).await.unwrap();
    within(bench.machine.until(State::is_powered)).await;
    assert_eq!(driver.read(CALL).await, Ok(Reading::On));
    driver.close(CALL).await;
    assert_eq!(bench.bmc.sessions(), 0);
}

#[tokio::test]
async fn faults_are_the_same_on_a_port() {
    // Fault, class of a read, class of an off and whether it may have been carried out.
    let rows = [
        ("hang", Class::TimedOut, (Class::TimedOut, true)),
        ("breaks", Class::Unreachable, (Class::Unreachable, true)),
        ("dead", Class::Unreachable, (Class::Unreachable, true)),
        ("half-body", Class::TimedOut, (Class::TimedOut, true)),
        ("slow 60s", Class::TimedOut, (Class::TimedOut, true)),
        (
            "redirects",
            Class::Contradiction,
            (Class::Contradiction, false),
        ),
        ("refuses 503", Class::Refused, (Class::Refused, false)),
    ];
    let held = rows.map(async |(fault, read, off)| {
        let Served {
            bench,
            driver,
            server,
        } = served(Shape::hpe()).await;
        assert_eq!(driver.read(CALL).await, Ok(Reading::On));
        bench.wrong(fault);
        let within = if read == Class::TimedOut {
            SHORT
        } else {
            PATIENCE
        };
        let said = driver.read(within).await.unwrap_err();
        assert_eq!(said.class, read, "{fault}: {said}");
        let said = driver.send(Command::Off, within).await.unwrap_err();
        assert_eq!((said.class, said.may_have_run), off, "{fault}: {said}");
        assert!(server.is_running());
    });
    join_all(held).await;
}

#[tokio::test]
async fn nobody_listens_where_the_listener_is_gone() {
    let Served {
        bench,
        driver,
        server,
    } = served(Shape::plain()).await;
    assert_eq!(driver.read(CALL).await, Ok(Reading::On));
    drop(server);
    // Its connections end as well; the driver needs a new one, sooner or later.
    let refused = || async {
        loop {
            let said = driver.send(Command::Off, CALL).await.unwrap_err();
            assert_eq!(said.class, Class::Unreachable);
            if !said.may_have_run {
                return;
            }
        }
    };
    within(refused()).await;
    assert!(bench.is_on());
}

#[tokio::test]
async fn one_listener_serves_many_bmcs_at_their_own_addresses() {
    let park = Park::default();
    let first = Bench::new(Shape::plain(), true);
    for number in 0..50_u64 {
        let name = format!("h{number}");
        let spec = BmcSpec::new(name, Seed(number), Arc::clone(&first.clock));
        park.add(SimBmc::of(spec, first.machine.clone()));
    }
    let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let listener = TcpListener::bind(everywhere).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _server = Actor::spawn(port::serve_park(listener, park.clone()));
    for name in ["h0", "h17", "h49"] {
        let driver = dial(&park.address(name, port).unwrap());
        assert_eq!(driver.read(CALL).await, Ok(Reading::On));
        let bmc = park.named(name).unwrap();
        assert_eq!((bmc.counters().reads, bmc.sessions()), (1, 1), "{name}");
    }
    assert_eq!(park.named("h1").unwrap().counters().requests, 0);
    let nobody = dial(&format!(
        "redfish+http://127.0.0.1:{port}/redfish/v1/Systems/1"
    ));
    assert_eq!(
        nobody.read(CALL).await.unwrap_err().class,
        Class::Unreachable
    );
}
