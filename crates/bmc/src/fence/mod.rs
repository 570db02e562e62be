//! Any ClusterLabs fence agent as a driver: PDUs, hypervisors, clouds.
//!
//! An agent is a program that reads options on its standard input, does one action and says by its exit code how it ended. It
//! waits until it has seen the state that was asked for, and we wait for it no longer than for any other call: past the
//! deadline it is killed with its group, and reading tells what came of it.
//!
//! Source: ClusterLabs' Fence Agent API; specification §3.3.

mod agents;
mod answer;
mod input;
mod metadata;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dogwatch_core::power::{About, Answer, Class, Command, Cost, Fault, Reading};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use metadata::Metadata;
use tempfile::NamedTempFile;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::child::{self, Call, Ended};
use crate::{Bmc, Credentials};

/// Where the agents written in Python find a CA: those with `requests`, those with OpenSSL's own defaults.
const CA_VARIABLES: [&str; 2] = ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"];

/// One device behind one agent.
#[derive(Debug)]
pub struct Fence {
    program: PathBuf,
    target: Target,
    credentials: Credentials,
    verify: bool,
    /// `ca.crt` of the Secret: a file for as long as the driver is there.
    ca: Option<NamedTempFile>,
    metadata: OnceCell<Metadata>,
    /// Held while a command is under way.
    turn: Mutex<()>,
}

/// Which agent, for which device; the fields of `Address::Fence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `fence_…`.
    pub agent: String,
    /// Name or IP address; empty where the agent wants none.
    pub host: String,
    /// The agent's `ipport`.
    pub port: Option<u16>,
    /// Further options by name.
    pub options: BTreeMap<String, String>,
}

impl Fence {
    /// The agent of this name in `folder`. Nothing is run yet.
    ///
    /// # Errors
    /// An agent or an option that is refused, and credentials that cannot be handed over.
    pub fn new(
        folder: &Path,
        target: Target,
        credentials: &Credentials,
        verify: bool,
    ) -> Result<Self, Fault> {
        agents::check_agent(&target.agent)?;
        agents::check_options(&target.agent, &target.options)?;
        check_credentials(credentials)?;
        Ok(Self {
            program: folder.join(&target.agent),
            target,
            credentials: credentials.clone(),
            verify,
            ca: credentials.ca.as_deref().map(written).transpose()?,
            metadata: OnceCell::new(),
            turn: Mutex::new(()),
        })
    }

    /// What the agent says of itself, asked once, and whether it may be used.
    async fn metadata(&self, until: Instant) -> Result<&Metadata, Fault> {
        let ask = || async {
            let agent = &self.target.agent;
            let ended = self.run("action=metadata\n", until).await?;
            if ended.code != Some(0) {
                return Err(answer::failure(agent, &ended, ""));
            }
            let metadata = Metadata::parse(agent, &ended.stdout)?;
            agents::check_telltales(agent, |option| metadata.has(option))?;
            agents::check_fabric(agent, metadata.is_fabric)?;
            Ok(metadata)
        };
        let metadata = self.metadata.get_or_try_init(ask).await;
        // Asking changes nothing.
        metadata.map_err(|fault| Fault::harmless(fault.class, fault.message))
    }

    async fn act(&self, action: &str, until: Instant) -> Result<Ended, Fault> {
        let metadata = self.metadata(until).await?;
        if !metadata.can(action) {
            let message = format!("{} has no action {action}", self.target.agent);
            return Err(Fault::harmless(Class::Unsupported, message));
        }
        let input = input::lines(
            action,
            &self.target,
            &self.credentials,
            self.verify,
            metadata,
        )?;
        self.run(&input, until).await
    }

    async fn run(&self, input: &str, until: Instant) -> Result<Ended, Fault> {
        let ca = self.ca.as_ref().map(NamedTempFile::path);
        let environment: Vec<_> = ca
            .iter()
            .flat_map(|path| CA_VARIABLES.map(|name| (name, *path)))
            .collect();
        let call = Call {
            program: &self.program,
            arguments: &[],
            environment: &environment,
            input,
        };
        let within = until.saturating_duration_since(Instant::now());
        Ok(child::run(&call, within).await?)
    }

    async fn read_power(&self, until: Instant) -> Result<Reading, Fault> {
        let ended = self.act("status", until).await?;
        let password = self.credentials.password.reveal();
        answer::reading(&self.target.agent, &ended, password)
    }

    async fn switch(&self, command: Command, until: Instant) -> Result<Answer, Fault> {
        let action = action(command).ok_or_else(|| {
            let message = "fence agents know no soft power-off";
            Fault::harmless(Class::Unsupported, message)
        })?;
        let turn = tokio::time::timeout_at(until, self.turn.lock()).await;
        let _turn = turn.map_err(|_| {
            let message = "another command to this device was under way until the deadline";
            Fault::harmless(Class::TimedOut, message)
        })?;
        let ended = self.act(action, until).await?;
        let password = self.credentials.password.reveal();
        answer::answer(&self.target.agent, &ended, password)
    }

    /// Reading shows that it can log in and knows the plug.
    async fn look(&self, until: Instant) -> Result<About, Fault> {
        self.read_power(until).await?;
        let metadata = self.metadata(until).await?;
        let can = |command: &Command| action(*command).is_some_and(|action| metadata.can(action));
        let commands = vec![Command::On, Command::Off];
        let commands: Vec<_> = commands.into_iter().filter(can).collect();
        if commands.is_empty() {
            let message = format!("{} switches nothing", self.target.agent);
            return Err(Fault::harmless(Class::Unsupported, message));
        }
        Ok(About {
            system_uuid: None,
            commands,
            product: Some(self.target.agent.clone()),
        })
    }
}

impl Bmc for Fence {
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

    /// Each run logs in and out.
    fn close(&self, _within: Duration) -> BoxFuture<'_, ()> {
        futures::future::ready(()).boxed()
    }
}

/// An agent's `off` takes the power away at once; its `reboot` would not let us see that it is off.
fn action(command: Command) -> Option<&'static str> {
    match command {
        Command::On => Some("on"),
        Command::Off => Some("off"),
        Command::SoftOff => None,
    }
}

fn check_credentials(credentials: &Credentials) -> Result<(), Fault> {
    let words = [&credentials.username[..], credentials.password.reveal()];
    if words.iter().any(|word| word.chars().any(char::is_control)) {
        let message = "user or password has a line break or another control character";
        return Err(Fault::harmless(Class::WrongCredentials, message));
    }
    // Agents write it into ssh's command line as it is: a further word of it would be an option of ssh, and
    // ssh runs what its options say, in the controller.
    let user = &credentials.username;
    if user.starts_with('-') || user.contains(|c: char| c.is_whitespace() || "'\"".contains(c)) {
        let message = "the user name begins with '-', or has a blank or a quotation mark, which no fence agent can be \
                       handed";
        return Err(Fault::harmless(Class::WrongCredentials, message));
    }
    Ok(())
}

fn written(ca: &[u8]) -> Result<NamedTempFile, Fault> {
    let write = || {
        let mut file = NamedTempFile::new()?;
        file.write_all(ca)?;
        Ok::<_, std::io::Error>(file)
    };
    write().map_err(|error| {
        let message = format!("no file for ca.crt could be written: {error}");
        Fault::harmless(Class::Refused, message)
    })
}
