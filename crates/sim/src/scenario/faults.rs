//! What goes wrong with calls, by rules that a script adds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::minds::Minds;
use super::stage::coordinator_user;
use super::words::Words;
use crate::api::{FaultEffect, RequestInfo};

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// As the API server's own faults have it.
    Effect(FaultEffect),
    /// The caller's process is killed before the call is sent, or after it was answered.
    Kill {
        /// After it.
        after: bool,
    },
}

/// The calls that something goes wrong with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whose: a node's coordinator, or a controller.
    pub node: String,
    /// The verb; `None`: any.
    pub verb: Option<String>,
    /// `leases`, `pods/eviction`; `None`: any.
    pub resource: Option<String>,
    /// So many matching calls go well before.
    pub skip: u32,
    /// So many go wrong.
    pub times: u32,
    /// How.
    pub fault: Fault,
}

impl Rule {
    /// The coordinator is killed at its so-many-th call from now on, the first being 1.
    pub fn kill(node: String, call: u32, after: bool) -> Self {
        let fault = Fault::Kill { after };
        Self {
            node,
            verb: None,
            resource: None,
            skip: call.saturating_sub(1),
            times: 1,
            fault,
        }
    }

    fn matches(&self, request: &RequestInfo) -> bool {
        let verb = request.verb.map(crate::api::Verb::as_str);
        is_of(&request.user, &self.node)
            && self
                .verb
                .as_deref()
                .is_none_or(|wanted| Some(wanted) == verb)
            && self
                .resource
                .as_deref()
                .is_none_or(|wanted| wanted == resource(request))
    }
}

/// Whether this user is a node's coordinator, or any run of a controller, of this name.
fn is_of(user: &str, name: &str) -> bool {
    let run = user.strip_prefix("controller/");
    let of_controller = run.and_then(|run| run.rsplit_once('-'));
    user == coordinator_user(name) || of_controller.is_some_and(|(of, _)| of == name)
}

fn resource(request: &RequestInfo) -> String {
    match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    }
}

/// Reads `NAME next [N] VERB RESOURCE of NODE [by=TIME] [code=N]`.
pub fn parse(name: &str, words: &mut Words) -> Result<Rule, String> {
    let by = words.duration("by")?;
    let code = words.number("code")?;
    let late = by.unwrap_or(Duration::from_secs(5));
    let effect = match name {
        "lose" => FaultEffect::LoseRequest,
        "lose-answer" => FaultEffect::LoseAnswer,
        "duplicate" => FaultEffect::Duplicate(late),
        "delay" => FaultEffect::DelayRequest(late),
        "delay-answer" => FaultEffect::DelayAnswer(late),
        "refuse" => FaultEffect::Refuse(
            u16::try_from(code.unwrap_or(500)).map_err(|error| error.to_string())?,
        ),
        other => return Err(format!("{other:?} is no command")),
    };
    words.expect("next")?;
    let first = words.next("the verb")?;
    let (times, verb) = match first.parse::<u32>() {
        Ok(times) => (times, words.next("the verb")?),
        Err(_) => (1, first),
    };
    let resource = words.next("the resource")?;
    words.expect("of")?;
    let node = words.next("the node")?;
    Ok(Rule {
        node,
        verb: Some(verb),
        resource: Some(resource),
        skip: 0,
        times,
        fault: Fault::Effect(effect),
    })
}

/// The rules that stand. Clones are one box.
#[derive(Clone, Default)]
pub struct FaultBox(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    rules: Vec<Rule>,
    processes: BTreeMap<String, Victim>,
}

/// Whom a rule can kill, as a person calls it, and how.
struct Victim {
    words: &'static str,
    kill: Box<dyn Fn() + Send + Sync>,
}

impl FaultBox {
    /// Adds a rule.
    pub fn add(&self, rule: Rule) {
        self.inner().rules.push(rule);
    }

    /// No rule any more.
    pub fn clear(&self) {
        self.inner().rules.clear();
    }

    /// A node's coordinator, or a controller, that a rule can kill.
    pub(super) fn know(
        &self,
        name: &str,
        words: &'static str,
        kill: impl Fn() + Send + Sync + 'static,
    ) {
        let kill = Box::new(kill);
        let victim = Victim { words, kill };
        self.inner().processes.insert(name.to_owned(), victim);
    }

    /// What goes wrong with this request: at most one thing, by the oldest rule.
    pub(super) fn of(&self, request: &RequestInfo, minds: &Minds) -> Vec<FaultEffect> {
        let mut inner = self.inner();
        let Inner { rules, processes } = &mut *inner;
        let mut effects = Vec::new();
        for rule in rules.iter_mut().filter(|rule| rule.matches(request)) {
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            if rule.times > 0 && effects.is_empty() {
                rule.times -= 1;
                effects.push(rule.take_effect(request, processes, minds));
            }
        }
        rules.retain(|rule| rule.times > 0);
        effects
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("nothing panics while rules change")
    }
}

impl Rule {
    fn take_effect(
        &self,
        request: &RequestInfo,
        processes: &BTreeMap<String, Victim>,
        minds: &Minds,
    ) -> FaultEffect {
        let verb = request.verb.map_or("", crate::api::Verb::as_str);
        let call = format!("{verb} {}", resource(request));
        match &self.fault {
            Fault::Effect(effect) => {
                minds.note(&self.node, format!("{}: {call}", words_of(effect)));
                effect.clone()
            }
            Fault::Kill { after } => {
                let when = if *after { "after" } else { "before" };
                if let Some(victim) = processes.get(&self.node) {
                    minds.note(&self.node, format!("{} {when}: {call}", victim.words));
                    (victim.kill)();
                }
                if *after {
                    FaultEffect::LoseAnswer
                } else {
                    FaultEffect::LoseRequest
                }
            }
        }
    }
}

fn words_of(effect: &FaultEffect) -> String {
    let time = |time: &Duration| dogwatch_core::duration::format(*time);
    match effect {
        FaultEffect::LoseRequest => "a call is lost".into(),
        FaultEffect::LoseAnswer => "an answer is lost".into(),
        FaultEffect::DelayRequest(late) => format!("a call is {} late", time(late)),
        FaultEffect::DelayAnswer(late) => format!("an answer is {} late", time(late)),
        FaultEffect::Duplicate(late) => format!("a call arrives again {} later", time(late)),
        FaultEffect::Refuse(code) => format!("a call is refused with {code}"),
        FaultEffect::CutWatches => "its watches break off".into(),
    }
}
