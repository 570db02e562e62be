//! What a drain does with a pod: the rules of `kubectl drain --ignore-daemonsets
//! --delete-emptydir-data --force`, and those of the policy.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::machine_rules::{MachineDrainBehavior, MachineDrainRule, RulePods};
use super::pod_lookups::{DaemonSetPresence, PodLookup, PodLookups};
use super::pod_plan::{PlanReason, PodAction, PodDrainPlan, WaitLimit};
use super::pod_rules::{PodMark, PodRules, RuleAction};
use super::types::{DaemonSetRef, ObservedPod, PodPhase};
use crate::duration::parse_duration;
use crate::name::is_dns_name;

/// Mirror pods stay, because only the kubelet can end them. Pods of an existing DaemonSet stay.
/// About the others an honoured mark decides, then a MachineDrainRule that protects the pod, then the
/// exclusion, then the first rule that matches, then the order of the MachineDrainRule. A mark comes
/// before the rest because it tells about this one pod; neither it nor a MachineDrainRule makes a pod
/// stay or go that the DaemonSet's rule is about. `Err`: the plan depends on this lookup.
pub(super) fn plan_pod(
    pod: &ObservedPod,
    rules: &PodRules,
    lookups: &PodLookups,
) -> Result<PodDrainPlan, PodLookup> {
    if pod.mirror {
        return Ok(PodDrainPlan::new(PodAction::Stay, PlanReason::Mirror));
    }
    let mark = honored_mark(pod, rules);
    let machine_rule = match mark {
        Some(_) => None,
        None => first_machine_rule(pod, rules, lookups)?,
    };
    let protection = mark.or_else(|| plan_of_protecting_rule(pod, machine_rule?));
    let selector = rules.exclude.as_ref();
    if protection.is_none() && selector.is_some_and(|selector| selector.matches_labels(&pod.labels))
    {
        return Ok(PodDrainPlan::new(PodAction::Stay, PlanReason::Excluded));
    }
    let daemonset = daemonset_of(pod).filter(|_| pod.phase != PodPhase::Finished);
    if let Some(set) = daemonset {
        match lookups.daemonsets.known_answer(&set) {
            Some(DaemonSetPresence::Exists) => {
                return Ok(PodDrainPlan::new(PodAction::Stay, PlanReason::DaemonSet));
            }
            Some(DaemonSetPresence::Gone) => {}
            None => return Err(PodLookup::DaemonSet(set)),
        }
    }
    if let Some(plan) = protection {
        return Ok(plan);
    }
    let by_rules = plan_by_rules(pod, rules, lookups)?;
    let by_machine_rule = || machine_rule.and_then(plan_of_ordering_rule);
    let plan = by_rules.or_else(by_machine_rule);
    Ok(plan.unwrap_or_else(|| PodDrainPlan::new(PodAction::Evict, PlanReason::Default)))
}

/// The first MachineDrainRule that applies to the pod, where the policy honours them.
fn first_machine_rule<'a>(
    pod: &ObservedPod,
    rules: &PodRules,
    lookups: &'a PodLookups,
) -> Result<Option<&'a MachineDrainRule>, PodLookup> {
    if !rules.honors_machine_rules() {
        return Ok(None);
    }
    let known = lookups.machine_rules.known_answer(&());
    for rule in known.ok_or(PodLookup::MachineDrainRules)? {
        if applies_to_pod(rule, pod, lookups)? {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

fn applies_to_pod(
    rule: &MachineDrainRule,
    pod: &ObservedPod,
    lookups: &PodLookups,
) -> Result<bool, PodLookup> {
    for RulePods {
        pod: own,
        namespace,
    } in &rule.pods
    {
        let matches = own.matches_labels(&pod.labels)
            && match namespace {
                Some(selector) => selector.matches_labels(namespace_labels(pod, lookups)?),
                None => true,
            };
        if matches {
            return Ok(true);
        }
    }
    Ok(rule.pods.is_empty())
}

/// Cluster API gives such a wait no order of its own; it waits until the drain's deadline.
fn plan_of_protecting_rule(pod: &ObservedPod, rule: &MachineDrainRule) -> Option<PodDrainPlan> {
    let action = match rule.behavior {
        MachineDrainBehavior::Skip => PodAction::Stay,
        // A pod that has ended is removed: Cluster API waits for it for ever (CAPI#12920).
        MachineDrainBehavior::WaitCompleted if pod.phase != PodPhase::Finished => {
            PodAction::WaitCompleted(WaitLimit::DrainTimeout)
        }
        MachineDrainBehavior::WaitCompleted | MachineDrainBehavior::Drain { .. } => return None,
    };
    let why = PlanReason::MachineDrainRule(rule.name.clone());
    Some(PodDrainPlan::new(action, why))
}

fn plan_of_ordering_rule(rule: &MachineDrainRule) -> Option<PodDrainPlan> {
    let MachineDrainBehavior::Drain { order } = rule.behavior else {
        return None;
    };
    let why = PlanReason::MachineDrainRule(rule.name.clone());
    Some(PodDrainPlan {
        order,
        ..PodDrainPlan::new(PodAction::Evict, why)
    })
}

fn namespace_labels<'a>(
    pod: &ObservedPod,
    lookups: &'a PodLookups,
) -> Result<&'a BTreeMap<String, String>, PodLookup> {
    let namespace = &pod.pod.namespace;
    let known = lookups.namespaces.known_answer(namespace);
    known.ok_or_else(|| PodLookup::Namespace(namespace.clone()))
}

