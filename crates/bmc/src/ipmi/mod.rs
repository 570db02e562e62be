//! IPMI over LAN (RMCP+), spoken by `ipmitool`, which knows two decades of BMCs' quirks.
//!
//! Requests are sent raw: answers are bytes and completion codes. ipmitool's own `chassis power status` says "off" for an
//! answer that has no data at all.
//!
//! Source: IPMI 2.0 §28.2, §28.3; specification §3.3.

mod answer;
mod guid;
mod suites;
mod target;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use answer::{Trouble, bytes, printed, refusal};
use dogwatch_core::power::{About, Answer, Class, Command, Cost, Fault, Reading};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use suites::Suites;
pub use target::Target;
use target::check_credentials;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::child::{self, Call};
use crate::{Bmc, Credentials, Password};

/// Get Chassis Status.
const STATUS: [&str; 3] = ["raw", "0x00", "0x01"];
/// Chassis Control; the way follows.
const CONTROL: [&str; 3] = ["raw", "0x00", "0x02"];
/// Get System GUID.
const SYSTEM_GUID: [&str; 3] = ["raw", "0x06", "0x37"];
/// Current power state, last power event, miscellaneous state; the front panel's byte may lack (§28.2).
const STATUS_LENGTH: usize = 3;
const POWER_IS_ON: u8 = 1;
const NOT_IN_PRESENT_STATE: u8 = 0xd5;
/// With two tries a silent BMC costs 6 s (measured: 1 + 2 s, twice), with one 2 s.
const TWO_TRIES_NEED: Duration = Duration::from_secs(8);

/// One BMC that speaks IPMI. A cipher suite that worked is remembered for as long as it works.
#[derive(Debug)]
pub struct Ipmi {
    program: PathBuf,
    target: Target,
    username: String,
    password: Password,
    suites: Suites,
    /// Held while a command is under way.
    turn: Mutex<()>,
}

impl Ipmi {
    /// `program` is ipmitool: a path, or a name that is looked for on PATH. Nothing is sent yet.
    ///
    /// # Errors
    /// Credentials that IPMI cannot carry, and a privilege level that it does not know.
    pub fn new(program: &Path, target: Target, credentials: &Credentials) -> Result<Self, Fault> {
        target.check_privilege()?;
        check_credentials(credentials)?;
        Ok(Self {
            program: program.to_owned(),
            suites: Suites::new(target.cipher_suite),
            target,
            username: credentials.username.clone(),
            password: credentials.password.clone(),
            turn: Mutex::new(()),
        })
    }

