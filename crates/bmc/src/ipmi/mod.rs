//! IPMI over LAN (RMCP+) through `ipmitool`, which handles two decades of BMC quirks.
//!
//! Requests are sent raw, so that answers are bytes and completion codes. ipmitool's own `chassis
//! power status` prints "off" for an answer that contains no data.
//!
//! Source: IPMI 2.0 §28.2, §28.3; specification §3.3.

mod answer;
#[cfg(test)]
mod fuzz_tests;
mod guid;
mod suites;
mod target;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use answer::{IpmiError, completion_code_fault, parse_ipmitool_output, parse_raw_bytes};
use dogwatch_core::power::{
    BmcFault, BmcInfo, CallCost, CommandAnswer, FaultClass, PowerCommand, PowerReading,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use suites::CipherSuites;
pub use target::IpmiTarget;
use target::check_credentials;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::child::{self, ChildCommand};
use crate::{Bmc, Credentials, Password};

const GET_CHASSIS_STATUS: [&str; 3] = ["raw", "0x00", "0x01"];
/// Chassis Control; the control byte follows.
const CHASSIS_CONTROL: [&str; 3] = ["raw", "0x00", "0x02"];
const GET_SYSTEM_GUID: [&str; 3] = ["raw", "0x06", "0x37"];
/// Current power state, last power event, miscellaneous state; the front panel's byte may be
/// missing (§28.2).
const CHASSIS_STATUS_LENGTH: usize = 3;
const POWER_IS_ON: u8 = 1;
const NOT_IN_PRESENT_STATE: u8 = 0xd5;
/// With two tries a silent BMC costs 6 s (measured: 1 + 2 s, twice), with one try 2 s.
const TWO_TRIES_TIMEOUT: Duration = Duration::from_secs(8);

/// One BMC that speaks IPMI. The driver remembers a cipher suite for as long as it works.
#[derive(Debug)]
pub struct IpmiDriver {
    program: PathBuf,
    target: IpmiTarget,
    username: String,
    password: Password,
    suites: CipherSuites,
    /// Held while a command runs.
    command_lock: Mutex<()>,
}

impl IpmiDriver {
    /// `program` is ipmitool: a path, or a name that is looked up in PATH. Nothing is sent yet.
    ///
    /// # Errors
    /// IPMI cannot carry the credentials, or does not know the privilege level.
    pub fn new(
        program: &Path,
        target: IpmiTarget,
        credentials: &Credentials,
    ) -> Result<Self, BmcFault> {
        target.check_privilege()?;
        check_credentials(credentials)?;
        Ok(Self {
            program: program.to_owned(),
            suites: CipherSuites::new(target.cipher_suite),
            target,
            username: credentials.username.clone(),
            password: credentials.password.clone(),
            command_lock: Mutex::new(()),
        })
    }

    /// Sends a read-only request with each possible cipher suite until one makes a session. While
    /// no suite is known, each gets its share of the time: an old BMC may not answer at all if
    /// asked for suite 17.
    async fn query_with_suites(
        &self,
        request: &[&str],
        until: Instant,
    ) -> Result<String, IpmiError> {
        let order = self.suites.suites_in_order();
        let mut answered = Err(IpmiError::no_suite_left());
        for (at, suite) in order.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now());
            let share = match self.suites.working_suite() {
                Some(_) => left,
                None => left / u32::try_from(order.len() - at).expect("one or two"),
            };
            answered = self.query_with_suite(*suite, request, share).await;
            let another_may_do = match &answered {
                Err(IpmiError::Suite(_)) => true,
                Err(IpmiError::Fault(fault)) => fault.class == FaultClass::TimedOut,
                Ok(_) | Err(IpmiError::Completion(_) | IpmiError::Silent) => false,
            };
            if !another_may_do {
                break;
            }
        }
        answered
    }

    /// Makes one session with one request, and records whether the cipher suite worked.
    async fn query_with_suite(
        &self,
        suite: u8,
        request: &[&str],
        within: Duration,
    ) -> Result<String, IpmiError> {
        let answered = self.run_ipmitool(suite, request, within).await;
        match &answered {
            Ok(_) | Err(IpmiError::Completion(_) | IpmiError::Silent) => {
                self.suites.record_success(suite);
            }
            Err(IpmiError::Suite(_)) => self.suites.record_failure(suite),
            Err(IpmiError::Fault(_)) => {}
        }
        answered
    }

    async fn run_ipmitool(
        &self,
        suite: u8,
        request: &[&str],
        within: Duration,
    ) -> Result<String, IpmiError> {
        let tries = if within < TWO_TRIES_TIMEOUT { "1" } else { "2" };
        let (port, suite) = (self.target.port.to_string(), suite.to_string());
        let mut arguments = vec!["-v", "-I", "lanplus", "-N", "1", "-R", tries];
        arguments.extend(["-H", &self.target.host, "-p", &port, "-U", &self.username]);
        arguments.extend(["-L", &self.target.privilege, "-C", &suite]);
        arguments.extend(["-f", "/dev/stdin"]);
        arguments.extend(request);
        let call = ChildCommand {
            program: &self.program,
            arguments: &arguments,
            environment: &[],
            input: self.password.reveal(),
        };
        let ended = child::run_child(&call, within).await;
        let ended = ended.map_err(|failure| IpmiError::Fault(failure.into()))?;
        parse_ipmitool_output(ended, self.password.reveal())
    }

    async fn read_power_state(&self, until: Instant) -> Result<PowerReading, BmcFault> {
        let printed = self
            .query_with_suites(&GET_CHASSIS_STATUS, until)
            .await
            .map_err(fault_from_error)?;
        parse_chassis_status(&parse_raw_bytes(&printed)?)
    }

    async fn switch_power(
        &self,
        command: PowerCommand,
        until: Instant,
    ) -> Result<CommandAnswer, BmcFault> {
        self.target.check_switch_privilege()?;
        let turn = tokio::time::timeout_at(until, self.command_lock.lock()).await;
        let _turn = turn.map_err(|_| {
            let message = "another command to this BMC was under way until the deadline";
            BmcFault::without_effect(FaultClass::TimedOut, message)
        })?;
        let suite = self.known_suite(until).await?;
        let request = [&CHASSIS_CONTROL[..], &[chassis_control_byte(command)]].concat();
        let left = until.saturating_duration_since(Instant::now());
        match self.query_with_suite(suite, &request, left).await {
            Ok(_) => Ok(CommandAnswer::Accepted),
            // "Not in present state" may mean that the state is already reached; a reading decides.
            // A soft power-off is refused for other reasons too.
            Err(IpmiError::Completion(NOT_IN_PRESENT_STATE))
                if command != PowerCommand::SoftOff =>
            {
                Ok(CommandAnswer::AlreadyThere)
            }
            Err(trouble) => Err(fault_from_error(trouble)),
        }
    }

    /// Returns a cipher suite that is known to work; a command is sent with that one only. With
    /// several attempts it would be unknown whether one of them had run the command. A failure here
    /// has sent no command.
    async fn known_suite(&self, until: Instant) -> Result<u8, BmcFault> {
        if let Some(suite) = self.suites.working_suite() {
            return Ok(suite);
        }
        let harmless = |fault: BmcFault| BmcFault::without_effect(fault.class, fault.message);
        self.read_power_state(until).await.map_err(harmless)?;
        let known = self.suites.working_suite();
        known.ok_or_else(|| fault_from_error(IpmiError::no_suite_left()))
    }

    /// A reading proves that power control works. Other facts that the BMC does not report are left
    /// out.
    async fn probe_device(&self, until: Instant) -> Result<BmcInfo, BmcFault> {
        self.target.check_switch_privilege()?;
        self.read_power_state(until).await?;
        let guid = self.query_with_suites(&GET_SYSTEM_GUID, until).await;
        let info = self.query_with_suites(&["mc", "info"], until).await;
        Ok(BmcInfo {
            system_uuid: guid
                .ok()
                .and_then(|printed| parse_raw_bytes(&printed).ok())
                .and_then(|bytes| guid::uuid_from_guid(&bytes)),
            commands: vec![PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off],
            product: info.ok().as_deref().and_then(parse_product_name),
        })
    }
}

