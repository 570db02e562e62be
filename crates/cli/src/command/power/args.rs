//! The arguments of `dogwatch power`.

use std::time::Duration;

use clap::{Args, Subcommand};
use dogwatch_core::duration;

use super::request::PowerOffMode;
use crate::resource::{ObjectArg, parse_host};

#[derive(Debug, Subcommand)]
pub enum PowerSubcommand {
    /// Switch a host on (spec.online); keys that hold it off are listed and stay
    On(PowerOnArgs),
    /// Switch a host off (spec.online): ask its operating system first, then cut the power
    Off(PowerOffArgs),
    /// Reboot a host once, with proof that it was off (annotation reboot.metal3.io)
    Cycle(PowerCycleArgs),
    /// Show the power of a host
    Status(super::status::PowerStatusArgs),
    /// Hold a host off until the key is released (annotation reboot.metal3.io/KEY)
    Hold(PowerHoldArgs),
    /// Remove a key that holds a host off
    Release(PowerReleaseArgs),
}

#[derive(Debug, Args)]
pub struct PowerRequestArgs {
    /// Host: NAMESPACE/NAME, or NAME with -n NAMESPACE
    #[arg(value_name = "NAMESPACE/NAME", value_parser = parse_host)]
    pub host: ObjectArg,

    /// Reason, written to an Event on the host, and into an annotation beside its mode
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,

    /// Name of the requester; defaults to the local user name
    #[arg(long, value_name = "NAME")]
    pub requester: Option<String>,

    /// Follow the host until the request is done
    #[arg(long)]
    pub wait: bool,

    /// How long to follow the host; without a limit unless given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_duration, requires = "wait")]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct PowerOffModeArgs {
    /// Cut the power at once
    #[arg(long)]
    pub hard: bool,

    /// Ask the operating system to shut down first; this is the default
    #[arg(long)]
    pub soft: bool,
}

#[derive(Debug, Args)]
pub struct PowerOnArgs {
    #[command(flatten)]
    pub asking: PowerRequestArgs,
}

#[derive(Debug, Args)]
pub struct PowerOffArgs {
    #[command(flatten)]
    pub asking: PowerRequestArgs,

    /// Do not ask for confirmation when the host's Node is not drained
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct PowerCycleArgs {
    #[command(flatten)]
    pub asking: PowerRequestArgs,

    #[command(flatten)]
    pub how: PowerOffModeArgs,

    /// Accept a host that is not provisioned
    #[arg(long)]
    pub force: bool,

    /// Do not ask for confirmation when the host's Node is not drained
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct PowerHoldArgs {
    #[command(flatten)]
    pub asking: PowerRequestArgs,

    #[command(flatten)]
    pub how: PowerOffModeArgs,

    /// Key of the hold; other keys stay
    #[arg(long, value_name = "KEY", value_parser = super::decide::parse_key)]
    pub key: String,

    /// Accept a host that is not provisioned
    #[arg(long)]
    pub force: bool,

    /// Do not ask for confirmation when the host's Node is not drained
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct PowerReleaseArgs {
    #[command(flatten)]
    pub asking: PowerRequestArgs,

    /// Key to remove
    #[arg(long, value_name = "KEY", value_parser = super::decide::parse_key)]
    pub key: String,

    /// Do not ask for confirmation when another program than `dogwatch power hold` wrote the key
    #[arg(long, short)]
    pub yes: bool,
}

impl PowerOffModeArgs {
    pub fn off_mode(&self) -> PowerOffMode {
        match (self.hard, self.soft) {
            (true, _) => PowerOffMode::Hard,
            (false, true) => PowerOffMode::Soft,
            (false, false) => PowerOffMode::Unspecified,
        }
    }
}
