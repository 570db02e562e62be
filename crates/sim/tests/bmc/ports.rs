//! The same BMCs on a TCP port, with the driver connected as in a cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Bmc, DriverOptions, FaultClass, PowerCommand, PowerReading, connect_driver};
use dogwatch_core::power::BmcAddress;
use dogwatch_kubesim::machine::MachineState;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::ActorTask;
use dogwatch_sim::bmc::{BmcFleet, BmcSpec, MakerProfile, SimBmc, http_server};
use futures::future::join_all;
use tokio::net::TcpListener;

use crate::bench::{Bench, CALL, credentials};

/// Long enough for loopback on a busy machine; a call that should hang takes this long.
const SHORT: Duration = Duration::from_secs(4);
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

struct Served {
    bench: Bench,
    driver: Arc<dyn Bmc>,
    server: ActorTask,
}

async fn served(shape: MakerProfile) -> Served {
    let bench = Bench::with(true, |spec| BmcSpec {
        acts_after: Duration::from_millis(20),
        ..spec.with_profile(shape)
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let server = ActorTask::spawn(http_server::serve_bmc(listener, bench.bmc.clone()));
    let driver = dial(&format!("redfish+http://{at}{}", bench.bmc.system_path()));
    Served {
        bench,
        driver,
        server,
    }
}

fn dial(address: &str) -> Arc<dyn Bmc> {
    let address = BmcAddress::parse(address).unwrap();
    connect_driver(
        &address,
        &credentials("sekret16"),
        true,
        &DriverOptions::default(),
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
    } = served(MakerProfile::supermicro()).await;
    assert_eq!(driver.read_power(CALL).await, Ok(PowerReading::On));
    driver.send_command(PowerCommand::Off, CALL).await.unwrap();
    within(
        bench
            .machine
            .wait_for_state(|state| *state == MachineState::Off),
    )
    .await;
    assert_eq!(driver.read_power(CALL).await, Ok(PowerReading::Off));
    driver.send_command(PowerCommand::On, CALL).await.unwrap();
    within(bench.machine.wait_for_state(MachineState::is_powered)).await;
    assert_eq!(driver.read_power(CALL).await, Ok(PowerReading::On));
    driver.close_session(CALL).await;
    assert_eq!(bench.bmc.count_sessions(), 0);
}

#[tokio::test]
async fn faults_are_the_same_on_a_port() {
    // Columns: fault, error class of a read, error class of a power-off, and whether the power-off
    // may have taken effect.
    let rows = [
        ("hang", FaultClass::TimedOut, (FaultClass::TimedOut, true)),
        (
            "breaks",
            FaultClass::Unreachable,
            (FaultClass::Unreachable, true),
        ),
        (
            "dead",
            FaultClass::Unreachable,
            (FaultClass::Unreachable, true),
        ),
        (
            "half-body",
            FaultClass::TimedOut,
            (FaultClass::TimedOut, true),
        ),
        (
            "slow 60s",
            FaultClass::TimedOut,
            (FaultClass::TimedOut, true),
        ),
        (
            "redirects",
            FaultClass::Contradiction,
            (FaultClass::Contradiction, false),
        ),
        (
            "refuses 503",
            FaultClass::Refused,
            (FaultClass::Refused, false),
        ),
    ];
    let held = rows.map(async |(fault, read, off)| {
        let Served {
            bench,
            driver,
            server,
        } = served(MakerProfile::hpe()).await;
        assert_eq!(driver.read_power(CALL).await, Ok(PowerReading::On));
        bench.wrong(fault);
        let within = if read == FaultClass::TimedOut {
            SHORT
        } else {
            PATIENCE
        };
        let said = driver.read_power(within).await.unwrap_err();
        assert_eq!(said.class, read, "{fault}: {said}");
        let said = driver
            .send_command(PowerCommand::Off, within)
            .await
            .unwrap_err();
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
    } = served(MakerProfile::plain_profile()).await;
    assert_eq!(driver.read_power(CALL).await, Ok(PowerReading::On));
    drop(server);
    // Its connections end as well, so the driver needs a new one sooner or later.
    let refused = || async {
        loop {
            let said = driver
                .send_command(PowerCommand::Off, CALL)
                .await
                .unwrap_err();
            assert_eq!(said.class, FaultClass::Unreachable);
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
    let park = BmcFleet::default();
    let first = Bench::new(MakerProfile::plain_profile(), true);
    for number in 0..50_u64 {
        let name = format!("h{number}");
        let spec = BmcSpec::new(name, SimulationSeed(number), Arc::clone(&first.clock));
        park.add_bmc(SimBmc::for_machine(spec, first.machine.clone()));
    }
    let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let listener = TcpListener::bind(everywhere).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _server = ActorTask::spawn(http_server::serve_fleet(listener, park.clone()));
    for name in ["h0", "h17", "h49"] {
        let driver = dial(&park.bmc_address(name, port).unwrap());
        assert_eq!(driver.read_power(CALL).await, Ok(PowerReading::On));
        let bmc = park.find_bmc(name).unwrap();
        assert_eq!(
            (bmc.request_counters().reads, bmc.count_sessions()),
            (1, 1),
            "{name}"
        );
    }
    assert_eq!(park.find_bmc("h1").unwrap().request_counters().requests, 0);
    let nobody = dial(&format!(
        "redfish+http://127.0.0.1:{port}/redfish/v1/Systems/1"
    ));
    assert_eq!(
        nobody.read_power(CALL).await.unwrap_err().class,
        FaultClass::Unreachable
    );
}
