//! Faults in API calls, by rules that a script adds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_kubesim::api::{FaultEffect, RequestInfo, WatchEventFault, WatchEventInfo};

use super::call_rate::CallRates;
use super::decision_log::DecisionLog;
use super::line_words::LineWords;
use super::perturbation::{
    CallCounts, Perturbation, PerturbationPlan, PerturbedRequest, WriteCrash,
};
use super::scenario_cluster::COORDINATOR_PREFIX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedFault {
    /// A fault that the API server itself supports.
    Effect(FaultEffect),
    /// Kills the caller's process before the call is sent, or after it was answered.
    Kill {
        /// Kill after the answer.
        after: bool,
    },
}

/// The calls to which a fault applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedFaultRule {
    /// The caller: a node's coordinator, or a controller.
    pub node: String,
    /// The verb; `None`: any.
    pub verb: Option<String>,
    /// `leases`, `pods/eviction`; `None`: any.
    pub resource: Option<String>,
    /// How many matching calls succeed first.
    pub skip: u32,
    /// How many calls fail.
    pub times: u32,
    pub fault: ScriptedFault,
}

impl ScriptedFaultRule {
    /// Kills the coordinator at this call from now on, the first being 1.
    pub fn kill_at_call(node: String, call: u32, after: bool) -> Self {
        let fault = ScriptedFault::Kill { after };
        Self {
            node,
            verb: None,
            resource: None,
            skip: call.saturating_sub(1),
            times: 1,
            fault,
        }
    }

    fn for_perturbation(process: &str, perturbed: PerturbedRequest) -> Self {
        let fault = match perturbed {
            PerturbedRequest::Effect(effect) => ScriptedFault::Effect(effect),
            PerturbedRequest::Crash(crash) => ScriptedFault::Kill {
                after: crash == WriteCrash::After,
            },
        };
        Self {
            node: process.to_owned(),
            verb: None,
            resource: None,
            skip: 0,
            times: 1,
            fault,
        }
    }

    fn matches_request(&self, request: &RequestInfo) -> bool {
        let verb = request.verb.map(dogwatch_kubesim::api::ApiVerb::as_str);
        is_user_of(&request.user, &self.node)
            && self
                .verb
                .as_deref()
                .is_none_or(|wanted| Some(wanted) == verb)
            && self
                .resource
                .as_deref()
                .is_none_or(|wanted| wanted == full_resource(request))
    }
}

/// Whether this user is the coordinator of the node `name`, or any run of the controller `name`.
fn is_user_of(user: &str, name: &str) -> bool {
    process_of_user(user) == Some(name)
}

/// The node of a coordinator's user, or the name of a controller's.
fn process_of_user(user: &str) -> Option<&str> {
    if let Some(run) = user.strip_prefix("controller/") {
        return run.rsplit_once('-').map(|(name, _)| name);
    }
    user.strip_prefix(COORDINATOR_PREFIX)
}

fn full_resource(request: &RequestInfo) -> String {
    match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    }
}

/// Reads `NAME next [N] VERB RESOURCE of NODE [by=TIME] [code=N]`; `any` is every verb or resource.
pub fn parse_fault_rule(name: &str, words: &mut LineWords) -> Result<ScriptedFaultRule, String> {
    let by = words.duration_option("by")?;
    let code = words.number_option("code")?;
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
        other => return Err(format!("{other:?} is not a command")),
    };
    words.expect_word("next")?;
    let first = words.next_word("the verb")?;
    let (times, verb) = match first.parse::<u32>() {
        Ok(times) => (times, words.next_word("the verb")?),
        Err(_) => (1, first),
    };
    let resource = words.next_word("the resource")?;
    words.expect_word("of")?;
    let node = words.next_word("the node")?;
    let unless_any = |word: String| (word != "any").then_some(word);
    Ok(ScriptedFaultRule {
        node,
        verb: unless_any(verb),
        resource: unless_any(resource),
        skip: 0,
        times,
        fault: ScriptedFault::Effect(effect),
    })
}

/// The active rules. Clones share them.
#[derive(Clone, Default)]
pub struct FaultRules(Arc<Mutex<FaultRulesInner>>);

#[derive(Default)]
struct FaultRulesInner {
    rules: Vec<ScriptedFaultRule>,
    perturbations: PerturbationPlan,
    rates: CallRates,
    processes: BTreeMap<String, KillableProcess>,
}

