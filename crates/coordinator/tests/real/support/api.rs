//! The API server as the tests ask it: paths and JSON.

use dogwatch_k8s::{Client, Kind};
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use serde_json::Value;

/// The administrator's hand. An answer that is no success ends the test, unless said otherwise.
#[derive(Clone)]
pub struct Api(pub Client);

/// A whole object.
pub const JSON: &str = "application/json";
/// A JSON merge patch.
pub const MERGE: &str = "application/merge-patch+json";
/// A strategic merge patch.
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// A list of operations.
pub const JSON_PATCH: &str = "application/json-patch+json";
/// Server-side apply.
pub const APPLY: &str = "application/apply-patch+yaml";

impl Api {
    pub async fn get(&self, path: &str) -> Option<Value> {
        let answer = self.0.request(request("GET", path, JSON, Vec::new())).await;
        match answer.map_err(dogwatch_k8s::Error::from) {
            Ok(answer) => Some(answer),
            Err(error) if error.kind() == Kind::NotFound => None,
            Err(error) => panic!("GET {path}: {}", error.in_words()),
        }
    }

    pub async fn create(&self, path: &str, object: &Value) -> Value {
        self.send("POST", path, JSON, object).await
    }

    /// A JSON merge patch.
    pub async fn merge(&self, path: &str, patch: &Value) -> Value {
        self.send("PATCH", path, MERGE, patch).await
    }

    /// Makes the object, or changes it where it exists.
    pub async fn apply(&self, path: &str, object: &Value) -> Value {
        let path = format!("{path}?fieldManager=test&force=true");
        self.send("PATCH", &path, APPLY, object).await
    }

    pub async fn delete(&self, path: &str) {
        self.send("DELETE", path, JSON, &serde_json::json!({}))
            .await;
    }

    /// Without any grace.
    pub async fn delete_now(&self, path: &str) {
        let now = serde_json::json!({ "gracePeriodSeconds": 0 });
        self.send("DELETE", path, JSON, &now).await;
    }

    /// What may be refused: the answer, or the API server's words. No answer ends the test.
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
            let refused = matches!(error.kind(), Kind::Forbidden | Kind::Refused);
            assert!(refused, "{verb} {path}: {}", error.in_words());
            error.in_words()
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
