//! Runs any ClusterLabs fence agent as a driver: PDUs, hypervisors, clouds.
//!
//! An agent is a program that reads options on its standard input, performs one action and reports
//! the result in its exit code. It waits until it has read the requested state. A call waits for it
//! no longer than for any other driver: at the deadline the agent is killed with its process group,
//! and the next reading shows the result.
//!
//! Source: ClusterLabs' Fence Agent API; specification §3.3.

mod agents;
mod answer;
#[cfg(test)]
mod fuzz_tests;
mod input;
mod metadata;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dogwatch_core::power::{
    BmcFault, BmcInfo, CallCost, CommandAnswer, FaultClass, PowerCommand, PowerReading,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use metadata::AgentMetadata;
use tempfile::NamedTempFile;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::child::{self, ChildCommand, ChildExit};
use crate::{Bmc, Credentials};

/// Where agents written in Python look for a CA: those with `requests`, and those with OpenSSL's
/// defaults.
const CA_VARIABLES: [&str; 2] = ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"];

/// One device behind one fence agent.
#[derive(Debug)]
pub struct FenceDriver {
    program: PathBuf,
    target: FenceTarget,
    credentials: Credentials,
    verify: bool,
    /// `ca.crt` of the Secret, as a file that exists as long as the driver.
    ca: Option<NamedTempFile>,
    metadata: OnceCell<AgentMetadata>,
    /// Held while a command runs.
    command_lock: Mutex<()>,
}

/// The agent and its device; the fields of `BmcAddress::Fence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceTarget {
    /// The program's name, `fence_…`.
    pub agent: String,
    /// Name or IP address; empty if the agent needs none.
    pub host: String,
    /// The agent's `ipport`.
    pub port: Option<u16>,
    pub options: BTreeMap<String, String>,
}

impl FenceDriver {
    /// Makes a driver for the agent of this name in `folder`. It runs nothing yet.
    ///
    /// # Errors
    /// An agent or option is refused, or the credentials cannot be passed to an agent.
    pub fn new(
        folder: &Path,
        target: FenceTarget,
        credentials: &Credentials,
        verify: bool,
    ) -> Result<Self, BmcFault> {
        agents::check_agent(&target.agent)?;
        agents::check_options(&target.agent, &target.options)?;
        check_credentials(credentials)?;
        Ok(Self {
            program: folder.join(&target.agent),
            target,
            credentials: credentials.clone(),
            verify,
            ca: credentials.ca.as_deref().map(write_ca_file).transpose()?,
            metadata: OnceCell::new(),
            command_lock: Mutex::new(()),
        })
    }

    /// Reads the agent's metadata once, and checks that the agent may be used.
    async fn load_metadata(&self, until: Instant) -> Result<&AgentMetadata, BmcFault> {
        let ask = || async {
            let agent = &self.target.agent;
            let ended = self.run_agent("action=metadata\n", until).await?;
            if ended.code != Some(0) {
                return Err(answer::parse_failure(agent, &ended, ""));
            }
            let metadata = AgentMetadata::parse(agent, &ended.stdout)?;
            agents::check_metadata_options(agent, |option| metadata.has_option(option))?;
            agents::check_fabric(agent, metadata.is_fabric)?;
            Ok(metadata)
        };
        let metadata = self.metadata.get_or_try_init(ask).await;
        // Reading metadata changes nothing.
        metadata.map_err(|fault| BmcFault::without_effect(fault.class, fault.message))
    }

    async fn run_action(&self, action: &str, until: Instant) -> Result<ChildExit, BmcFault> {
        let metadata = self.load_metadata(until).await?;
        if !metadata.has_action(action) {
            let message = format!("{} has no action {action}", self.target.agent);
            return Err(BmcFault::without_effect(FaultClass::Unsupported, message));
        }
        let input = input::render_stdin(
            action,
            &self.target,
            &self.credentials,
            self.verify,
            metadata,
        )?;
        self.run_agent(&input, until).await
    }

