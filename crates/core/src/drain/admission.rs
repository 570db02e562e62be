//! Who refuses an eviction at admission, which runs before the API server looks at the pod.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmissionRefuser {
    /// A webhook of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration, by the name
    /// of the webhook in it.
    Webhook(String),
    /// A ValidatingAdmissionPolicy, by its name.
    Policy(String),
}

impl AdmissionRefuser {
    /// The kind as one word, for metrics.
    pub fn refuser_kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "AdmissionWebhook",
            Self::Policy(_) => "ValidatingAdmissionPolicy",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Webhook(name) | Self::Policy(name) => name,
        }
    }
}

impl fmt::Display for AdmissionRefuser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(name) => write!(f, "admission webhook {name}"),
            Self::Policy(name) => write!(f, "ValidatingAdmissionPolicy {name}"),
        }
    }
}

/// Dogwatch's own admission policy: a stolen coordinator token must not be able to evict Dogwatch's
/// controller onto a node of the thief. Kustomize may add a prefix and a suffix to the name.
/// Source: `deploy/policies/coordinators.yaml`, specification §6.
pub const OWN_PODS_POLICY: &str = "coordinator-evictions.dogwatch.dev";

/// An eviction refused at admission; it may be admitted later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionRefusal {
    pub by: AdmissionRefuser,
    /// The refuser's own message; empty if it gave none.
    pub said: String,
}

impl AdmissionRefusal {
    /// Whether Dogwatch's own policy refused, because the pod is in Dogwatch's namespace.
    pub(super) fn is_by_own_pods_policy(&self) -> bool {
        matches!(&self.by, AdmissionRefuser::Policy(name) if name.contains(OWN_PODS_POLICY))
    }

    /// Parses the API server's message. `None`: it is not a refusal by admission.
    ///
    /// The message decides, not the HTTP code: a webhook chooses its code itself (Strimzi's answers
    /// 500, `KubeVirt`'s 429), and a policy's default is the code of a malformed request. Source:
    /// `apiserver/pkg/admission/plugin/webhook` and `…/policy/validating` of Kubernetes 1.36.1.
    pub fn parse_message(message: &str) -> Option<Self> {
        parse_webhook_denial(message)
            .or_else(|| parse_webhook_failure(message))
            .or_else(|| parse_policy_denial(message))
    }
}

fn parse_webhook_denial(message: &str) -> Option<AdmissionRefusal> {
    let rest = message.strip_prefix("admission webhook \"")?;
    let (name, said) = rest.split_once("\" denied the request")?;
    Some(AdmissionRefusal {
        by: AdmissionRefuser::Webhook(name.to_owned()),
        said: said.trim_start_matches([':', ' ']).to_owned(),
    })
}

fn parse_webhook_failure(message: &str) -> Option<AdmissionRefusal> {
    let message = message
        .strip_prefix("Internal error occurred: ")
        .unwrap_or(message);
    let rest = message.strip_prefix("failed calling webhook \"")?;
    let (name, said) = rest.split_once("\": ")?;
    Some(AdmissionRefusal {
        by: AdmissionRefuser::Webhook(name.to_owned()),
        said: format!("the webhook cannot be called: {said}"),
    })
}

fn parse_policy_denial(message: &str) -> Option<AdmissionRefusal> {
    let (_, rest) = message.split_once(" is forbidden: ValidatingAdmissionPolicy '")?;
    let (name, rest) = rest.split_once('\'')?;
    let (_, said) = rest.split_once("denied request")?;
    Some(AdmissionRefusal {
        by: AdmissionRefuser::Policy(name.to_owned()),
        said: said.trim_start_matches([':', ' ']).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
    fn webhook(name: &str, said: &str) -> Option<AdmissionRefusal> {
        let by = AdmissionRefuser::Webhook(name.into());
        let said = said.into();
        Some(AdmissionRefusal { by, said })
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
    fn policy(name: &str, said: &str) -> Option<AdmissionRefusal> {
        let by = AdmissionRefuser::Policy(name.into());
        let said = said.into();
        Some(AdmissionRefusal { by, said })
    }

    #[test]
    fn who_refuses_at_admission_is_read_from_the_servers_words() {
        for (message, expected) in [
            (
                r#"admission webhook "strimzi-drain-cleaner.strimzi.io" denied the request: The pod will be rolled by the Strimzi Cluster Operator"#,
                webhook(
                    "strimzi-drain-cleaner.strimzi.io",
                    "The pod will be rolled by the Strimzi Cluster Operator",
                ),
            ),
            (
                r#"admission webhook "a.b" denied the request without explanation"#,
                webhook("a.b", "without explanation"),
            ),
            (
                r#"Internal error occurred: failed calling webhook "a.b": failed to call webhook: Post "https://a.b.svc:443/evict": dial tcp: connection refused"#,
                webhook(
                    "a.b",
                    r#"the webhook cannot be called: failed to call webhook: Post "https://a.b.svc:443/evict": dial tcp: connection refused"#,
                ),
            ),
            (
                r#"pods "web-1" is forbidden: ValidatingAdmissionPolicy 'keep-web' with binding 'keep-web-all' denied request: not before noon"#,
                policy("keep-web", "not before noon"),
            ),
            (
                r#"pods "web-1" is forbidden: ValidatingAdmissionPolicy 'keep-web' denied request: failed to configure policy: no params"#,
                policy("keep-web", "failed to configure policy: no params"),
            ),
        ] {
            assert_eq!(
                AdmissionRefusal::parse_message(message),
                expected,
                "{message}"
            );
        }
    }

    #[test]
    fn what_is_no_refusal_by_admission_is_not_taken_for_one() {
        for message in [
            r#"pods "web-1" is forbidden: User "u" cannot create resource "pods/eviction" in API group "" in the namespace "shop""#,
            r#"pods "web-1" is forbidden: node "n1" can only evict pods with spec.nodeName set to itself"#,
            "Cannot evict pod as it would violate the pod's disruption budget.",
            "admission webhook",
            "",
        ] {
            assert_eq!(AdmissionRefusal::parse_message(message), None, "{message}");
        }
    }
}