    /// Asks what changes nothing, with the cipher suites that may do, until one makes a session. While none is known each
    /// has its share of the time: an old BMC may not answer at all where it is asked for 17.
    async fn ask(&self, request: &[&str], until: Instant) -> Result<String, Trouble> {
        let order = self.suites.in_order();
        let mut answered = Err(Trouble::no_suite());
        for (at, suite) in order.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now());
            let share = match self.suites.known() {
                Some(_) => left,
                None => left / u32::try_from(order.len() - at).expect("one or two"),
            };
            answered = self.ask_with(*suite, request, share).await;
            let another_may_do = match &answered {
                Err(Trouble::Suite(_)) => true,
                Err(Trouble::Fault(fault)) => fault.class == Class::TimedOut,
                Ok(_) | Err(Trouble::Completion(_) | Trouble::Silent) => false,
            };
            if !another_may_do {
                break;
            }
        }
        answered
    }

    /// One session with one request; whether the cipher suite did is remembered.
    async fn ask_with(
        &self,
        suite: u8,
        request: &[&str],
        within: Duration,
    ) -> Result<String, Trouble> {
        let answered = self.run(suite, request, within).await;
        match &answered {
            Ok(_) | Err(Trouble::Completion(_) | Trouble::Silent) => self.suites.worked(suite),
            Err(Trouble::Suite(_)) => self.suites.failed(suite),
            Err(Trouble::Fault(_)) => {}
        }
        answered
    }

    async fn run(&self, suite: u8, request: &[&str], within: Duration) -> Result<String, Trouble> {
        let tries = if within < TWO_TRIES_NEED { "1" } else { "2" };
        let (port, suite) = (self.target.port.to_string(), suite.to_string());
        let mut arguments = vec!["-v", "-I", "lanplus", "-N", "1", "-R", tries];
        arguments.extend(["-H", &self.target.host, "-p", &port, "-U", &self.username]);
        arguments.extend(["-L", &self.target.privilege, "-C", &suite]);
        arguments.extend(["-f", "/dev/stdin"]);
        arguments.extend(request);
        let call = Call {
            program: &self.program,
            arguments: &arguments,
            environment: &[],
            input: self.password.reveal(),
        };
        let ended = child::run(&call, within).await;
        let ended = ended.map_err(|failure| Trouble::Fault(failure.into()))?;
        printed(ended, self.password.reveal())
    }

    async fn read_power(&self, until: Instant) -> Result<Reading, Fault> {
        let printed = self.ask(&STATUS, until).await.map_err(fault_of)?;
        power_of(&bytes(&printed)?)
    }

    async fn switch(&self, command: Command, until: Instant) -> Result<Answer, Fault> {
        self.target.check_may_switch()?;
        let turn = tokio::time::timeout_at(until, self.turn.lock()).await;
        let _turn = turn.map_err(|_| {
            let message = "another command to this BMC was under way until the deadline";
            Fault::harmless(Class::TimedOut, message)
        })?;
        let suite = self.known_suite(until).await?;
        let request = [&CONTROL[..], &[way(command)]].concat();
        let left = until.saturating_duration_since(Instant::now());
        match self.ask_with(suite, &request, left).await {
            Ok(_) => Ok(Answer::Accepted),
            // Where it is the state that is wanted; reading tells. A soft power-off is refused for other reasons.
            Err(Trouble::Completion(NOT_IN_PRESENT_STATE)) if command != Command::SoftOff => {
                Ok(Answer::AlreadyThere)
            }
            Err(trouble) => Err(fault_of(trouble)),
        }
    }

    /// A command is sent with one cipher suite that is known to do: were several tried, nobody would know whether one of
    /// them had run it. A failure here has sent nothing.
    async fn known_suite(&self, until: Instant) -> Result<u8, Fault> {
        if let Some(suite) = self.suites.known() {
            return Ok(suite);
        }
        let harmless = |fault: Fault| Fault::harmless(fault.class, fault.message);
        self.read_power(until).await.map_err(harmless)?;
        let known = self.suites.known();
        known.ok_or_else(|| fault_of(Trouble::no_suite()))
    }

    /// Reading shows that power control works. What the BMC does not tell of the rest is left out.
    async fn look(&self, until: Instant) -> Result<About, Fault> {
        self.target.check_may_switch()?;
        self.read_power(until).await?;
        let guid = self.ask(&SYSTEM_GUID, until).await;
        let info = self.ask(&["mc", "info"], until).await;
        Ok(About {
            system_uuid: guid
                .ok()
                .and_then(|printed| bytes(&printed).ok())
                .and_then(|bytes| guid::uuid(&bytes)),
            commands: vec![Command::On, Command::SoftOff, Command::Off],
            product: info.ok().as_deref().and_then(product),
        })
    }
}

impl Bmc for Ipmi {
    fn read(&self, within: Duration) -> BoxFuture<'_, Result<Reading, Fault>> {
        self.read_power(Instant::now() + within).boxed()
    }

    fn send(&self, command: Command, within: Duration) -> BoxFuture<'_, Result<Answer, Fault>> {
        self.switch(command, Instant::now() + within).boxed()
    }

    fn about(&self, within: Duration) -> BoxFuture<'_, Result<About, Fault>> {
        self.look(Instant::now() + within).boxed()
    }

    fn cost(&self) -> Cost {
        Cost::Process
    }

    /// Each call makes a session of its own and closes it.
    fn close(&self, _within: Duration) -> BoxFuture<'_, ()> {
        futures::future::ready(()).boxed()
    }
}

/// §28.3. The diagnostic interrupt, cycle and reset are not among our commands.
fn way(command: Command) -> &'static str {
    match command {
        Command::Off => "0x00",
        Command::On => "0x01",
        Command::SoftOff => "0x05",
    }
}

/// Only a whole answer without the bit is "off".
fn power_of(bytes: &[u8]) -> Result<Reading, Fault> {
    if bytes.len() < STATUS_LENGTH {
        let message = format!("the chassis status has {} bytes, not 3 or 4", bytes.len());
        return Err(Fault::harmless(Class::Contradiction, message));
    }
    Ok(if bytes[0] & POWER_IS_ON == 0 {
        Reading::Off
    } else {
        Reading::On
    })
}

fn fault_of(trouble: Trouble) -> Fault {
    match trouble {
        Trouble::Suite(fault) | Trouble::Fault(fault) => fault,
        Trouble::Completion(code) => refusal(code),
        Trouble::Silent => {
            let message = "the BMC made a session and did not answer in it";
            Fault::unknown_end(Class::TimedOut, message)
        }
    }
}

/// `mc info`'s lines `Manufacturer Name` and `Product Name`, where they are known.
fn product(info: &str) -> Option<String> {
    let field = |name: &str| {
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(key, _)| key.trim() == name);
        let value = values.next()?.1.trim();
        (!value.is_empty() && !value.starts_with("Unknown")).then(|| value.to_owned())
    };
    let words: Vec<String> = [field("Manufacturer Name"), field("Product Name")]
        .into_iter()
        .flatten()
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}