    async fn run_agent(&self, input: &str, until: Instant) -> Result<ChildExit, BmcFault> {
        let ca = self.ca.as_ref().map(NamedTempFile::path);
        let environment: Vec<_> = ca
            .iter()
            .flat_map(|path| CA_VARIABLES.map(|name| (name, *path)))
            .collect();
        let call = ChildCommand {
            program: &self.program,
            arguments: &[],
            environment: &environment,
            input,
        };
        let within = until.saturating_duration_since(Instant::now());
        Ok(child::run_child(&call, within).await?)
    }

    async fn read_power_state(&self, until: Instant) -> Result<PowerReading, BmcFault> {
        let ended = self.run_action("status", until).await?;
        let password = self.credentials.password.reveal();
        answer::parse_power_status(&self.target.agent, &ended, password)
    }

    async fn switch_power(
        &self,
        command: PowerCommand,
        until: Instant,
    ) -> Result<CommandAnswer, BmcFault> {
        let action = agent_action(command).ok_or_else(|| {
            let message = "fence agents do not support a soft power-off";
            BmcFault::without_effect(FaultClass::Unsupported, message)
        })?;
        let turn = tokio::time::timeout_at(until, self.command_lock.lock()).await;
        let _turn = turn.map_err(|_| {
            let message = "another command to this device was under way until the deadline";
            BmcFault::without_effect(FaultClass::TimedOut, message)
        })?;
        let ended = self.run_action(action, until).await?;
        let password = self.credentials.password.reveal();
        answer::parse_command_answer(&self.target.agent, &ended, password)
    }

    /// A reading proves that the agent can log in and finds the plug.
    async fn probe_device(&self, until: Instant) -> Result<BmcInfo, BmcFault> {
        self.read_power_state(until).await?;
        let metadata = self.load_metadata(until).await?;
        let can = |command: &PowerCommand| {
            agent_action(*command).is_some_and(|action| metadata.has_action(action))
        };
        let commands = vec![PowerCommand::On, PowerCommand::Off];
        let commands: Vec<_> = commands.into_iter().filter(can).collect();
        if commands.is_empty() {
            let message = format!(
                "{} has no actions on and off, so it cannot switch the power",
                self.target.agent
            );
            return Err(BmcFault::without_effect(FaultClass::Unsupported, message));
        }
        Ok(BmcInfo {
            system_uuid: None,
            commands,
            product: Some(self.target.agent.clone()),
        })
    }
}

impl Bmc for FenceDriver {
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

    /// Each run logs in and out.
    fn close_session(&self, _within: Duration) -> BoxFuture<'_, ()> {
        futures::future::ready(()).boxed()
    }
}

/// An agent's `off` cuts the power at once. Its `reboot` is not used, because "off" could not be
/// observed.
fn agent_action(command: PowerCommand) -> Option<&'static str> {
    match command {
        PowerCommand::On => Some("on"),
        PowerCommand::Off => Some("off"),
        PowerCommand::SoftOff => None,
    }
}

fn check_credentials(credentials: &Credentials) -> Result<(), BmcFault> {
    let words = [&credentials.username[..], credentials.password.reveal()];
    if words.iter().any(|word| word.chars().any(char::is_control)) {
        let message = "user or password has a line break or another control character";
        return Err(BmcFault::without_effect(
            FaultClass::WrongCredentials,
            message,
        ));
    }
    // Agents put the user name unquoted into ssh's command line. A second word would be an option
    // of ssh, and ssh options can run programs, here in the controller.
    let user = &credentials.username;
    if user.starts_with('-') || user.contains(|c: char| c.is_whitespace() || "'\"".contains(c)) {
        let message = "the user name begins with '-', or has a blank or a quotation mark, which no fence agent can be \
                       handed";
        return Err(BmcFault::without_effect(
            FaultClass::WrongCredentials,
            message,
        ));
    }
    Ok(())
}

fn write_ca_file(ca: &[u8]) -> Result<NamedTempFile, BmcFault> {
    let write = || {
        let mut file = NamedTempFile::new()?;
        file.write_all(ca)?;
        Ok::<_, std::io::Error>(file)
    };
    write().map_err(|error| {
        let message = format!("no file for ca.crt could be written: {error}");
        BmcFault::without_effect(FaultClass::Refused, message)
    })
}
