//! Interprets the API server's answer to an eviction or a deletion.
//!
//! Source: `pkg/registry/core/pod/storage/eviction.go` of Kubernetes v1.36.1, and observed answers.

use std::time::Duration;

use dogwatch_core::drain::{AdmissionRefusal, EvictionAnswer};
use kube::core::Status;

use crate::Error;

/// Cause that tells a PodDisruptionBudget's 429 from an overload's 429.
const DISRUPTION_BUDGET_CAUSE: &str = "DisruptionBudget";
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// `pod`: the name of the pod that the call was about.
pub(super) fn parse_eviction_answer(pod: &str, answer: Result<(), Error>) -> EvictionAnswer {
    match answer {
        Ok(()) => EvictionAnswer::Accepted,
        Err(Error::Answer(status)) => answer_of_status(pod, &status),
        Err(
            error @ (Error::UnconfirmedRefusal(_)
            | Error::NoAnswer(_)
            | Error::Timeout(_)
            | Error::Unreadable(_)
            | Error::NotSent(_)),
        ) => EvictionAnswer::Transient {
            message: error.error_chain(),
        },
    }
}

fn answer_of_status(pod: &str, status: &Status) -> EvictionAnswer {
    let message = status.message.clone();
    // Checked before the code: a webhook chooses its own code.
    if let Some(refusal) = AdmissionRefusal::parse_message(&message) {
        return EvictionAnswer::NotAdmitted { refusal, message };
    }
    match status.code {
        404 if is_not_found_of(pod, status) => EvictionAnswer::AlreadyGone,
        409 if message.contains("UID in") => EvictionAnswer::AlreadyGone,
        // A 404 that does not name the pod comes from a proxy between us and the API server. Any
        // other conflict is between writers inside the server.
        404 | 409 => EvictionAnswer::Transient {
            message: format_status(status),
        },
        429 => match cause_message(status, DISRUPTION_BUDGET_CAUSE) {
            Some(message) => EvictionAnswer::Budget { message },
            None => EvictionAnswer::TooMany {
                retry_after: retry_after(status),
                message: format_status(status),
            },
        },
        403 if cause_message(status, NAMESPACE_TERMINATING).is_some() => {
            EvictionAnswer::NamespaceTerminating
        }
        403 if is_budget_refusal(status) => EvictionAnswer::Budget { message },
        500 if message.contains("more than one PodDisruptionBudget") => {
            EvictionAnswer::SeveralBudgets { message }
        }
        code @ 400..=499 => EvictionAnswer::Refused { code, message },
        _ => EvictionAnswer::Transient {
            message: format_status(status),
        },
    }
}

/// Whether the 404 comes from the API server itself and is about this object. A proxy may answer
/// 404 to anything.
pub(super) fn is_not_found_of(name: &str, status: &Status) -> bool {
    let named = status
        .details
        .as_ref()
        .is_some_and(|details| details.name == name);
    status.reason == "NotFound" && named
}

/// The PodDisruptionBudget's status cannot be used at the moment: a negative count, or too many
/// evictions that its controller has not confirmed.
fn is_budget_refusal(status: &Status) -> bool {
    let details = status.details.as_ref();
    details
        .is_some_and(|details| details.group == "policy" && details.kind == "poddisruptionbudget")
}

fn cause_message(status: &Status, reason: &str) -> Option<String> {
    let causes = &status.details.as_ref()?.causes;
    causes
        .iter()
        .find(|cause| cause.reason == reason)
        .map(|cause| cause.message.clone())
}

fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

