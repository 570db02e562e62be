//! Parses `drain` of a policy.

use dogwatch_api::reboot_policy as api;
use dogwatch_core::drain::{PodMark, PodRule, PodRules, RuleAction};
use dogwatch_core::policy::DrainRules;
use dogwatch_core::reboot::DrainTimeoutAction;
use dogwatch_core::selector::LabelSelector;

use super::fields::SpecFields;
use super::labels;

pub(super) fn parse_drain_rules(fields: &mut SpecFields) -> DrainRules {
    let drain: api::DrainSpec = fields.take_field("drain").unwrap_or_default();
    let honored = drain.honor.unwrap_or_default().into_iter();
    DrainRules {
        timeout: fields.parse_positive_duration("drain.timeout", drain.timeout.as_ref()),
        on_timeout: drain.on_timeout.map(|then| match then {
            api::OnDrainTimeoutSpec::Abort => DrainTimeoutAction::Abort,
            api::OnDrainTimeoutSpec::Delete => DrainTimeoutAction::Delete,
            api::OnDrainTimeoutSpec::Force => DrainTimeoutAction::Force,
        }),
        volume_detach_timeout: fields.parse_duration(
            "drain.volumeDetachTimeout",
            drain.volume_detach_timeout.as_ref(),
        ),
        pods: PodRules {
            exclude: parse_selector(fields, "drain.exclude", drain.exclude),
            honor: honored.map(convert_mark).collect(),
            rules: parse_pod_rules(fields, drain.rules.unwrap_or_default()),
        },
    }
}

fn convert_mark(mark: api::HonoredMark) -> PodMark {
    match mark {
        api::HonoredMark::ClusterApiDrain => PodMark::ClusterApiDrain,
        api::HonoredMark::DoNotDisrupt => PodMark::DoNotDisrupt,
        api::HonoredMark::SafeToEvict => PodMark::SafeToEvict,
    }
}

/// The valid rules. An invalid one is left out here and recorded as a problem, which blocks every
/// reboot.
fn parse_pod_rules(fields: &mut SpecFields, rules: Vec<api::DrainRuleSpec>) -> Vec<PodRule> {
    let last = rules.len().saturating_sub(1);
    let mut known = Vec::new();
    for (index, rule) in rules.into_iter().enumerate() {
        let field = format!("drain.rules[{index}]");
        if rule.pods.is_none() && index < last {
            fields.add_problem(&field, "write pods: this rule hides the rules after it");
        }
        known.extend(parse_pod_rule(fields, &field, rule));
    }
    known
}

fn parse_pod_rule(
    fields: &mut SpecFields,
    field: &str,
    rule: api::DrainRuleSpec,
) -> Option<PodRule> {
    let timeout =
        fields.parse_positive_duration(&format!("{field}.timeout"), rule.timeout.as_ref());
    let matches_all = rule.pods.is_none();
    let pods = rule.pods.unwrap_or_default();
    if !matches_all && pods == api::DrainRulePods::default() {
        fields.add_problem(
            &format!("{field}.pods"),
            "write selector or namespaceSelector",
        );
    }
    let namespaces = format!("{field}.pods.namespaceSelector");
    let namespaces = parse_selector(fields, &namespaces, pods.namespace_selector);
    let selector = parse_selector(fields, &format!("{field}.pods.selector"), pods.selector);
    let mut refuse = |problem: &str| fields.add_problem(field, problem);
    let action = match (rule.action, timeout) {
        (api::DrainRuleAction::WaitCompleted, Some(timeout)) => {
            RuleAction::WaitCompleted { timeout }
        }
        (api::DrainRuleAction::RollFirst, Some(timeout)) => RuleAction::RollFirst { timeout },
        (api::DrainRuleAction::WaitCompleted, None) => {
            refuse("do: WaitCompleted needs a timeout");
            return None;
        }
        (api::DrainRuleAction::RollFirst, None) => {
            refuse("do: RollFirst needs a timeout");
            return None;
        }
        (_, Some(_)) => {
            refuse("write timeout with do: WaitCompleted or RollFirst, and with nothing else");
            return None;
        }
        (api::DrainRuleAction::Skip, None) if matches_all => {
            refuse("write pods with do: Skip: without it every pod would stay");
            return None;
        }
        (api::DrainRuleAction::Skip, None) if rule.order.is_some() => {
            refuse("leave order out with do: Skip");
            return None;
        }
        (api::DrainRuleAction::Evict, None) => RuleAction::Evict,
        (api::DrainRuleAction::Delete, None) => RuleAction::Delete,
        (api::DrainRuleAction::Skip, None) => RuleAction::Skip,
    };
    Some(PodRule {
        pods: selector.unwrap_or_default(),
        namespaces,
        action,
        order: rule.order.unwrap_or_default(),
    })
}

/// A selector that names a label. An invalid one is left out and recorded as a problem.
fn parse_selector(
    fields: &mut SpecFields,
    field: &str,
    selector: Option<LabelSelector>,
) -> Option<LabelSelector> {
    selector.filter(|selector| {
        let problem = labels::nonempty_selector_problem(selector);
        if let Some(problem) = &problem {
            fields.add_problem(field, problem);
        }
        problem.is_none()
    })
}
