//! `fieldValidation`: what happens to fields that a kind does not have.
//!
//! Unknown fields of custom resources are dropped, with a warning or an error. Those of built-in
//! kinds are looked for only in requests that carry the parameter, as every request of kubectl does:
//! the programs in the process build their objects from types, and could send none.

use serde_json::Value;

use super::kinds::ServedResource;
use super::request::ApiRequest;
use super::route::ApiRequestTarget;
use super::status::{ApiError, ApiResult, FieldError};
use super::store::ObjectStore;
use super::typed_fields::{TypeFault, find_type_faults};
use super::verbs::body::drop_nulls;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// How an object came about: refusals differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodedFrom {
    Body,
    Patch,
}

fn parse_field_validation(request: &ApiRequest) -> ApiResult<FieldValidation> {
    match request.query.get("fieldValidation") {
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Ignore" => Ok(FieldValidation::Ignore),
        "Strict" => Ok(FieldValidation::Strict),
        other => {
            let allowed = ["", "Ignore", "Strict", "Warn"].map(Value::from);
            let field = FieldError::not_supported("fieldValidation", &other.into(), &allowed);
            let options = match request.method {
                http::Method::POST => "CreateOptions",
                http::Method::PATCH => "PatchOptions",
                _ => "UpdateOptions",
            };
            Err(ApiError::invalid("meta.k8s.io", options, "", &[field]))
        }
    }
}

/// Drops unknown fields and fills in defaults; `object` still carries kind and version.
pub(crate) fn decode_fields(
    store: &mut ObjectStore,
    request: &ApiRequest,
    resource: &ServedResource,
    object: &mut Value,
    from: DecodedFrom,
) -> ApiResult<()> {
    let validation = parse_field_validation(request)?;
    if resource.custom.is_none() && !request.query.has_parameter("fieldValidation") {
        return Ok(());
    }
    // A refusal of a patch shows the whole object.
    let is_shown = validation == FieldValidation::Strict && from == DecodedFrom::Patch;
    let whole = if is_shown {
        object.clone()
    } else {
        Value::Null
    };
    let unknown = match &resource.schema {
        Some(schema) => schema.prune_unknown_fields(object),
        None if resource.custom.is_none() => find_unknown_typed_fields(resource, object)?,
        None => Vec::new(),
    };
    if !unknown.is_empty() {
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => {
                let warnings = unknown
                    .iter()
                    .map(|path| format!("unknown field \"{path}\""));
                store.warnings.extend(warnings);
            }
            FieldValidation::Strict => {
                return Err(strict_decoding_error(resource, from, &whole, &unknown));
            }
        }
    }
    drop_nulls(object);
    fill_in_defaults(resource, object);
    Ok(())
}

/// Fills in the defaults of a custom resource's schema.
pub(crate) fn fill_in_defaults(resource: &ServedResource, object: &mut Value) {
    if let Some(schema) = &resource.schema {
        schema.apply_defaults(object);
    }
}

/// The unknown fields of a built-in kind, which are also removed.
fn find_unknown_typed_fields(
    resource: &ServedResource,
    object: &mut Value,
) -> ApiResult<Vec<String>> {
    match find_type_faults(resource, object) {
        Ok(unknown) => Ok(unknown),
        Err(TypeFault(why)) => Err(ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            resource.kind, resource.version, resource.kind
        ))),
    }
}

fn strict_decoding_error(
    resource: &ServedResource,
    from: DecodedFrom,
    object: &Value,
    unknown: &[String],
) -> ApiError {
    let list = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""));
    let list = list.collect::<Vec<_>>().join(", ");
    let why = format!("strict decoding error: {list}");
    match from {
        DecodedFrom::Body => ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            resource.kind, resource.version, resource.kind
        )),
        DecodedFrom::Patch => {
            let field = FieldError::invalid("patch", &object.to_string().into(), &why);
            ApiError::invalid("", "", "", &[field])
        }
    }
}

/// An applied configuration has declared fields of the declared types only.
pub(crate) fn check_applied_fields(
    request: &ApiRequest,
    resource: &ServedResource,
    target: &ApiRequestTarget,
    config: &Value,
) -> ApiResult<()> {
    parse_field_validation(request)?;
    let fault = match &resource.schema {
        Some(schema) => schema
            .find_undeclared_field(config)
            .map(|field| format!("{}: {}", field.path, field.why)),
        None if resource.custom.is_some() || !request.query.has_parameter("fieldValidation") => {
            None
        }
        None => match find_type_faults(resource, &mut config.clone()) {
            Ok(unknown) => unknown
                .first()
                .map(|path| format!(".{path}: field not declared in schema")),
            Err(TypeFault(why)) => Some(why),
        },
    };
    fault.map_or(Ok(()), |why| Err(untyped_patch_error(target, &why)))
}

/// The error for a configuration that does not fit its type.
pub(crate) fn untyped_patch_error(target: &ApiRequestTarget, why: &str) -> ApiError {
    let resource = &target.resource;
    let (namespace, name) = (&target.namespace, &target.name);
    let (version, kind) = (resource.api_version(), &resource.kind);
    ApiError::without_reason(
        500,
        format!(
            "failed to create typed patch object ({namespace}/{name}; {version}, Kind={kind}): {why}"
        ),
    )
}
