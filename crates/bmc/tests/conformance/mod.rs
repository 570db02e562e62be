//! What every driver promises, whatever it speaks; each runs it against its own counterpart.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Answer, Bmc, Class, Command, Reading};
use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};

/// The drivers of one kind, each with another counterpart.
pub struct Devices {
    /// A host that is on.
    pub good: Arc<dyn Bmc>,
    /// The same host, another password.
    pub wrong_password: Arc<dyn Bmc>,
    /// Nothing listens there.
    pub dead: Arc<dyn Bmc>,
    /// Takes everything and answers nothing.
    pub silent: Arc<dyn Bmc>,
    /// What a soft power-off comes to.
    pub soft: Soft,
    /// How long one call may take.
    pub within: Duration,
    /// How long the counterpart may take until a command shows.
    pub shows_within: Duration,
}

/// What a counterpart does with a soft power-off.
#[allow(dead_code)] // each counterpart uses one of them
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Soft {
    /// The host shuts down.
    ShutsDown,
    /// The driver does not know it.
    Unsupported,
}

const ALL: [Command; 3] = [Command::On, Command::SoftOff, Command::Off];
/// How long silence is waited for: by all at once, and whoever has no deadline of its own waits on.
const SILENCE: Duration = Duration::from_secs(5);
/// What a machine that is busy adds to a deadline.
const SLACK: Duration = Duration::from_mins(2);
const DEAD: [Class; 2] = [Class::Unreachable, Class::TimedOut];

/// Runs every row, in order.
pub async fn holds(devices: &Devices) {
    is_read_and_described(devices).await;
    goes_off_and_on(devices).await;
    what_is_there_already_is_no_fault(devices).await;
    shuts_down_softly_or_says_that_it_cannot(devices).await;
    a_wrong_password_reads_nothing(devices).await;
    nothing_there_is_said_within_the_deadline(devices).await;
    silence_ends_at_the_deadline(devices).await;
    devices.good.close(devices.within).await;
    shows(devices, Reading::On, "after it was closed").await;
}

async fn is_read_and_described(devices: &Devices) {
    shows(devices, Reading::On, "at first").await;
    let about = devices.good.about(devices.within).await.expect("about");
    assert!(
        about.can(Command::On) && about.can(Command::Off),
        "{about:?}"
    );
    assert_eq!(
        about.can(Command::SoftOff),
        devices.soft == Soft::ShutsDown,
        "{about:?}"
    );
    shows(devices, Reading::On, "a look changes nothing").await;
}

async fn goes_off_and_on(devices: &Devices) {
    send(devices, Command::Off).await;
    shows(devices, Reading::Off, "after off").await;
    send(devices, Command::On).await;
    shows(devices, Reading::On, "after on").await;
}

async fn what_is_there_already_is_no_fault(devices: &Devices) {
    send(devices, Command::On).await;
    shows(devices, Reading::On, "on, when it is on").await;
    send(devices, Command::Off).await;
    shows(devices, Reading::Off, "off").await;
    send(devices, Command::Off).await;
    shows(devices, Reading::Off, "off, when it is off").await;
    send(devices, Command::On).await;
    shows(devices, Reading::On, "and on again").await;
}

async fn shuts_down_softly_or_says_that_it_cannot(devices: &Devices) {
    match devices.soft {
        Soft::ShutsDown => {
            send(devices, Command::SoftOff).await;
            shows(devices, Reading::Off, "after a soft off").await;
            send(devices, Command::On).await;
        }
        Soft::Unsupported => {
            let said = devices.good.send(Command::SoftOff, devices.within).await;
            let fault = said.expect_err("a soft off");
            assert_eq!(
                (fault.class, fault.may_have_run),
                (Class::Unsupported, false),
                "{fault}"
            );
        }
    }
    shows(devices, Reading::On, "after the soft row").await;
}

async fn a_wrong_password_reads_nothing(devices: &Devices) {
    let fault = devices.wrong_password.read(devices.within).await;
    let fault = fault.expect_err("a reading with a wrong password");
    let may_be = [Class::WrongCredentials, Class::Refused, Class::Unreachable];
    assert!(may_be.contains(&fault.class), "{fault:?}");
    let fault = devices.wrong_password.about(devices.within).await;
    fault.expect_err("a look with a wrong password");
    let sent = devices
        .wrong_password
        .send(Command::Off, devices.within)
        .await;
    sent.expect_err("an off with a wrong password");
    shows(devices, Reading::On, "a wrong password did nothing").await;
}

async fn nothing_there_is_said_within_the_deadline(devices: &Devices) {
    let fault = ends(devices.within, devices.dead.read(devices.within)).await;
    let fault = fault.expect_err("a reading of nothing");
    assert!(DEAD.contains(&fault.class), "{fault:?}");
    for command in ALL {
        let sent = ends(devices.within, devices.dead.send(command, devices.within)).await;
        sent.expect_err("nothing takes no command");
    }
}

/// All at once: the rows after this one would wait six deadlines.
async fn silence_ends_at_the_deadline(devices: &Devices) {
    let silent = &devices.silent;
    let read = ends(SILENCE, silent.read(SILENCE));
    let about = ends(SILENCE, silent.about(SILENCE));
    let sends = ALL.map(|command| ends(SILENCE, silent.send(command, SILENCE)));
    let close = ends(SILENCE, silent.close(SILENCE));
    let (read, about, sent, ()) = futures::join!(read, about, join_all(sends), close);
    let fault = read.expect_err("a reading of silence");
    assert!(DEAD.contains(&fault.class), "{fault:?}");
    about.expect_err("silence says nothing of itself");
    assert!(sent.iter().all(Result::is_err), "{sent:?}");
}

async fn send(devices: &Devices, command: Command) {
    let sent = devices.good.send(command, devices.within).await;
    let is_taken = matches!(sent, Ok(Answer::Accepted | Answer::AlreadyThere));
    assert!(is_taken, "{command}: {sent:?}");
}

async fn shows(devices: &Devices, wanted: Reading, when: &str) {
    let until = Instant::now() + devices.shows_within;
    loop {
        let reading = devices.good.read(devices.within).await;
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
