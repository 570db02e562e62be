//! Each BMC fault with the real driver: the driver's result, and the host's power afterwards.

use dogwatch_bmc::{BmcFault, CommandAnswer, PowerCommand, PowerReading};
use dogwatch_sim::bmc::MakerProfile;

use crate::bench::{Bench, SECOND, after};

#[derive(Debug, Clone, Copy)]
enum Ask {
    Read,
    On,
    Soft,
    Off,
}

use Ask::{Off, On, Read, Soft};

/// A fault, the host's power before the call, the call, the driver's result, and the host's power
/// two minutes later. The driver is logged in already.
type Row = (&'static str, &'static str, Ask, &'static str, &'static str);

const ROWS: &[Row] = &[
    // No fault.
    ("", "on", Read, "On", "on"),
    ("", "off", Read, "Off", "off"),
    ("", "on", Off, "Accepted", "off"),
    ("", "on", Soft, "Accepted", "off"),
    ("", "off", On, "Accepted", "on"),
    // Already in the wanted state.
    ("already 409", "off", Off, "AlreadyThere", "off"),
    ("already 400", "off", Off, "AlreadyThere", "off"),
    ("already 409", "off", Soft, "AlreadyThere", "off"),
    ("already 400", "on", On, "AlreadyThere", "on"),
    // Faults of requests.
    ("dead", "on", Read, "Unreachable", "on"),
    ("dead", "on", Off, "Unreachable", "on"),
    ("hang", "on", Read, "TimedOut", "on"),
    ("hang", "on", Off, "TimedOut?", "on"),
    ("hang of commands", "off", On, "TimedOut?", "off"),
    ("breaks", "on", Read, "Unreachable", "on"),
    ("breaks", "on", Soft, "Unreachable?", "on"),
    ("half-body", "on", Read, "TimedOut", "on"),
    ("half-body", "on", Off, "Accepted", "off"),
    ("slow 3s", "on", Read, "On", "on"),
    ("slow 15s", "on", Read, "TimedOut", "on"),
    ("slow 15s of commands", "on", Off, "TimedOut?", "off"),
    ("slow 15s of commands", "off", On, "TimedOut?", "on"),
    ("refuses 401", "on", Read, "WrongCredentials", "on"),
    ("refuses 401", "on", Off, "WrongCredentials", "on"),
    ("refuses 401 of reads once", "on", Read, "On", "on"),
    ("refuses 403", "on", Read, "Refused", "on"),
    ("refuses 403", "on", Off, "Refused", "on"),
    ("refuses 500 of commands", "on", Off, "Refused?", "on"),
    ("refuses 503", "on", Read, "Refused", "on"),
    ("refuses 503", "on", Off, "Refused", "on"),
    ("garbage", "on", Read, "Contradiction", "on"),
    ("garbage", "on", Off, "Accepted", "off"),
    ("redirects", "on", Read, "Contradiction", "on"),
    ("redirects", "on", Off, "Contradiction", "on"),
    // Faults of the BMC.
    ("dies-with-host", "on", Read, "On", "on"),
    ("dies-with-host", "off", Read, "Unreachable", "off"),
    ("dies-with-host", "off", On, "Unreachable", "off"),
    ("sessions-end once", "on", Read, "On", "on"),
    ("sessions-end once", "on", Off, "Accepted", "off"),
    ("sessions-end", "on", Read, "WrongCredentials", "on"),
    ("wrong-credentials", "on", Read, "On", "on"),
    ("no-such-system", "on", Read, "NoSuchSystem", "on"),
    ("no-such-system", "on", Off, "NoSuchSystem", "on"),
    ("clock-ahead 9000h", "on", Read, "On", "on"),
    ("clock-behind 9000h", "on", Off, "Accepted", "off"),
    // Faults of commands.
    ("soft-ignored", "on", Soft, "Accepted", "on"),
    ("soft-ignored", "on", Off, "Accepted", "off"),
    ("off-ignored", "on", Off, "Accepted", "on"),
    ("on-ignored", "off", On, "Accepted", "off"),
    ("comes-back 20s", "on", Off, "Accepted", "on"),
    ("answer-lost 20s", "on", Off, "TimedOut?", "off"),
    ("answer-lost 20s", "off", On, "TimedOut?", "on"),
    ("task-never-ends", "on", Off, "TimedOut?", "off"),
    ("task-unnamed", "on", Off, "AcceptedWithoutTask", "off"),
    ("task-fails", "on", Off, "Refused", "on"),
    ("off-reported-early 20s", "on", Off, "Accepted", "off"),
    // Faults of readings.
    ("power-state null", "off", Read, "Contradiction", "off"),
    ("power-state absent", "off", Read, "Contradiction", "off"),
    ("power-state Blinking", "off", Read, "Contradiction", "off"),
    ("power-state off", "off", Read, "Contradiction", "off"),
    ("power-state PoweringOff", "off", Read, "PoweringOff", "off"),
    ("power-state PoweringOn", "off", Read, "PoweringOn", "off"),
    ("power-state Paused", "off", Read, "On", "off"),
    ("contradicts", "on", Read, "Off", "on"),
    ("stale 30s", "on", Read, "On", "on"),
];