fn format_status(status: &Status) -> String {
    format!("HTTP {} {}: {}", status.code, status.reason, status.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> EvictionAnswer {
        let status: Status = serde_json::from_str(body).unwrap();
        parse_eviction_answer("web-1", Err(Error::Answer(Box::new(status))))
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table, quoted in full")]
    fn each_answer_of_the_eviction_endpoint_is_understood() {
        for (body, expected) in [
            (
                r#"{"code":404,"reason":"NotFound","message":"pods \"web-1\" not found","details":{"name":"web-1","kind":"pods"}}"#,
                EvictionAnswer::AlreadyGone,
            ),
            (
                r#"{"code":409,"reason":"Conflict","message":"Operation cannot be fulfilled on Pod \"web-1\": the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated"}"#,
                EvictionAnswer::AlreadyGone,
            ),
            (
                r#"{"code":409,"reason":"Conflict","message":"Precondition failed: UID in precondition: a, UID in object meta: b"}"#,
                EvictionAnswer::AlreadyGone,
            ),
            (
                r#"{"code":409,"reason":"Conflict","message":"the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2)."}"#,
                EvictionAnswer::Transient {
                    message: "HTTP 409 Conflict: the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2).".into(),
                },
            ),
            (
                r#"{"code":429,"reason":"TooManyRequests","message":"Cannot evict pod","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]}}"#,
                EvictionAnswer::Budget {
                    message: "The disruption budget web needs 2 healthy pods and has 2 currently".into(),
                },
            ),
            (
                r#"{"code":429,"reason":"TooManyRequests","message":"slow down","details":{"retryAfterSeconds":7}}"#,
                EvictionAnswer::TooMany {
                    retry_after: Some(Duration::from_secs(7)),
                    message: "HTTP 429 TooManyRequests: slow down".into(),
                },
            ),
            (
                r#"{"code":403,"reason":"Forbidden","message":"forbidden","details":{"causes":[{"reason":"NamespaceTerminating","message":"namespace shop is being terminated"}]}}"#,
                EvictionAnswer::NamespaceTerminating,
            ),
            (
                r#"{"code":403,"reason":"Forbidden","message":"no right"}"#,
                EvictionAnswer::Refused { code: 403, message: "no right".into() },
            ),
            (
                r#"{"code":403,"reason":"Forbidden","message":"poddisruptionbudgets.policy \"web\" is forbidden: pdb disruptions allowed is negative","details":{"name":"web","group":"policy","kind":"poddisruptionbudget"}}"#,
                EvictionAnswer::Budget {
                    message: "poddisruptionbudgets.policy \"web\" is forbidden: pdb disruptions allowed is negative".into(),
                },
            ),
            (
                r#"{"code":422,"reason":"Invalid","message":"bad"}"#,
                EvictionAnswer::Refused { code: 422, message: "bad".into() },
            ),
            (
                r#"{"code":500,"message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}"#,
                EvictionAnswer::SeveralBudgets {
                    message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.".into(),
                },
            ),
            (
                r#"{"code":500,"reason":"InternalError","message":"webhook down"}"#,
                EvictionAnswer::Transient { message: "HTTP 500 InternalError: webhook down".into() },
            ),
            (
                r#"{"code":504,"reason":"Timeout","message":"conflicts"}"#,
                EvictionAnswer::Transient { message: "HTTP 504 Timeout: conflicts".into() },
            ),
        ] {
            assert_eq!(said(body), expected, "{body}");
        }
        assert_eq!(
            parse_eviction_answer("web-1", Ok(())),
            EvictionAnswer::Accepted
        );
    }

    #[test]
    fn a_refusal_by_admission_is_told_by_its_words_whatever_its_code() {
        let denied = r#"admission webhook "w.example" denied the request: no"#;
        let failing = r#"Internal error occurred: failed calling webhook "w.example": no"#;
        let policy = r#"pods "web-1" is forbidden: ValidatingAdmissionPolicy 'w.example' with binding 'b' denied request: no"#;
        for (message, codes) in [
            (denied, &[400, 403, 404, 409, 422, 429, 500][..]),
            (failing, &[500]),
            (policy, &[401, 403, 413, 422]),
        ] {
            for code in codes {
                let status = serde_json::json!({ "code": code, "message": message }).to_string();
                let EvictionAnswer::NotAdmitted { refusal, .. } = said(&status) else {
                    panic!("{status}: {:?}", said(&status));
                };
                assert_eq!(refusal.by.name(), "w.example");
            }
        }
    }

    #[test]
    fn a_404_that_does_not_name_the_pod_does_not_count_it_as_gone() {
        for body in [
            r#"{"code":404,"reason":"Failed to parse error data","message":"<html>nothing here</html>"}"#,
            r#"{"code":404,"reason":"NotFound","message":"the server could not find the requested resource","details":{}}"#,
        ] {
            assert!(
                matches!(said(body), EvictionAnswer::Transient { .. }),
                "{body}"
            );
        }
    }

    #[test]
    fn a_lost_connection_is_tried_again() {
        let lost = Error::Timeout(Duration::from_secs(30));
        assert!(matches!(
            parse_eviction_answer("web-1", Err(lost)),
            EvictionAnswer::Transient { .. }
        ));
    }
}
