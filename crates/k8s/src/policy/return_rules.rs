//! Converts `spec.return`.

use dogwatch_api::reboot_policy::{self as api, ReadyCheckSpec, ReturnSpec};
use dogwatch_core::policy::{ReadyCheck, ReadyTimeoutAction, ReturnRules};
use dogwatch_core::reboot::GateTimeoutAction;

use super::fields::SpecFields;

/// A `return` that cannot be parsed may contain checks, so it keeps nodes cordoned.
pub(super) fn parse_return_rules(fields: &mut SpecFields) -> ReturnRules {
    let Ok(on_return) = fields.try_take_field::<ReturnSpec>("return") else {
        return ReturnRules {
            ready: vec![ReadyCheck::Unreadable],
            ..ReturnRules::default()
        };
    };
    let on_return = on_return.unwrap_or_default();
    let checks = on_return.ready.unwrap_or_default().into_iter();
    ReturnRules {
        settle: fields.parse_duration("return.settle", on_return.settle.as_ref()),
        gates: on_return.gates,
        gate_timeout: fields
            .parse_positive_duration("return.gateTimeout", on_return.gate_timeout.as_ref()),
        on_gate_timeout: on_return.on_gate_timeout.map(|then| match then {
            api::OnGateTimeoutSpec::Keep => GateTimeoutAction::Keep,
            api::OnGateTimeoutSpec::Release => GateTimeoutAction::Release,
        }),
        ready: checks
            .enumerate()
            .map(|(index, check)| parse_ready_check(fields, index, check))
            .collect(),
        ready_timeout: fields
            .parse_positive_duration("return.readyTimeout", on_return.ready_timeout.as_ref()),
        on_ready_timeout: match on_return.on_ready_timeout {
            Some(api::OnReadyTimeoutSpec::Keep) | None => ReadyTimeoutAction::Keep,
            Some(api::OnReadyTimeoutSpec::Proceed) => ReadyTimeoutAction::Proceed,
        },
    }
}

fn parse_ready_check(fields: &mut SpecFields, index: usize, check: ReadyCheckSpec) -> ReadyCheck {
    let name = format!("return.ready[{index}]");
    match (check.condition, check.no_taint, check.resource) {
        (Some(condition), None, None) => ReadyCheck::Condition {
            kind: condition.kind,
            status: condition.status.as_str().to_owned(),
        },
        (None, Some(key), None) if key == api::CORDON_TAINT => {
            let problem =
                "leave this taint out: it is the cordon, which stays until the checks are met";
            fields.add_problem(&name, problem);
            ReadyCheck::Unreadable
        }
        (None, Some(key), None) => ReadyCheck::NoTaint { key },
        (None, None, Some(resource)) if api::is_ready_resource(&resource) => {
            ReadyCheck::Resource { name: resource }
        }
        (None, None, Some(resource)) => {
            let problem = format!("every Node has {resource}: write an extended resource");
            fields.add_problem(&name, problem);
            ReadyCheck::Unreadable
        }
        _ => {
            fields.add_problem(
                &name,
                "write exactly one of condition, noTaint and resource",
            );
            ReadyCheck::Unreadable
        }
    }
}