/// The same for a driver that has not sent a request yet.
const COLD: &[Row] = &[
    ("", "on", Off, "Accepted", "off"),
    ("dead", "on", Off, "Unreachable", "on"),
    ("hang", "on", Off, "TimedOut", "on"),
    ("hang of commands", "on", Off, "TimedOut?", "on"),
    ("hang of logins", "on", Off, "TimedOut", "on"),
    ("refuses 401 of logins", "on", Off, "WrongCredentials", "on"),
    ("refuses 503 of logins", "on", Off, "Refused", "on"),
    ("wrong-credentials", "on", Off, "WrongCredentials", "on"),
    ("garbage", "on", Off, "Contradiction", "on"),
    ("redirects", "on", Off, "Contradiction", "on"),
    ("foreign-links", "on", Read, "Contradiction", "on"),
    ("foreign-links", "on", Off, "Contradiction", "on"),
    ("no-such-system", "on", Off, "NoSuchSystem", "on"),
    ("lacks GracefulShutdown", "on", Soft, "Unsupported", "on"),
    ("lacks ForceOff", "on", Off, "Unsupported", "on"),
];

#[tokio::test(start_paused = true)]
async fn each_fault_is_what_the_driver_says_it_is() {
    let mut wrong = Vec::new();
    for (rows, is_warm) in [(ROWS, true), (COLD, false)] {
        for row in rows {
            let said = play(*row, is_warm).await;
            let (fault, host, ask, answer, then) = row;
            if said != (String::from(*answer), *then) {
                wrong.push(format!(
                    "{fault:?}, host {host}, {ask:?}, warm {is_warm}: {said:?}, not {answer} and {then}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn play((fault, host, ask, _, _): Row, is_warm: bool) -> (String, &'static str) {
    let bench = Bench::new(MakerProfile::plain_profile(), host == "on");
    if is_warm {
        bench.read().await.unwrap();
    }
    if !fault.is_empty() {
        bench.wrong(fault);
    }
    let command = match ask {
        Read => None,
        On => Some(PowerCommand::On),
        Soft => Some(PowerCommand::SoftOff),
        Off => Some(PowerCommand::Off),
    };
    let said = match command {
        None => word(bench.read().await.map(PowerReading::as_str), false),
        Some(command) => word(bench.send(command).await.map(CommandAnswer::as_str), true),
    };
    after(120 * SECOND).await;
    (said, if bench.is_on() { "on" } else { "off" })
}

/// A `?` marks a failed command that may have taken effect.
fn word(said: Result<&'static str, BmcFault>, is_command: bool) -> String {
    match said {
        Ok(word) => word.to_owned(),
        Err(fault) if is_command && fault.may_have_run => format!("{:?}?", fault.class),
        Err(fault) => format!("{:?}", fault.class),
    }
}
