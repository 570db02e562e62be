//! What the healer will do if nothing changes: the same decisions, at the times that they ask for.

use std::time::Duration;

use super::{Action, Case, Config, Look, NodeRead, Seen, Subject, decide, reason};
use crate::Now;
use crate::lock::{BETWEEN_HOLDER_READS, HolderNode, HolderReads, holder_node_name};
use crate::reboot::{HolderSeen, Parsed};

/// No more than this is looked ahead.
const MOST: usize = 8;

/// One thing that the healer decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When, on its monotonic clock.
    pub at: Duration,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Whether it writes something then.
    pub acts: bool,
}

/// What it decides about this object now, and then at each moment that it wants to look again, until it
/// would write something or need to see what is not known here. Empty: nothing is the matter.
///
/// What it would read afresh is answered by what was seen: as though nothing changed.
pub fn foresee(seen: &Seen, config: &Config, now: Now, subject: &Subject) -> Vec<Step> {
    let (mut seen, mut now) = (seen.clone(), now);
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..MOST {
        let cases = decide(&seen, config, now).into_iter();
        let Some(Case { decision, .. }) = cases.into_iter().find(|case| case.subject == *subject)
        else {
            break;
        };
        let step = Step {
            at: now.mono,
            reason: decision.because.reason,
            message: sentence(&decision),
            acts: !decision.actions.is_empty(),
        };
        let says_more = |last: &Step| (last.reason, &last.message) != (step.reason, &step.message);
        if steps.last().is_none_or(says_more) {
            steps.push(step);
        }
        if !decision.actions.is_empty() {
            break;
        }
        let looks = &decision.looks;
        if !looks.is_empty() {
            if !looks.iter().all(|look| answer(&mut seen, look, now)) {
                break;
            }
            continue;
        }
        match decision.wake.filter(|wake| wake.at > now.mono) {
            Some(wake) => now = at(wake.at, now),
            None => break,
        }
    }
    steps
}

fn at(mono: Duration, now: Now) -> Now {
    Now {
        wall: now.plus(mono.saturating_sub(now.mono)),
        mono,
    }
}

/// What it writes is in the sentence, but for a lock that is merely let go of.
fn sentence(decision: &crate::Decision<Action, Look>) -> String {
    let why = &decision.because;
    let frees = why.reason == reason::LOCK_WITHOUT_REBOOT && !decision.actions.is_empty();
    let end = if frees { "; it is freed" } else { "" };
    format!("{}{end}", why.message)
}

/// As though it were read now, and nothing had changed. Whether what is seen answers it.
fn answer(seen: &mut Seen, look: &Look, now: Now) -> bool {
    let taken = now.mono;
    match look {
        Look::Node { name, .. } => {
            let read = NodeRead {
                node: seen.nodes.get(name).cloned(),
                escalated: Parsed::Absent,
                taken,
            };
            seen.looked.nodes.insert(name.clone(), read);
        }
        Look::Holder { lease, .. } => {
            let node = holder_node_name(lease).and_then(|name| seen.nodes.get(&name));
            let node = match node {
                Some(node) => HolderNode::There {
                    uid: node.uid.clone(),
                },
                None => HolderNode::Gone,
            };
            let reads = HolderSeen {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                reads: HolderReads {
                    nodes: [node.clone(), node],
                    apart: BETWEEN_HOLDER_READS,
                },
                taken,
            };
            seen.looked.holders.insert(lease.name.clone(), reads);
        }
        Look::Api { .. } | Look::Gates { .. } | Look::Hosts { .. } => return false,
    }
    true
}
