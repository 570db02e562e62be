//! A person's hand on the API server.

use http::Method;
use serde_json::{Value, json};

use crate::api::{ApiServer, Reply, Request};

/// Who a person is.
const PERSON: &str = "admin";

/// A person's change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API server answers {code}: {message}")]
pub struct Refused {
    code: u16,
    message: String,
}

pub(super) fn create(server: &ApiServer, path: &str, object: &Value) -> Result<(), Refused> {
    ask(server, Method::POST, path, "application/json", object)
}

/// Makes it where there is none.
pub(super) fn ensure_namespace(server: &ApiServer, name: &str) -> Result<(), Refused> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    match create(server, "/api/v1/namespaces", &namespace) {
        Err(refused) if refused.code == 409 => Ok(()),
        done => done,
    }
}

pub(super) fn patch(server: &ApiServer, path: &str, patch: &Value) -> Result<(), Refused> {
    let kind = "application/merge-patch+json";
    ask(server, Method::PATCH, path, kind, patch)
}

pub(super) fn delete(server: &ApiServer, path: &str) -> Result<(), Refused> {
    ask(
        server,
        Method::DELETE,
        path,
        "application/json",
        &Value::Null,
    )
}

fn ask(
    server: &ApiServer,
    method: Method,
    path: &str,
    kind: &str,
    body: &Value,
) -> Result<(), Refused> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = Request::new(PERSON, method, path, body).content_type(kind);
    match server.handle(&request) {
        Reply::Response(answer) if answer.code >= 300 => Err(Refused {
            code: answer.code,
            message: answer.json()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }),
        Reply::Response(_) | Reply::Watch(_) => Ok(()),
    }
}
