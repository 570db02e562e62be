//! When a write may be sent: [`super::super::turns`].

use dogwatch_core::power::StatusWrite;
use futures::FutureExt as _;

use super::super::turns::{Turn, presses};
use super::Keeper;
use super::work::Done;

/// Whose turn it is when a write is begun.
pub(super) enum WhoseTurn {
    /// It has come.
    Ours(Turn),
    /// Among those that press; it is taken when it comes.
    Next,
    /// Among hosts whose last write failed.
    AfterTrouble,
}

/// The turn for a write that only tells.
#[derive(Default)]
pub(super) enum Telling {
    /// Nothing is to be told.
    #[default]
    Nothing,
    /// It has not come yet.
    Awaited,
    /// It is given up if it is not wanted any more.
    Here(Turn),
}

impl Keeper {
    /// Whether somebody waits for this write.
    pub(super) fn presses(&self, write: &StatusWrite) -> bool {
        presses(&self.spot.lock().seen.host.status, &write.status)
    }

    /// `None`: it only tells, and is decided anew when its turn has come. At the end of the process nobody
    /// decides anew.
    pub(super) fn whose_turn(&mut self, presses: bool) -> Option<WhoseTurn> {
        if self.writes.until().is_some() {
            return Some(WhoseTurn::AfterTrouble);
        }
        if presses || self.is_finishing {
            return Some(WhoseTurn::Next);
        }
        match std::mem::take(&mut self.telling) {
            Telling::Here(turn) => Some(WhoseTurn::Ours(turn)),
            Telling::Nothing => self.ask_for_turn().map(WhoseTurn::Ours),
            Telling::Awaited => {
                self.telling = Telling::Awaited;
                None
            }
        }
    }

    /// What was to be told is not, or has been.
    pub(super) fn give_up_turn(&mut self) {
        if matches!(self.telling, Telling::Here(_)) {
            self.telling = Telling::Nothing;
        }
    }

    fn ask_for_turn(&mut self) -> Option<Turn> {
        let turns = self.services.turns.clone();
        let mut turn = async move { turns.telling().await }.boxed();
        // Mostly nobody else is there.
        if let Some(turn) = (&mut turn).now_or_never() {
            return Some(turn);
        }
        self.telling = Telling::Awaited;
        self.jobs.push(turn.map(Done::Turn).boxed());
        None
    }
}