impl Bmc for IpmiDriver {
    fn read_power(&self, within: Duration) -> BoxFuture<'_, Result<PowerReading, BmcFault>> {
        self.read_power_state(Instant::now() + within).boxed()
    }

    fn send_command(
        &self,
        command: PowerCommand,
        within: Duration,
    ) -> BoxFuture<'_, Result<CommandAnswer, BmcFault>> {
        self.switch_power(command, Instant::now() + within).boxed()
    }

    fn describe_device(&self, within: Duration) -> BoxFuture<'_, Result<BmcInfo, BmcFault>> {
        self.probe_device(Instant::now() + within).boxed()
    }

    fn call_cost(&self) -> CallCost {
        CallCost::Process
    }

    /// Each call makes its own session and closes it.
    fn close_session(&self, _within: Duration) -> BoxFuture<'_, ()> {
        futures::future::ready(()).boxed()
    }
}

/// §28.3. Diagnostic interrupt, cycle and reset are not used.
fn chassis_control_byte(command: PowerCommand) -> &'static str {
    match command {
        PowerCommand::Off => "0x00",
        PowerCommand::On => "0x01",
        PowerCommand::SoftOff => "0x05",
    }
}

/// Only a complete answer without the power bit means "off".
fn parse_chassis_status(bytes: &[u8]) -> Result<PowerReading, BmcFault> {
    if bytes.len() < CHASSIS_STATUS_LENGTH {
        let message = format!("the chassis status has {} bytes, not 3 or 4", bytes.len());
        return Err(BmcFault::without_effect(FaultClass::Contradiction, message));
    }
    Ok(if bytes[0] & POWER_IS_ON == 0 {
        PowerReading::Off
    } else {
        PowerReading::On
    })
}

fn fault_from_error(trouble: IpmiError) -> BmcFault {
    match trouble {
        IpmiError::Suite(fault) | IpmiError::Fault(fault) => fault,
        IpmiError::Completion(code) => completion_code_fault(code),
        IpmiError::Silent => {
            let message = "the BMC set up a session, but did not answer in it";
            BmcFault::with_unknown_effect(FaultClass::TimedOut, message)
        }
    }
}

/// The product from the lines `Manufacturer Name` and `Product Name` of `mc info`, if they are
/// known.
fn parse_product_name(info: &str) -> Option<String> {
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
