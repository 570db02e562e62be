//! Structural schemas of custom resources, compiled once per definition: pruning, defaults,
//! validation, and CEL rules, in the words of the real API server.
//!
//! Deliberately not built: `patternProperties`, embedded resources beyond their metadata, cost
//! limits of CEL rules (the real server refuses a definition whose rules may become too costly),
//! and the formats that [`format`] does not list. A definition with a rule that does not compile,
//! or that calls a function that is not there, is refused: no rule is skipped silently.

mod cel_functions;
mod cel_rule;
mod cel_value;
mod defaults;
mod fields;
mod format;
mod list_keys;
mod node;
mod node_parser;
mod paths;
mod pruning;
mod rule_check;
mod structure_check;
#[cfg(test)]
mod tests;
mod value_check;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::Value;

use self::node::SchemaNode;
use super::status::FieldError;

pub(crate) use self::fields::UndeclaredField;

/// The schemas that this process has compiled, by their text: simulations define the same kinds over
/// and over.
static COMPILED_SCHEMAS: LazyLock<Mutex<BTreeMap<String, Arc<StructuralSchema>>>> =
    LazyLock::new(Mutex::default);

const MAX_COMPILED_SCHEMAS: usize = 256;

/// The compiled schema of one version of a custom resource.
#[derive(Debug)]
pub(crate) struct StructuralSchema {
    root: SchemaNode,
}

/// Which part of an object a write may change, and so which part is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckedPart {
    WholeObject,
    Status,
}

impl StructuralSchema {
    /// Compiles an `openAPIV3Schema`, once per process. Fails with the rules and patterns that do
    /// not compile.
    pub(crate) fn compile_once(schema: &Value) -> Result<Arc<Self>, Vec<FieldError>> {
        let text = schema.to_string();
        let mut compiled = COMPILED_SCHEMAS.lock().expect("no compilation panics");
        if let Some(schema) = compiled.get(&text) {
            return Ok(Arc::clone(schema));
        }
        let schema = Arc::new(Self::compile_schema(schema)?);
        if compiled.len() >= MAX_COMPILED_SCHEMAS {
            compiled.clear();
        }
        compiled.insert(text, Arc::clone(&schema));
        Ok(schema)
    }

    fn compile_schema(schema: &Value) -> Result<Self, Vec<FieldError>> {
        let root = node_parser::parse_root(schema)?;
        Ok(Self { root })
    }

    /// Removes the fields that the schema does not know, and returns their paths, sorted.
    pub(crate) fn prune_unknown_fields(&self, object: &mut Value) -> Vec<String> {
        pruning::prune_object(&self.root, object)
    }

    /// Fills in defaults.
    pub(crate) fn apply_defaults(&self, object: &mut Value) {
        defaults::apply_defaults(&self.root, object);
    }

    /// The first field that the schema does not know, or whose type is another one, as
    /// server-side apply names it.
    pub(crate) fn find_undeclared_field(&self, config: &Value) -> Option<UndeclaredField> {
        fields::find_undeclared_field(&self.root, config)
    }

    /// What is wrong with an object; `old` is its state before an update.
    pub(crate) fn validate_object(
        &self,
        object: &Value,
        old: Option<&Value>,
        part: CheckedPart,
    ) -> Vec<FieldError> {
        let mut wrong = structure_check::check_structure(&self.root, object, old, part);
        list_keys::check_list_keys(&self.root, object, old, &mut wrong);
        if !self.root.has_rules {
            return wrong;
        }
        if wrong.iter().any(FieldError::blocks_rules) {
            wrong.push(FieldError::rules_not_checked());
        } else {
            rule_check::check_rules(&self.root, object, old, &mut wrong);
        }
        wrong
    }
}
