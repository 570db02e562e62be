//! Schema of `spec`, of a request and of a template.
//!
//! The API server fills in defaults: a health check may create a request from an empty template,
//! and the rule against a change needs both values.

use dogwatch_core::remediation::StrategyType;
use serde_json::{Value, json};

use crate::power_remediation::{DEFAULT_RETRY_LIMIT, DEFAULT_TIMEOUT, MAX_RETRY_LIMIT};
use crate::schema_parts::{
    cel_rule, enum_schema, min_time_limit_schema, object_schema, with_keyword, with_rules,
};

/// The kind that the spec belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecOwner {
    /// A request's strategy must not change: half of the first may be done.
    Request,
    /// A template may change: existing requests keep their strategy.
    Template,
}

pub(crate) fn spec_schema(of: SpecOwner) -> Value {
    let strategy = object_schema(
        "How.",
        &[],
        [
            ("type", strategy_type_schema(of)),
            ("retryLimit", retry_limit_schema()),
            ("timeout", timeout_schema()),
        ],
    );
    let spec = object_schema(
        "What a person or a health check requested.",
        &[],
        [("strategy", with_keyword(strategy, "default", json!({})))],
    );
    with_keyword(spec, "default", json!({}))
}

fn strategy_type_schema(of: SpecOwner) -> Value {
    let kind = with_keyword(
        enum_schema(
            "How workloads are released when the host is proved off. DeleteNode: the Node is \
             deleted, and registers again. OutOfServiceTaint: the Node stays, with the taint \
             node.kubernetes.io/out-of-service until it is Ready with a new boot.",
            &[
                StrategyType::DeleteNode.as_str(),
                StrategyType::OutOfServiceTaint.as_str(),
            ],
        ),
        "default",
        json!(StrategyType::DeleteNode.as_str()),
    );
    match of {
        SpecOwner::Request => with_rules(
            kind,
            [cel_rule(
                "self == oldSelf",
                "this field cannot be changed, because the remediation may be half done; delete \
                 this request and create another one",
            )],
        ),
        SpecOwner::Template => kind,
    }
}

fn retry_limit_schema() -> Value {
    json!({
        "type": "integer",
        "format": "int32",
        "minimum": 0,
        "maximum": MAX_RETRY_LIMIT,
        "default": DEFAULT_RETRY_LIMIT,
        "description": "How often the remediation is tried again: the number of attempts is one \
            more. It may be changed while the remediation runs.",
    })
}

fn timeout_schema() -> Value {
    let timeout = min_time_limit_schema(
        "How long one attempt may take, from the start until the Node is Ready with a new boot; a \
         Go duration. It may be changed while the remediation runs.",
        "1m",
        "write at least 1m: off is confirmed by two readings, and a machine has to boot",
    );
    with_keyword(timeout, "default", json!(DEFAULT_TIMEOUT))
}
