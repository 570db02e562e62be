//! One rule of `x-kubernetes-validations`, compiled once.

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Program, Value as CelValue};
use serde_json::Value;

use super::cel_functions::{add_kubernetes_functions, is_known_function};
use super::cel_value::{ItemOrder, cel_value_of};
use super::node::SchemaNode;
use crate::api::value::{bool_at, text_at};

/// The standard library and the functions that Kubernetes adds.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

#[derive(Debug)]
pub(super) struct CelRule {
    program: Program,
    source: String,
    message: String,
    message_expression: Option<Program>,
    reason: String,
    field_path: Option<String>,
    compares_with_old: bool,
    old_is_optional: bool,
}

/// Why a rule does not hold.
#[derive(Debug)]
pub(super) enum RuleFault {
    /// The rule is false.
    Broken(String),
    /// The rule has no value.
    Evaluation(String),
}

impl RuleFault {
    pub(super) fn as_text(&self) -> &str {
        match self {
            Self::Broken(text) | Self::Evaluation(text) => text,
        }
    }
}

impl CelRule {
    /// Fails with what is wrong with the rule.
    pub(super) fn compile_rule(rule: &Value) -> Result<Self, String> {
        let source = text_at(rule, &["rule"]).trim().to_owned();
        let program = compile_program(&source)?;
        let expression = text_at(rule, &["messageExpression"]);
        let message_expression = match expression {
            "" => None,
            expression => Some(compile_program(expression)?),
        };
        let field_path = text_at(rule, &["fieldPath"]).trim_start_matches('.');
        Ok(Self {
            compares_with_old: program.references().has_variable("oldSelf"),
            program,
            source,
            message: text_at(rule, &["message"]).trim().to_owned(),
            message_expression,
            reason: text_at(rule, &["reason"]).to_owned(),
            field_path: (!field_path.is_empty()).then(|| field_path.to_owned()),
            old_is_optional: bool_at(rule, &["optionalOldSelf"]),
        })
    }

    /// Whether the rule compares with the old state.
    pub(super) fn is_transition_rule(&self) -> bool {
        self.compares_with_old
    }

    /// The field that a failure names, below the field of the rule.
    pub(super) fn field_path(&self) -> Option<&str> {
        self.field_path.as_deref()
    }

    /// The reason that the rule gives for its failures; empty for the usual one.
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    /// None when the rule holds, or does not apply because there is no old state.
    pub(super) fn evaluate_rule(
        &self,
        node: &SchemaNode,
        value: &Value,
        old: Option<&Value>,
    ) -> Option<RuleFault> {
        if self.compares_with_old && old.is_none() && !self.old_is_optional {
            return None;
        }
        let context = self.build_context(node, value, old);
        match self.program.execute(&context) {
            Ok(CelValue::Bool(true)) => None,
            Ok(_) => Some(RuleFault::Broken(self.failure_text(&context))),
            Err(error) => Some(RuleFault::Evaluation(self.evaluation_text(&error))),
        }
    }

    fn build_context(
        &self,
        node: &SchemaNode,
        value: &Value,
        old: Option<&Value>,
    ) -> Context<'static, 'static> {
        // Sets and keyed lists are equal in any order.
        let order = if self.compares_with_old {
            ItemOrder::ByIdentity
        } else {
            ItemOrder::AsGiven
        };
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        add_kubernetes_functions(&mut context);
        context.add_variable_from_value("self", cel_value_of(node, value, order));
        let old = old.map(|old| cel_value_of(node, old, order));
        if self.old_is_optional {
            let old = old.map_or_else(
                cel::objects::OptionalValue::none,
                cel::objects::OptionalValue::of,
            );
            context.add_variable_from_value("oldSelf", CelValue::Opaque(Arc::new(old)));
        } else if let Some(old) = old {
            context.add_variable_from_value("oldSelf", old);
        }
        context
    }

    fn failure_text(&self, context: &Context<'_, '_>) -> String {
        let expression = self.message_expression.as_ref();
        let said = expression.and_then(|program| program.execute(context).ok());
        if let Some(CelValue::String(text)) = said {
            let text = text.trim();
            if !text.is_empty() && !text.contains('\n') {
                return text.to_owned();
            }
        }
        if self.message.is_empty() {
            format!("failed rule: {}", self.source)
        } else {
            self.message.clone()
        }
    }

    fn evaluation_text(&self, error: &ExecutionError) -> String {
        let about = if self.message.is_empty() {
            &self.source
        } else {
            &self.message
        };
        if matches!(error, ExecutionError::NoSuchOverload(_)) {
            return format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {about}"
            );
        }
        format!("{error} evaluating rule: {about}")
    }
}

fn compile_program(source: &str) -> Result<Program, String> {
    if source.is_empty() {
        return Err("rule is not specified".into());
    }
    let program = ENVIRONMENT
        .compile(source)
        .map_err(|error| error.to_string())?;
    let functions = program.references();
    let mut functions = functions.functions().into_iter();
    match functions.find(|name| !is_known_function(name)) {
        Some(name) => Err(format!(
            "undeclared reference to '{name}' (in container '')"
        )),
        None => Ok(program),
    }
}
