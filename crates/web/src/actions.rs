//! Reads what the page asks for: paths that name objects, and the forms of actions.

use serde::Deserialize;

use crate::command::DashboardCommand;

/// Longest reason, in characters. A Node's annotation has room for far more.
const MAX_REASON_LENGTH: usize = 500;

/// Source: Kubernetes, names of objects (RFC 1123 subdomains).
const MAX_NAME_LENGTH: usize = 253;

/// What a form says beside the path.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ActionForm {
    reason: String,
    although_rebooting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("no such path")]
    NoSuchPath,
    #[error("the form is not JSON, or has an unknown field")]
    BadForm,
    #[error(
        "a reason has at most {MAX_REASON_LENGTH} characters, and no line breaks or other control characters"
    )]
    BadReason,
    #[error("a pause needs a reason")]
    NoReason,
}

/// `/api/explain/KIND/NAME` and `/api/explain/KIND/NAMESPACE/NAME`. Names are not decoded: no name
/// of an object needs an escape.
pub(crate) fn parse_explain_path(rest: &str) -> Option<DashboardCommand> {
    let parts: Vec<&str> = rest.split('/').collect();
    let is_known = match parts.as_slice() {
        ["node" | "nodereboot", name] => is_object_name(name),
        [
            "host" | "machine" | "remediation" | "schedule",
            namespace,
            name,
        ] => is_object_name(namespace) && is_object_name(name),
        _ => false,
    };
    is_known.then(|| DashboardCommand::Explain {
        subject: rest.to_owned(),
    })
}

/// `/api/plan/node/NAME`.
pub(crate) fn parse_plan_path(rest: &str) -> Option<DashboardCommand> {
    let node = rest
        .strip_prefix("node/")
        .filter(|name| is_object_name(name))?;
    Some(DashboardCommand::Check {
        node: node.to_owned(),
    })
}

/// `/api/actions/ACTION/NAME`: whether such an action exists.
pub(crate) fn is_action_path(rest: &str) -> bool {
    build_action(rest, ActionForm::default()) != Err(ActionError::NoSuchPath)
}

pub(crate) fn parse_action(rest: &str, body: &[u8]) -> Result<DashboardCommand, ActionError> {
    let form: ActionForm = serde_json::from_slice(body).map_err(|_| ActionError::BadForm)?;
    let reason = form.reason.trim();
    let is_good =
        reason.chars().count() <= MAX_REASON_LENGTH && !reason.chars().any(char::is_control);
    if !is_good {
        return Err(ActionError::BadReason);
    }
    let reason = reason.to_owned();
    build_action(rest, ActionForm { reason, ..form })
}

fn build_action(rest: &str, form: ActionForm) -> Result<DashboardCommand, ActionError> {
    let (action, name) = rest.split_once('/').ok_or(ActionError::NoSuchPath)?;
    if !is_object_name(name) {
        return Err(ActionError::NoSuchPath);
    }
    let name = name.to_owned();
    let reason = form.reason;
    Ok(match action {
        "reboot" => DashboardCommand::Reboot { node: name, reason },
        "hold" => DashboardCommand::Hold { node: name, reason },
        "release" => DashboardCommand::Release { node: name },
        "abort" => DashboardCommand::Abort {
            node: name,
            reason,
            although_rebooting: form.although_rebooting,
        },
        "pause" if reason.is_empty() => return Err(ActionError::NoReason),
        "pause" => DashboardCommand::Pause {
            policy: name,
            reason,
        },
        "resume" => DashboardCommand::Resume { policy: name },
        _ => return Err(ActionError::NoSuchPath),
    })
}

fn is_object_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_well = |byte: Option<u8>| byte.is_some_and(is_inner);
    text.len() <= MAX_NAME_LENGTH
        && ends_well(text.bytes().next())
        && ends_well(text.bytes().next_back())
        && !text.contains("..")
        && text
            .bytes()
            .all(|byte| is_inner(byte) || byte == b'-' || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_kinds_with_names_and_nothing_else() {
        for good in [
            "node/n1",
            "node/n1.example.com",
            "host/metal/h1",
            "nodereboot/r-1",
        ] {
            assert_eq!(
                parse_explain_path(good),
                Some(DashboardCommand::Explain {
                    subject: good.into()
                })
            );
        }
        for bad in [
            "",
            "node",
            "node/",
            "node/N1",
            "node/n1/",
            "node//n1",
            "node/../n1",
            "node/a..b",
            "node/%6e1",
            "node/-n1",
            "node/--all",
            "node/n1 --yes",
            "node/n1\0",
            "host/h1",
            "host/metal/h1/x",
            "policy/p",
            "node/ä",
        ] {
            assert_eq!(parse_explain_path(bad), None, "{bad}");
            assert_eq!(parse_plan_path(bad), None, "{bad}");
        }
        let long = format!("node/{}", "a".repeat(254));
        assert_eq!(parse_explain_path(&long), None);
    }

    #[test]
    fn forms_are_strict() {
        let parse = |rest: &str, body: &str| parse_action(rest, body.as_bytes());
        assert_eq!(
            parse("reboot/n1", r#"{"reason":" kernel "}"#),
            Ok(DashboardCommand::Reboot {
                node: "n1".into(),
                reason: "kernel".into()
            })
        );
        assert_eq!(
            parse("resume/workers", "{}"),
            Ok(DashboardCommand::Resume {
                policy: "workers".into()
            })
        );
        assert_eq!(parse("pause/workers", "{}"), Err(ActionError::NoReason));
        assert_eq!(parse("reboot/n1", ""), Err(ActionError::BadForm));
        assert_eq!(
            parse("reboot/n1", r#"{"yes":true}"#),
            Err(ActionError::BadForm)
        );
        assert_eq!(
            parse("reboot/n1", r#"{"reason":"a\nb"}"#),
            Err(ActionError::BadReason)
        );
        let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(501));
        assert_eq!(parse("reboot/n1", &long), Err(ActionError::BadReason));
        for path in [
            "unlock/n1",
            "reboot",
            "reboot/",
            "reboot/--all",
            "reboot/n1/n2",
        ] {
            assert_eq!(parse(path, "{}"), Err(ActionError::NoSuchPath), "{path}");
        }
        assert!(is_action_path("pause/workers") && !is_action_path("drop/workers"));
    }
}
