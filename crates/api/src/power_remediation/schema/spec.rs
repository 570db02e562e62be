//! `spec`, of a request and of a template.
//!
//! What is not given is filled in by the API server: a health check may make a request of a template that
//! says nothing, and the rule against a change needs both values.

use dogwatch_core::remedy::StrategyType;
use serde_json::{Value, json};

use crate::power_remediation::{DEFAULT_RETRY_LIMIT, DEFAULT_TIMEOUT, MAX_RETRY_LIMIT};
use crate::schema_words::{object, one_of, rule, ruled, time_limit_of_at_least, with};

/// Whose spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// It cannot become another strategy: half of the first may be done.
    Request,
    /// Those that were made of it keep what they have.
    Template,
}

/// `spec`.
pub(crate) fn spec(of: Of) -> Value {
    let strategy = object(
        "How.",
        &[],
        [
            ("type", kind(of)),
            ("retryLimit", retry_limit()),
            ("timeout", timeout()),
        ],
    );
    let spec = object(
        "What a person, or a health check, wrote.",
        &[],
        [("strategy", with(strategy, "default", json!({})))],
    );
    with(spec, "default", json!({}))
}

fn kind(of: Of) -> Value {
    let kind = with(
        one_of(
            "How workloads are released once the host is proved off. DeleteNode: the Node is deleted, and \
             registers again. OutOfServiceTaint: it stays, with the taint \
             node.kubernetes.io/out-of-service until a new boot is Ready.",
            &[
                StrategyType::DeleteNode.as_str(),
                StrategyType::OutOfServiceTaint.as_str(),
            ],
        ),
        "default",
        json!(StrategyType::DeleteNode.as_str()),
    );
    match of {
        Of::Request => ruled(
            kind,
            [rule(
                "self == oldSelf",
                "cannot be changed: half of the first may be done; delete this one and make another",
            )],
        ),
        Of::Template => kind,
    }
}

fn retry_limit() -> Value {
    json!({
        "type": "integer",
        "format": "int32",
        "minimum": 0,
        "maximum": MAX_RETRY_LIMIT,
        "default": DEFAULT_RETRY_LIMIT,
        "description": "How often it is tried again: attempts are one more. May be changed while it runs.",
    })
}

fn timeout() -> Value {
    let timeout = time_limit_of_at_least(
        "How long one attempt may take, from off to a new boot that is Ready; a Go duration. May be \
         changed while it runs.",
        "1m",
        "write at least 1m: off is confirmed by two readings, and a machine has to boot",
    );
    with(timeout, "default", json!(DEFAULT_TIMEOUT))
}
