//! What `dogwatch power` takes.

use std::time::Duration;

use clap::{Args, Subcommand};
use dogwatch_core::duration;

use super::wish::Mode;
use crate::command::hosts::{Named, named};

/// What to do with the power.
#[derive(Debug, Subcommand)]
pub enum Power {
    /// Wants a host on (spec.online); keys that hold it off are named and left alone
    On(OnArgs),
    /// Wants a host off (spec.online): asks its operating system first, and cuts the power then
    Off(OffArgs),
    /// Reboots a host once, with proof that it was off (annotation reboot.metal3.io)
    Cycle(CycleArgs),
    /// Shows the power of a host
    Status(super::status::StatusArgs),
    /// Holds a host off until the key is released (annotation reboot.metal3.io/KEY)
    Hold(HoldArgs),
    /// Removes a key that holds a host off
    Release(ReleaseArgs),
}

/// Which host, why, and for how long to wait.
#[derive(Debug, Args)]
pub struct Asking {
    /// The host: NAMESPACE/NAME, or NAME with -n NAMESPACE
    #[arg(value_name = "NAMESPACE/NAME", value_parser = named)]
    pub host: Named,

    /// Why; said in an Event on the host, and beside the mode of an annotation
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,

    /// Who asks; the name of the user at this machine where it is not given
    #[arg(long, value_name = "NAME")]
    pub requester: Option<String>,

    /// Follows the host until it has come about
    #[arg(long)]
    pub wait: bool,

    /// How long to follow it; for ever where it is not given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "wait")]
    pub timeout: Option<Duration>,
}

/// How the power goes off.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct How {
    /// Cuts the power at once
    #[arg(long)]
    pub hard: bool,

    /// Asks the operating system to shut down first; this is what happens by itself
    #[arg(long)]
    pub soft: bool,
}

/// `dogwatch power on`.
#[derive(Debug, Args)]
pub struct OnArgs {
    /// Which host, and why.
    #[command(flatten)]
    pub asking: Asking,
}

/// `dogwatch power off`.
#[derive(Debug, Args)]
pub struct OffArgs {
    /// Which host, and why.
    #[command(flatten)]
    pub asking: Asking,

    /// Does not ask where the host carries a Node that is not drained
    #[arg(long, short)]
    pub yes: bool,
}

/// `dogwatch power cycle`.
#[derive(Debug, Args)]
pub struct CycleArgs {
    /// Which host, and why.
    #[command(flatten)]
    pub asking: Asking,

    /// How the power goes off.
    #[command(flatten)]
    pub how: How,

    /// Also on a host that is not provisioned
    #[arg(long)]
    pub force: bool,

    /// Does not ask where the host carries a Node that is not drained
    #[arg(long, short)]
    pub yes: bool,
}

/// `dogwatch power hold`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// Which host, and why.
    #[command(flatten)]
    pub asking: Asking,

    /// How the power goes off.
    #[command(flatten)]
    pub how: How,

    /// Whose hold it is; others' keys stay
    #[arg(long, value_name = "KEY", value_parser = super::decide::key)]
    pub key: String,

    /// Also on a host that is not provisioned
    #[arg(long)]
    pub force: bool,

    /// Does not ask where the host carries a Node that is not drained
    #[arg(long, short)]
    pub yes: bool,
}

/// `dogwatch power release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// Which host, and why.
    #[command(flatten)]
    pub asking: Asking,

    /// Which key
    #[arg(long, value_name = "KEY", value_parser = super::decide::key)]
    pub key: String,

    /// Does not ask where something else than `dogwatch power hold` wrote the key
    #[arg(long, short)]
    pub yes: bool,
}

impl How {
    /// Which of them was said.
    pub fn mode(&self) -> Mode {
        match (self.hard, self.soft) {
            (true, _) => Mode::Hard,
            (false, true) => Mode::Soft,
            (false, false) => Mode::NotSaid,
        }
    }
}
