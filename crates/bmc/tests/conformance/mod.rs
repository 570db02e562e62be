//! The promises of every driver. Each driver runs these tests against its own counterpart.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Bmc, CommandAnswer, FaultClass, PowerCommand, PowerReading};
use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};

/// Drivers of one kind, each with another counterpart.
pub struct Devices {
    pub good: Arc<dyn Bmc>,
    /// The same host with a wrong password.
    pub wrong_password: Arc<dyn Bmc>,
    /// Nothing listens there.
    pub dead: Arc<dyn Bmc>,
    /// A counterpart that accepts everything and answers nothing.
    pub silent: Arc<dyn Bmc>,
    /// What a soft power-off does.
    pub soft: Soft,
    /// How long one call may take.
    pub within: Duration,
    /// The longest time from a command until a reading shows its effect.
    pub shows_within: Duration,
}

/// What a counterpart does with a soft power-off.
#[allow(dead_code)] // each counterpart uses one of them
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Soft {
    ShutsDown,
    /// The driver does not support it.
    Unsupported,
}

const ALL: [PowerCommand; 3] = [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off];
/// The deadline of calls to the silent counterpart, all at once. A driver that ignores it would
/// wait longer.
const SILENCE: Duration = Duration::from_secs(5);
/// Added to a deadline for a busy machine.
const SLACK: Duration = Duration::from_mins(2);
const DEAD: [FaultClass; 2] = [FaultClass::Unreachable, FaultClass::TimedOut];

pub async fn holds(devices: &Devices) {
    is_read_and_described(devices).await;
    goes_off_and_on(devices).await;
    what_is_there_already_is_no_fault(devices).await;
    shuts_down_softly_or_says_that_it_cannot(devices).await;
    a_wrong_password_reads_nothing(devices).await;
    nothing_there_is_said_within_the_deadline(devices).await;
    silence_ends_at_the_deadline(devices).await;
    devices.good.close_session(devices.within).await;
    shows(devices, PowerReading::On, "after it was closed").await;
}

async fn is_read_and_described(devices: &Devices) {
    shows(devices, PowerReading::On, "at first").await;
    let about = devices
        .good
        .describe_device(devices.within)
        .await
        .expect("about");
    assert!(
        about.supports_command(PowerCommand::On) && about.supports_command(PowerCommand::Off),
        "{about:?}"
    );
    assert_eq!(
        about.supports_command(PowerCommand::SoftOff),
        devices.soft == Soft::ShutsDown,
        "{about:?}"
    );
    shows(devices, PowerReading::On, "a look changes nothing").await;
}

async fn goes_off_and_on(devices: &Devices) {
    send(devices, PowerCommand::Off).await;
    shows(devices, PowerReading::Off, "after off").await;
    send(devices, PowerCommand::On).await;
    shows(devices, PowerReading::On, "after on").await;
}

async fn what_is_there_already_is_no_fault(devices: &Devices) {
    send(devices, PowerCommand::On).await;
    shows(devices, PowerReading::On, "on, when it is on").await;
    send(devices, PowerCommand::Off).await;
    shows(devices, PowerReading::Off, "off").await;
    send(devices, PowerCommand::Off).await;
    shows(devices, PowerReading::Off, "off, when it is off").await;
    send(devices, PowerCommand::On).await;
    shows(devices, PowerReading::On, "and on again").await;
}

async fn shuts_down_softly_or_says_that_it_cannot(devices: &Devices) {
    match devices.soft {
        Soft::ShutsDown => {
            send(devices, PowerCommand::SoftOff).await;
            shows(devices, PowerReading::Off, "after a soft off").await;
            send(devices, PowerCommand::On).await;
        }
        Soft::Unsupported => {
            let said = devices
                .good
                .send_command(PowerCommand::SoftOff, devices.within)
                .await;
            let fault = said.expect_err("a soft off");
            assert_eq!(
                (fault.class, fault.may_have_run),
                (FaultClass::Unsupported, false),
                "{fault}"
            );
        }
    }
    shows(devices, PowerReading::On, "after the soft row").await;
}

async fn a_wrong_password_reads_nothing(devices: &Devices) {
    let fault = devices.wrong_password.read_power(devices.within).await;
    let fault = fault.expect_err("a reading with a wrong password");
    let may_be = [
        FaultClass::WrongCredentials,
        FaultClass::Refused,
        FaultClass::Unreachable,
    ];
    assert!(may_be.contains(&fault.class), "{fault:?}");
    let fault = devices.wrong_password.describe_device(devices.within).await;
    fault.expect_err("a look with a wrong password");
    let sent = devices
        .wrong_password
        .send_command(PowerCommand::Off, devices.within)
        .await;
    sent.expect_err("an off with a wrong password");
    shows(devices, PowerReading::On, "a wrong password did nothing").await;
}

async fn nothing_there_is_said_within_the_deadline(devices: &Devices) {
    let fault = ends(devices.within, devices.dead.read_power(devices.within)).await;
    let fault = fault.expect_err("a reading of nothing");
    assert!(DEAD.contains(&fault.class), "{fault:?}");
    for command in ALL {
        let sent = ends(
            devices.within,
            devices.dead.send_command(command, devices.within),
        )
        .await;
        sent.expect_err("nothing takes no command");
    }
}

/// All calls at once: one after the other they would wait for six deadlines.
async fn silence_ends_at_the_deadline(devices: &Devices) {
    let silent = &devices.silent;
    let read = ends(SILENCE, silent.read_power(SILENCE));
    let about = ends(SILENCE, silent.describe_device(SILENCE));
    let sends = ALL.map(|command| ends(SILENCE, silent.send_command(command, SILENCE)));
    let close = ends(SILENCE, silent.close_session(SILENCE));
    let (read, about, sent, ()) = futures::join!(read, about, join_all(sends), close);
    let fault = read.expect_err("a reading of silence");
    assert!(DEAD.contains(&fault.class), "{fault:?}");
    about.expect_err("silence says nothing of itself");
    assert!(sent.iter().all(Result::is_err), "{sent:?}");
}

async fn send(devices: &Devices, command: PowerCommand) {
    let sent = devices.good.send_command(command, devices.within).await;
    let is_taken = matches!(
        sent,
        Ok(CommandAnswer::Accepted | CommandAnswer::AlreadyThere)
    );
    assert!(is_taken, "{command}: {sent:?}");
}

async fn shows(devices: &Devices, wanted: PowerReading, when: &str) {
    let until = Instant::now() + devices.shows_within;
    loop {
        let reading = devices.good.read_power(devices.within).await;
        let reading = reading.unwrap_or_else(|fault| panic!("{when}: {fault:?}"));
        if reading == wanted {
            return;
        }
        assert!(
            Instant::now() < until,
            "{when}: {reading:?}, not {wanted:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

async fn ends<T>(within: Duration, call: impl Future<Output = T>) -> T {
    let ended = timeout(within + SLACK, call).await;
    ended.expect("a call ends within its deadline")
}