/// A process that a rule can kill, with its name for messages.
struct KillableProcess {
    words: &'static str,
    kill: Box<dyn Fn() + Send + Sync>,
}

impl FaultRules {
    pub fn add_rule(&self, rule: ScriptedFaultRule) {
        self.lock_rules().rules.push(rule);
    }

    pub fn add_perturbation(&self, perturbation: Perturbation) {
        let mut inner = self.lock_rules();
        inner.perturbations.add_perturbation(perturbation);
    }

    /// What the coordinators and controllers received and sent so far.
    pub fn call_counts(&self) -> CallCounts {
        self.lock_rules().perturbations.counts.clone()
    }

    /// What was found since the last call: processes that call without a pause.
    pub(super) fn take_call_loops(&self) -> Vec<String> {
        self.lock_rules().rates.take_found()
    }

    /// Returns the fault for an event that a watch is about to deliver.
    pub(super) fn fault_of_event(
        &self,
        event: &WatchEventInfo,
        minds: &DecisionLog,
    ) -> Option<WatchEventFault> {
        let process = process_of_user(&event.user)?;
        let fault = self.lock_rules().perturbations.take_event(process, event)?;
        let what = match fault {
            WatchEventFault::Drop => "is lost",
            WatchEventFault::Hold(_) => "is late",
            WatchEventFault::Overtake => "is overtaken",
        };
        minds.record_note(process, format!("an event of {} {what}", event.resource));
        Some(fault)
    }

    /// Registers a coordinator or a controller that a rule can kill.
    pub(super) fn register_process(
        &self,
        name: &str,
        words: &'static str,
        kill: impl Fn() + Send + Sync + 'static,
    ) {
        let kill = Box::new(kill);
        let victim = KillableProcess { words, kill };
        self.lock_rules().processes.insert(name.to_owned(), victim);
    }

    /// Returns the fault for this request: at most one, from the oldest rule.
    pub(super) fn effects_on_request(
        &self,
        request: &RequestInfo,
        minds: &DecisionLog,
    ) -> Vec<FaultEffect> {
        let mut inner = self.lock_rules();
        let FaultRulesInner {
            rules,
            perturbations,
            rates,
            processes,
        } = &mut *inner;
        let process = process_of_user(&request.user);
        if process.is_some_and(|process| rates.exceeds_with_call(process)) {
            return vec![FaultEffect::LoseRequest];
        }
        let mut effects = Vec::new();
        if let Some(process) = process
            && let Some(perturbed) = perturbations.take_request(process, request)
        {
            let rule = ScriptedFaultRule::for_perturbation(process, perturbed);
            effects.push(rule.take_effect(request, processes, minds));
        }
        for rule in rules
            .iter_mut()
            .filter(|rule| rule.matches_request(request))
        {
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

    fn lock_rules(&self) -> std::sync::MutexGuard<'_, FaultRulesInner> {
        self.0.lock().expect("nothing panics while rules change")
    }
}

impl ScriptedFaultRule {
    fn take_effect(
        &self,
        request: &RequestInfo,
        processes: &BTreeMap<String, KillableProcess>,
        minds: &DecisionLog,
    ) -> FaultEffect {
        let verb = request
            .verb
            .map_or("", dogwatch_kubesim::api::ApiVerb::as_str);
        let call = format!("{verb} {}", full_resource(request));
        match &self.fault {
            ScriptedFault::Effect(effect) => {
                minds.record_note(&self.node, format!("{}: {call}", describe_effect(effect)));
                effect.clone()
            }
            ScriptedFault::Kill { after } => {
                let when = if *after { "after" } else { "before" };
                if let Some(victim) = processes.get(&self.node) {
                    minds.record_note(&self.node, format!("{} {when}: {call}", victim.words));
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

fn describe_effect(effect: &FaultEffect) -> String {
    let time = |time: &Duration| dogwatch_core::duration::format_duration(*time);
    match effect {
        FaultEffect::LoseRequest => "a call is lost".into(),
        FaultEffect::LoseAnswer => "an answer is lost".into(),
        FaultEffect::DelayRequest(late) => format!("a call is {} late", time(late)),
        FaultEffect::DelayAnswer(late) => format!("an answer is {} late", time(late)),
        FaultEffect::Duplicate(late) => format!("a call arrives again {} later", time(late)),
        FaultEffect::Refuse(code) => format!("a call is refused with {code}"),
        FaultEffect::CutWatches => "its watches break off".into(),
        FaultEffect::OlderList => "a list is older than the newest".into(),
    }
}
