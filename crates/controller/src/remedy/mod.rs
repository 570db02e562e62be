//! Remediation: a failed machine is proved off, its Node is released, and it comes back.
//!
//! **For:** `dogwatch controller --components remediation`; [`RemediationBoard`] for whoever wants to know.
//! **May touch:** what [`RemedyClient`](dogwatch_k8s::remedy::RemedyClient) may; hosts' power through
//! [`PowerBoard`] alone, by keys.
//! **Promises:**
//! - Nothing is written while this process does not lead for as long as the call may take; who lost the
//!   lead remembers nothing.
//! - One job for each case: trouble, a BMC or a call that hangs delay no other (L1).
//! - A release is made on the proof that was asked for right before it (S2).
//!
//! Decided in `dogwatch_core::remedy`. Source: specification §4.

mod answers;
mod around;
mod board;
mod calls;
mod eyes;
mod hands;
mod job;
mod lead;
mod note;
mod tally;
mod words;

use std::sync::Arc;

use dogwatch_core::power;
use dogwatch_core::remedy::Config;

use self::calls::Calls;
use self::job::Means;
use self::lead::Remediator;
use crate::Context;
use crate::power::PowerBoard;

pub use board::{RemediationBoard, Shown};

/// What the flags say, and where the power side shows itself.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The guards.
    pub config: Config,
    /// What is known of hosts' power.
    pub power: PowerBoard,
    /// How their power is kept: a proof goes by it.
    pub power_config: power::Config,
    /// Where it is shown what is decided.
    pub board: RemediationBoard,
}

/// Remediates while this process leads.
pub async fn run(context: Context, settings: Settings) {
    let leadership = context.leadership.clone();
    let stop = context.stop.clone();
    let calls = Arc::new(Calls::new(&context));
    let means = Means {
        hands: calls,
        clock: context.clock.clone(),
        leadership: leadership.clone(),
        power: settings.power.clone(),
        power_config: settings.power_config,
    };
    leadership
        .while_leading(&stop, |_| {
            Remediator::new(context.clone(), settings.clone(), means.clone()).lead()
        })
        .await;
}
