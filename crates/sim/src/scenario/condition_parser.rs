//! Parses the conditions of a script.

use dogwatch_core::reboot::RebootPhase;
use dogwatch_core::schedule::ScheduleReason;

use super::condition::ScenarioCondition;
use super::lock_caller::ANSWER_WORDS;

pub(super) const CONDITION_FORMS: &str = "NODE phase=waiting|draining|holding|rebooting|returning|none, NODE boots=N, NODE commands=N, NODE pods=N, \
     NODE cordoned, NODE uncordoned, NODE ready, NODE not-ready, NODE gone, NODE there, NODE says REASON, \
     NODE shows CONDITION, NODE hides CONDITION, NODE made=N, lock NAME free, lock NAME held by NODE|HOLDER, NAME leads, nobody leads, \
     HOST answered WORD|nothing, host/NAME on|off|proved-off|not-proved-off|offs=N, \
     OBJECT has ANNOTATION, OBJECT lacks ANNOTATION, remediation NAME open|succeeded|failed, node-reboot NAME open|succeeded|failed, schedule NAME REASON, rollout POLICY canary|soaking|ramping|halted|none, pods APP=N, fewest-pods APP=N, pod-templates APP=N, most-out=N, rebooted=N, clean";

pub fn parse_condition(words: &[String]) -> Result<ScenarioCondition, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let condition = match words.as_slice() {
        ["clean"] => Some(ScenarioCondition::Clean),
        [text] => match text.split_once('=') {
            Some(("most-out", most)) => parse_number(most).map(ScenarioCondition::MostOut),
            Some(("rebooted", nodes)) => parse_number(nodes).map(ScenarioCondition::Rebooted),
            Some(_) | None => None,
        },
        ["pods", text] => parse_app_count(text, ScenarioCondition::Pods),
        ["fewest-pods", text] => parse_app_count(text, ScenarioCondition::FewestPods),
        ["pod-templates", text] => parse_app_count(text, ScenarioCondition::PodTemplates),
        ["lock", name, "free"] => Some(ScenarioCondition::Lock((*name).into(), None)),
        ["lock", name, "held", "by", node] => Some(ScenarioCondition::Lock(
            (*name).into(),
            Some((*node).into()),
        )),
        ["nobody", "leads"] => Some(ScenarioCondition::Leads(None)),
        [name, "leads"] => Some(ScenarioCondition::Leads(Some((*name).into()))),
        [host, state] if host.starts_with("host/") => {
            parse_host_condition(&host["host/".len()..], state)
        }
        ["schedule", name, reason] => {
            let reason = ScheduleReason::parse(reason);
            reason.map(|reason| ScenarioCondition::Schedule((*name).into(), reason))
        }
        ["rollout", policy, phase] => {
            let mut phases = ROLLOUT_PHASES.into_iter();
            let known = phases.find(|(known, _)| known == phase);
            known.map(|(_, phase)| ScenarioCondition::Rollout((*policy).into(), phase))
        }
        [node, state] => parse_node_condition(node, state),
        [subject, verb, object] => parse_verb_condition(subject, verb, object),
        _ => None,
    };
    condition.ok_or_else(|| {
        format!(
            "{:?} is not a condition: write one of {CONDITION_FORMS}",
            words.join(" ")
        )
    })
}

/// `APP=N`.
fn parse_app_count(
    text: &str,
    condition: fn(String, usize) -> ScenarioCondition,
) -> Option<ScenarioCondition> {
    let (app, count) = text.split_once('=')?;
    Some(condition(app.to_owned(), parse_number(count)?))
}

/// A condition of three words: its subject, what it does, and an object.
fn parse_verb_condition(subject: &str, verb: &str, object: &str) -> Option<ScenarioCondition> {
    let (name, other) = (subject.to_owned(), object.to_owned());
    Some(match (verb, object) {
        ("has", _) => ScenarioCondition::Annotated(name, other, true),
        ("lacks", _) => ScenarioCondition::Annotated(name, other, false),
        ("says", _) => ScenarioCondition::Says(name, other),
        ("shows", _) => ScenarioCondition::Shows(name, other, true),
        ("hides", _) => ScenarioCondition::Shows(name, other, false),
        ("answered", "nothing") => ScenarioCondition::Answered(name, None),
        ("answered", word) => {
            let word = ANSWER_WORDS.into_iter().find(|known| *known == word)?;
            ScenarioCondition::Answered(name, Some(word))
        }
        (outcome_of, outcome) if subject == "remediation" || subject == "node-reboot" => {
            let mut outcomes = REQUEST_OUTCOMES.into_iter();
            let (_, status) = outcomes.find(|(known, _)| *known == outcome)?;
            ScenarioCondition::Succeeded(format!("{subject}/{outcome_of}"), status)
        }
        _ => return None,
    })
}

fn parse_node_condition(node: &str, state: &str) -> Option<ScenarioCondition> {
    let node = node.to_owned();
    if let Some((name, value)) = state.split_once('=') {
        return match name {
            "phase" => {
                let (_, phase) = PHASES.iter().find(|(name, _)| *name == value)?;
                Some(ScenarioCondition::Phase(node, *phase))
            }
            "boots" => Some(ScenarioCondition::Boots(node, parse_number(value)?)),
            "made" => Some(ScenarioCondition::Made(node, parse_number(value)?)),
            "commands" => Some(ScenarioCondition::Commands(node, parse_number(value)?)),
            "pods" => Some(ScenarioCondition::PodsOn(node, parse_number(value)?)),
            _ => None,
        };
    }
    Some(match state {
        "cordoned" => ScenarioCondition::Cordoned(node, true),
        "uncordoned" => ScenarioCondition::Cordoned(node, false),
        "ready" => ScenarioCondition::Ready(node, true),
        "not-ready" => ScenarioCondition::Ready(node, false),
        "there" => ScenarioCondition::There(node, true),
        "gone" => ScenarioCondition::There(node, false),
        _ => return None,
    })
}

fn parse_host_condition(host: &str, state: &str) -> Option<ScenarioCondition> {
    let host = host.to_owned();
    Some(match state {
        "on" => ScenarioCondition::Powered(host, true),
        "off" => ScenarioCondition::Powered(host, false),
        "proved-off" => ScenarioCondition::ProvedOff(host, true),
        "not-proved-off" => ScenarioCondition::ProvedOff(host, false),
        other => ScenarioCondition::PowerOffs(host, parse_number(other.strip_prefix("offs=")?)?),
    })
}

fn parse_number(text: &str) -> Option<usize> {
    text.parse().ok()
}

const REQUEST_OUTCOMES: [(&str, &str); 3] = [
    ("open", "Unknown"),
    ("succeeded", "True"),
    ("failed", "False"),
];

const ROLLOUT_PHASES: [(&str, Option<&str>); 5] = [
    ("canary", Some("Canary")),
    ("soaking", Some("Soaking")),
    ("ramping", Some("Ramping")),
    ("halted", Some("Halted")),
    ("none", None),
];

const PHASES: [(&str, Option<RebootPhase>); 6] = [
    ("none", None),
    ("waiting", Some(RebootPhase::Waiting)),
    ("draining", Some(RebootPhase::Draining)),
    ("holding", Some(RebootPhase::Holding)),
    ("rebooting", Some(RebootPhase::Rebooting)),
    ("returning", Some(RebootPhase::Returning)),
];
