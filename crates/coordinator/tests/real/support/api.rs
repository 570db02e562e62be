//! The tests' client for the API server: paths and JSON.

use dogwatch_k8s::{ApiErrorKind, Client};
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use serde_json::Value;

/// The administrator's client. An error ends the test, unless stated otherwise.
#[derive(Clone)]
pub struct Api(pub Client);

pub const JSON: &str = "application/json";
pub const MERGE: &str = "application/merge-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

impl Api {
    pub async fn get(&self, path: &str) -> Option<Value> {
        let answer = self.0.request(request("GET", path, JSON, Vec::new())).await;
        match answer.map_err(dogwatch_k8s::Error::from) {
            Ok(answer) => Some(answer),
            Err(error) if error.kind() == ApiErrorKind::NotFound => None,
            Err(error) => panic!("GET {path}: {}", error.error_chain()),
        }
    }

    pub async fn create(&self, path: &str, object: &Value) -> Value {
        self.send("POST", path, JSON, object).await
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> Value {
        self.send("PATCH", path, MERGE, patch).await
    }

    /// A strategic merge patch: conditions and taints are lists that several tools share.
    pub async fn strategic(&self, path: &str, patch: &Value) -> Value {
        self.send("PATCH", path, STRATEGIC, patch).await
    }

    /// Creates the object, or changes an existing one.
    pub async fn apply(&self, path: &str, object: &Value) -> Value {
        let path = format!("{path}?fieldManager=test&force=true");
        self.send("PATCH", &path, APPLY, object).await
    }

    pub async fn delete(&self, path: &str) {
        self.send("DELETE", path, JSON, &serde_json::json!({}))
            .await;
    }

    /// Deletes with grace period 0.
    pub async fn delete_now(&self, path: &str) {
        let now = serde_json::json!({ "gracePeriodSeconds": 0 });
        self.send("DELETE", path, JSON, &now).await;
    }

    /// Returns the answer, or the text of a refusal. No answer ends the test.
    pub async fn attempt(
        &self,
        verb: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let request = request(verb, path, kind, body.to_string().into_bytes());
        let answer = self.0.request::<Value>(request).await;
        answer.map_err(|error| {
            let error = dogwatch_k8s::Error::from(error);
            let refused = matches!(
                error.kind(),
                ApiErrorKind::Forbidden | ApiErrorKind::Refused
            );
            assert!(refused, "{verb} {path}: {}", error.error_chain());
            error.error_chain()
        })
    }

    async fn send(&self, verb: &str, path: &str, kind: &str, body: &Value) -> Value {
        let request = request(verb, path, kind, body.to_string().into_bytes());
        match self.0.request::<Value>(request).await {
            Ok(answer) => answer,
            Err(error) => panic!("{verb} {path}: {error}"),
        }
    }

    /// A list and its version; `None` while the API server is away.
    pub async fn list(&self, path: &str) -> Option<(Vec<Value>, String)> {
        let request = request("GET", path, JSON, Vec::new());
        let mut list: Value = self.0.request(request).await.ok()?;
        let version = list["metadata"]["resourceVersion"].as_str()?.to_owned();
        let items = list["items"].as_array_mut().map(std::mem::take);
        Some((items.unwrap_or_default(), version))
    }

    /// Every change after `version`, as `{type, object}`, until the connection ends.
    pub async fn watch(
        &self,
        path: &str,
        version: &str,
    ) -> Option<impl Stream<Item = Value> + use<>> {
        let path = format!("{path}?watch=1&resourceVersion={version}");
        let lines = self
            .0
            .request_stream(request("GET", &path, JSON, Vec::new()))
            .await
            .ok()?;
        let changes = Box::pin(lines)
            .lines()
            .filter_map(async |line| serde_json::from_str(&line.ok()?).ok());
        Some(changes)
    }
}

fn request(verb: &str, path: &str, kind: &str, body: Vec<u8>) -> http::Request<Vec<u8>> {
    let request = http::Request::builder()
        .method(verb)
        .uri(path)
        .header(http::header::CONTENT_TYPE, kind);
    request.body(body).expect("a path of this suite")
}
