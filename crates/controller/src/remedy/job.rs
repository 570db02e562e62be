//! One case's work: what is to be looked at, the writes in their order, and what stands then.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::power;
use dogwatch_core::remedy::{Action, Case, Look, Release};
use dogwatch_process::clock::Clock;
use futures::future::join_all;
use tokio::time::timeout;
use tracing::{info, warn};

use super::hands::{Answer, Found, Hands, Trouble};
use super::words;
use crate::leader::Leadership;
use crate::power::PowerBoard;

/// How long one call may take, and how long the lead must last for a write to be sent: it is over when
/// another one can lead. The leader has 7 s and more left as long as its renewals are answered.
const CALL_WITHIN: Duration = Duration::from_secs(5);

/// An Event is tried for a minute.
const LAST_PAUSE: Duration = Duration::from_secs(32);

/// What every job is given. Clones are the same.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) hands: Arc<dyn Hands>,
    pub(super) clock: Clock,
    pub(super) leadership: Leadership,
    pub(super) power: PowerBoard,
    pub(super) power_config: power::Config,
}

/// One case's work.
pub(super) struct Job {
    pub(super) means: Means,
    pub(super) case: Case,
    /// Why, for the log.
    pub(super) reason: &'static str,
    pub(super) looks: Vec<Look>,
    pub(super) actions: Vec<Action>,
    pub(super) conditions: Vec<Write>,
    /// What is to be said once the actions are done.
    pub(super) events: Vec<Event>,
}

/// What came of it.
pub(super) struct Done {
    pub(super) case: Case,
    pub(super) answers: Vec<Answer>,
    /// What was found, and when that was answered.
    pub(super) found: Vec<(Found, Duration)>,
    /// The actions that were tried, and how they ended.
    pub(super) acts: Vec<(Action, &'static str)>,
    /// Its conditions were written, or it was tried.
    pub(super) told: Option<bool>,
    pub(super) trouble: Option<Trouble>,
    pub(super) events: Vec<Event>,
}

impl Job {
    /// Nothing to read, do or tell.
    pub(super) fn is_nothing(&self) -> bool {
        self.looks.is_empty() && self.actions.is_empty() && self.conditions.is_empty()
    }

    pub(super) async fn run(self) -> Done {
        let mut done = Done {
            case: self.case.clone(),
            answers: Vec::new(),
            found: Vec::new(),
            acts: Vec::new(),
            told: None,
            trouble: None,
            events: Vec::new(),
        };
        let (looked, ()) = tokio::join!(self.look(), self.act(&mut done));
        for found in looked {
            match found {
                Ok(found) => done.found.push(found),
                Err(trouble) => done.trouble = done.trouble.or(Some(trouble)),
            }
        }
        if done.acts.is_empty() {
            self.tell(&mut done).await;
        }
        if done.trouble.is_none() {
            done.events = self.events;
        }
        done
    }

    async fn look(&self) -> Vec<Result<(Found, Duration), Trouble>> {
        let looks = self.looks.iter();
        let looks = looks.map(|look| async move {
            let found = within(self.means.hands.look(&self.case, look)).await?;
            Ok((found, self.means.clock.now().mono))
        });
        join_all(looks).await
    }

    /// In their order, until one does not succeed.
    async fn act(&self, done: &mut Done) {
        for action in &self.actions {
            if let Err(why) = self.may(action) {
                done.trouble = Some(Trouble::Failed(why));
                return;
            }
            let subject = &self.case.subject;
            info!(%subject, reason = self.reason, "{}", words::verb(action));
            let now = self.means.clock.now();
            let hands = &self.means.hands;
            let act = hands.act(action, &self.conditions, now);
            let answer = within(act).await;
            let end = answer.as_ref().map_or_else(Trouble::end, |_| "done");
            done.acts.push((action.clone(), end));
            match answer {
                Ok(answer) => {
                    if matches!(action, Action::WriteStatus { .. }) {
                        done.told = Some(true);
                    }
                    done.answers.push(answer);
                }
                Err(trouble) => {
                    done.trouble = Some(trouble);
                    return;
                }
            }
        }
    }

    /// Whether this process may do it now.
    fn may(&self, action: &Action) -> Result<(), String> {
        if !self.means.leadership.leads_for(CALL_WITHIN) {
            return Err("this process does not lead, or not for long enough".to_owned());
        }
        let release = action.release();
        release.map_or(Ok(()), |release| self.means.is_still_off(release))
    }

    /// The conditions; after a write they are decided anew.
    async fn tell(&self, done: &mut Done) {
        let is_silent = self.conditions.is_empty();
        if is_silent || !self.means.leadership.leads_for(CALL_WITHIN) {
            return;
        }
        let now = self.means.clock.now();
        let tell = self.means.hands.tell(&self.case, &self.conditions, now);
        match within(tell).await {
            Ok(answer) => {
                done.told = Some(true);
                done.answers.push(answer);
            }
            // What is written for people holds nothing up.
            Err(trouble) => {
                let (subject, why) = (&self.case.subject, trouble.why());
                warn!(%subject, error = why, "cannot write conditions");
                done.told = Some(false);
            }
        }
    }
}

impl Means {
    /// The decision is some writes old by now: the proof is asked for once more, right before.
    fn is_still_off(&self, release: &Release) -> Result<(), String> {
        let before = release.cleared.proof();
        let at = self.clock.now();
        let now = self.power.proof(before.host(), &self.power_config, at);
        let is_same =
            |now: &power::OffProof| now.uid() == before.uid() && now.source() == before.source();
        if now.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        Err("the host is not proved off any more".to_owned())
    }
}

/// Says what is to be said about a case. What is not said is in the conditions as well.
pub(super) async fn say(means: Means, case: Case, events: Vec<Event>) {
    for event in &events {
        let mut pause = Duration::from_secs(1);
        while let Err(trouble) = say_once(&means, &case, event).await {
            let is_over = means.leadership.leads().is_none() || pause > LAST_PAUSE;
            if is_over || !matches!(trouble, Trouble::Failed(_)) {
                let (subject, error) = (&case.subject, trouble.why());
                warn!(%subject, event = event.reason, error, "cannot write an Event");
                break;
            }
            means
                .clock
                .sleep_until(means.clock.now().mono + pause)
                .await;
            pause *= 2;
        }
    }
}

async fn say_once(means: &Means, case: &Case, event: &Event) -> Result<(), Trouble> {
    if means.leadership.leads().is_none() {
        return Err(Trouble::Failed("this process does not lead".to_owned()));
    }
    within(means.hands.say(case, event, means.clock.now())).await
}

async fn within<T>(call: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    let late = || {
        let seconds = CALL_WITHIN.as_secs();
        Trouble::Failed(format!("no answer within {seconds} s"))
    };
    timeout(CALL_WITHIN, call).await.map_err(|_| late())?
}
