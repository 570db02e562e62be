//! Tests the bodies of writes and the checks of their answers.

use dogwatch_core::condition::{ConditionStatus, ConditionWrite, DesiredCondition};
use dogwatch_core::remediation::MachineApi;
use kube::api::ApiResource;
use kube::core::{GroupVersionKind, Status as Answer};
use serde_json::{Value, json};

use crate::error::Error;
use crate::remediation::RemediationWriteError;
use crate::remediation::write::{ConditionForm, RequiredRight};

fn refused(code: u16, reason: &str, message: &str) -> RemediationWriteError {
    let status = Answer::failure(message, reason).with_code(code);
    let error = Error::from(kube::Error::Api(status.boxed()));
    RequiredRight::new("delete", "nodes").classify_error("node n", error)
}

#[test]
fn a_missing_right_is_named_and_what_admission_denies_is_no_missing_right() {
    let message = r#"nodes "n" is forbidden: User "x" cannot delete resource "nodes" in API group "" at the cluster scope"#;
    let error = refused(403, "Forbidden", message);
    assert!(
        matches!(error, RemediationWriteError::Forbidden { .. }),
        "{error:?}"
    );
    let words = error.error_chain();
    assert!(words.contains("may not delete nodes") && words.contains("deploy/remediation"));
    assert!(words.contains(message), "{words}");
    for message in [
        r#"nodes "n" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"#,
        r#"admission webhook "w" denied the request: you cannot delete it"#,
    ] {
        let error = refused(403, "Forbidden", message);
        assert!(matches!(error, RemediationWriteError::Api(_)), "{error:?}");
        assert!(error.error_chain().contains(message));
    }
    let error = refused(401, "Unauthorized", "who?");
    assert!(matches!(error, RemediationWriteError::Api(_)), "{error:?}");
}

#[test]
fn what_has_changed_is_told_from_what_may_have_been_written() {
    for (code, reason, is_changed) in [
        (404, "NotFound", true),
        (409, "Conflict", true),
        (409, "AlreadyExists", false),
        (410, "Expired", false),
        (422, "Invalid", false),
        (429, "TooManyRequests", false),
        (500, "InternalError", false),
        (504, "Timeout", false),
    ] {
        let error = refused(code, reason, "because");
        let is = matches!(&error, RemediationWriteError::Changed(it) if it.about == "node n");
        assert_eq!(is, is_changed, "{code}");
        assert_eq!(
            matches!(error, RemediationWriteError::Api(_)),
            !is_changed,
            "{code}"
        );
        // A webhook may answer so, too: its text is all that tells people.
        assert!(error.error_chain().contains("because"), "{error:?}");
    }
}

#[test]
fn each_version_of_a_machine_has_its_form() {
    let version = |version: &str| {
        let kind = GroupVersionKind::gvk("cluster.x-k8s.io", version, "Machine");
        ApiResource::from_gvk(&kind)
    };
    for (api, name, form) in [
        (MachineApi::OpenShift, "v1beta1", ConditionForm::OpenShift),
        (MachineApi::ClusterApi, "v1beta1", ConditionForm::V1Beta1),
        (MachineApi::ClusterApi, "v1beta2", ConditionForm::V1Beta2),
    ] {
        assert_eq!(
            ConditionForm::of_version(api, &version(name)),
            form,
            "{name}"
        );
    }
}

fn write(kind: &'static str, status: ConditionStatus) -> ConditionWrite {
    ConditionWrite {
        observation: DesiredCondition {
            kind,
            status,
            reason: "R".into(),
            message: "m".into(),
            heartbeat: false,
            shows_reason: false,
        },
        last_transition: "2026-01-01T00:00:00.9Z".parse().unwrap(),
    }
}

#[test]
fn a_severity_is_where_the_form_has_one_and_something_is_false() {
    for (form, status, severity) in [
        (
            ConditionForm::OpenShift,
            ConditionStatus::False,
            Some("Info"),
        ),
        (ConditionForm::V1Beta1, ConditionStatus::False, Some("Info")),
        (ConditionForm::V1Beta2, ConditionStatus::False, None),
        (ConditionForm::OpenShift, ConditionStatus::True, None),
        (ConditionForm::V1Beta1, ConditionStatus::Unknown, None),
    ] {
        let patch = form.status_patch(&json!({}), &[write("Remediation", status)]);
        let written = &patch["conditions"][0];
        assert_eq!(
            written["severity"].as_str(),
            severity,
            "{form:?} {status:?}"
        );
        assert_eq!(written["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(patch.as_object().unwrap().len(), 1, "{patch}");
    }
}

#[test]
fn only_a_machine_that_is_handed_back_is_told_in_both_lists() {
    let theirs = json!({ "type": "OwnerRemediated", "status": "True" });
    let other = json!({ "type": "Ready", "status": "True" });
    let list = json!({ "conditions": [other, theirs] });
    let status =
        json!({ "conditions": [other], "v1beta2": list, "deprecated": { "v1beta1": list } });
    let writes = [
        write("Remediation", ConditionStatus::True),
        write("OwnerRemediated", ConditionStatus::False),
    ];
    let kinds = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.map(|it| format!("{} {}", it["type"], it["status"]))
            .collect()
    };
    let handed_back = [r#""Ready" "True""#, r#""OwnerRemediated" "False""#];
    for (form, path) in [
        (ConditionForm::OpenShift, None),
        (ConditionForm::V1Beta1, Some("/v1beta2/conditions")),
        (
            ConditionForm::V1Beta2,
            Some("/deprecated/v1beta1/conditions"),
        ),
    ] {
        let patch = form.status_patch(&status, &writes);
        assert_eq!(kinds(&patch["conditions"]).len(), 3, "{form:?}");
        match path {
            Some(path) => assert_eq!(kinds(patch.pointer(path).unwrap()), handed_back),
            None => assert_eq!(patch.as_object().unwrap().len(), 1),
        }
    }
}
