//! Requests of an administrator to the API server.

use dogwatch_kubesim::api::{ApiReply, ApiRequest, ApiServer};
use http::Method;
use serde_json::{Value, json};

const ADMIN_USER: &str = "admin";

/// The API server refused an administrator's change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API server answers {code}: {message}")]
pub struct AdminRequestError {
    code: u16,
    message: String,
}

pub(crate) fn create_object(
    server: &ApiServer,
    path: &str,
    object: &Value,
) -> Result<(), AdminRequestError> {
    send_admin_request(server, Method::POST, path, "application/json", object)
}

pub(super) fn ensure_namespace(server: &ApiServer, name: &str) -> Result<(), AdminRequestError> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    match create_object(server, "/api/v1/namespaces", &namespace) {
        Err(refused) if refused.code == 409 => Ok(()),
        done => done,
    }
}

pub(super) fn patch_object(
    server: &ApiServer,
    path: &str,
    patch: &Value,
) -> Result<(), AdminRequestError> {
    let kind = "application/merge-patch+json";
    send_admin_request(server, Method::PATCH, path, kind, patch)
}

fn send_admin_request(
    server: &ApiServer,
    method: Method,
    path: &str,
    kind: &str,
    body: &Value,
) -> Result<(), AdminRequestError> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = ApiRequest::new(ADMIN_USER, method, path, body).with_content_type(kind);
    match server.handle_request(&request) {
        ApiReply::Response(answer) if answer.code >= 300 => Err(AdminRequestError {
            code: answer.code,
            message: answer.body_json()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }),
        ApiReply::Response(_) | ApiReply::Watch(_) => Ok(()),
    }
}