/// The first rule of the policy that matches. A pod that has ended by itself is removed without any
/// wait.
fn plan_by_rules(
    pod: &ObservedPod,
    rules: &PodRules,
    lookups: &PodLookups,
) -> Result<Option<PodDrainPlan>, PodLookup> {
    for (index, rule) in rules.rules.iter().enumerate() {
        if !rule.pods.matches_labels(&pod.labels) {
            continue;
        }
        if let Some(selector) = &rule.namespaces
            && !selector.matches_labels(namespace_labels(pod, lookups)?)
        {
            continue;
        }
        let action = match rule.action {
            RuleAction::WaitCompleted { timeout } if pod.phase != PodPhase::Finished => {
                PodAction::WaitCompleted(WaitLimit::Timeout(timeout))
            }
            // A pod that has not started serves nobody whom a rollout could spare.
            RuleAction::RollFirst { timeout } if pod.phase == PodPhase::Running => {
                PodAction::RollFirst(timeout)
            }
            RuleAction::WaitCompleted { .. } | RuleAction::RollFirst { .. } | RuleAction::Evict => {
                PodAction::Evict
            }
            RuleAction::Delete => PodAction::Delete,
            RuleAction::Skip => PodAction::Stay,
        };
        return Ok(Some(PodDrainPlan {
            order: rule.order,
            ..PodDrainPlan::new(action, PlanReason::Rule(index))
        }));
    }
    Ok(None)
}

/// What the pod's marks ask for. Of several, the one that protects the pod for longer counts: a pod
/// that stays is ended by the reboot.
fn honored_mark(pod: &ObservedPod, rules: &PodRules) -> Option<PodDrainPlan> {
    let asked = rules.honor.iter().filter_map(|mark| {
        let action = match mark {
            PodMark::ClusterApiDrain => cluster_api_action(pod),
            PodMark::DoNotDisrupt => do_not_disrupt_action(pod),
            PodMark::SafeToEvict => safe_to_evict_action(pod),
        }?;
        let waits = matches!(action, PodAction::WaitCompleted(_));
        let plan = PodDrainPlan::new(action, PlanReason::Mark(*mark));
        (!waits || pod.phase != PodPhase::Finished).then_some(plan)
    });
    asked.max_by_key(|plan| match plan.action {
        PodAction::WaitCompleted(WaitLimit::DrainTimeout) => (2, Timestamp::MAX),
        PodAction::WaitCompleted(WaitLimit::Until(until)) => (1, until),
        PodAction::WaitCompleted(WaitLimit::Timeout(_))
        | PodAction::RollFirst(_)
        | PodAction::Stay
        | PodAction::Evict
        | PodAction::Delete => (0, Timestamp::MIN),
    })
}

/// Cluster API ignores case and one hyphen, and words that it does not know.
fn cluster_api_action(pod: &ObservedPod) -> Option<PodAction> {
    let value = pod.labels.get(PodMark::ClusterApiDrain.mark_key())?;
    match value.replacen('-', "", 1).to_lowercase().as_str() {
        "skip" => Some(PodAction::Stay),
        "waitcompleted" => Some(PodAction::WaitCompleted(WaitLimit::DrainTimeout)),
        _ => None,
    }
}

/// `true`, or a positive Go duration counted from the pod's start; anything else counts as absent.
fn do_not_disrupt_action(pod: &ObservedPod) -> Option<PodAction> {
    let value = pod.marks.do_not_disrupt.as_deref()?;
    if value == "true" {
        return Some(PodAction::WaitCompleted(WaitLimit::DrainTimeout));
    }
    let protected = parse_duration(value).ok().filter(|time| !time.is_zero())?;
    let Some(started) = pod.marks.started else {
        return Some(PodAction::WaitCompleted(WaitLimit::DrainTimeout));
    };
    let until = SignedDuration::try_from(protected)
        .ok()
        .and_then(|protected| started.checked_add(protected).ok())
        .unwrap_or(Timestamp::MAX);
    Some(PodAction::WaitCompleted(WaitLimit::Until(until)))
}

/// Only `false` protects; `true` lifts rules of the autoscaler that a drain does not have.
fn safe_to_evict_action(pod: &ObservedPod) -> Option<PodAction> {
    let protected = pod.marks.safe_to_evict.as_deref() == Some("false");
    protected.then_some(PodAction::WaitCompleted(WaitLimit::DrainTimeout))
}

/// Compares group, version and kind, as kubectl does: a "DaemonSet" of another API group counts as
/// any other controller. A name that is not a DNS name is rejected, because whoever creates a pod
/// chooses it and it becomes part of a request path.
fn daemonset_of(pod: &ObservedPod) -> Option<DaemonSetRef> {
    let owner = pod.controller.as_ref()?;
    let is_one = owner.api_version == "apps/v1" && owner.kind == "DaemonSet";
    (is_one && is_dns_name(&owner.name)).then(|| DaemonSetRef {
        namespace: pod.pod.namespace.clone(),
        name: owner.name.clone(),
    })
}
