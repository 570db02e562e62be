//! The Redfish driver beside the fence agent that others use, on one emulated BMC, over TLS: from
//! the command to the first reading of off. The agent asks for no second one, so neither does the
//! driver here.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dogwatch_bmc::{
    Bmc, Credentials, DriverOptions, Password, PowerCommand as Power, PowerReading, connect_driver,
};
use dogwatch_core::power::BmcAddress;
use dogwatch_testbed::sushy::{EmulatedSystem, PASSWORD, SushyEmulator, USERNAME};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::table::{figure, note, spread};

const AGENT: &str = "/usr/sbin/fence_redfish";
const UUID: &str = "0b7ab6a2-5c3f-4f0f-8e0f-6f1d3b1f0004";
const ROUNDS: usize = 8;
/// How often the driver reads: as the controller does after a hard power-off.
const PACE: Duration = Duration::from_millis(200);
const CALL: Duration = Duration::from_secs(10);
/// The emulator's: a power-off shows within this.
const TAKES: Duration = Duration::from_secs(1);

pub async fn measure() {
    if !std::path::Path::new(AGENT).exists() {
        return eprintln!("{AGENT} is not here: nothing to compare with");
    }
    let system = EmulatedSystem {
        uuid: UUID.into(),
        on: true,
    };
    let sushy = SushyEmulator::start(&[system], TAKES)
        .await
        .expect("an emulator");
    let driver = driver(&sushy);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_time, mut their_time) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        until(driver.as_ref(), Power::On, PowerReading::On).await;
        let (begun, spent) = (Instant::now(), own_processor());
        until(driver.as_ref(), Power::Off, PowerReading::Off).await;
        ours.push(begun.elapsed());
        our_time += own_processor() - spent;
        until(driver.as_ref(), Power::On, PowerReading::On).await;
        let (begun, spent) = (Instant::now(), children_processor());
        agent(sushy.port()).await;
        theirs.push(begun.elapsed());
        their_time += children_processor() - spent;
    }
    let (ours, theirs) = (spread(ours), spread(theirs));
    let rounds = ROUNDS as f64;
    let in_words = |wall: [Duration; 3], time: f64| {
        format!(
            "median {:.2} s, most {:.2} s, {:.1} ms of processor",
            wall[0].as_secs_f64(),
            wall[2].as_secs_f64(),
            1_000.0 * time / rounds
        )
    };
    note(
        "fence_redfish: off -> seen off, BMC takes up to 1 s",
        &in_words(theirs, their_time),
    );
    figure(
        "the Redfish driver: the same",
        &in_words(ours, our_time),
        "less than the agent, of both",
        ours[0] < theirs[0] && our_time < their_time,
    );
}

fn driver(sushy: &SushyEmulator) -> Arc<dyn Bmc> {
    let credentials = Credentials {
        username: USERNAME.into(),
        password: Password::new(PASSWORD),
        ca: Some(std::fs::read(sushy.ca_file()).expect("it is there")),
    };
    let address = BmcAddress::parse(&sushy.system_address(UUID)).expect("an address");
    connect_driver(&address, &credentials, true, &DriverOptions::default()).expect("a driver")
}

/// Commands, and reads until it is so.
async fn until(driver: &dyn Bmc, command: Power, wanted: PowerReading) {
    driver
        .send_command(command, CALL)
        .await
        .expect("it is taken");
    while driver.read_power(CALL).await.expect("it answers") != wanted {
        tokio::time::sleep(PACE).await;
    }
}

/// By its standard input, as it is called where passwords must not show.
async fn agent(port: u16) {
    let input = format!(
        "action=off\nip=127.0.0.1\nipport={port}\nusername={USERNAME}\npassword={PASSWORD}\n\
         ssl_insecure=1\nsystems_uri=/redfish/v1/Systems/{UUID}\n"
    );
    let mut child = Command::new(AGENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is here");
    let mut stdin = child.stdin.take().expect("asked for above");
    stdin.write_all(input.as_bytes()).await.expect("it reads");
    drop(stdin);
    assert!(child.wait().await.expect("it ends").success());
}

/// Of this process' first thread, which all of the driver runs in, in seconds.
fn own_processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanos = stat.split(' ').next().expect("a number");
    nanos.parse::<f64>().expect("a number") / 1e9
}

/// Of the children that have ended, in seconds.
fn children_processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let ticks = fields.split(' ').skip(13).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / 100.0
}
