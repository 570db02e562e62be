//! The test's own calls to the API server, which are cheaper than a kubectl each time.

use dogwatch_k8s::{ApiErrorKind, Client, Error};
use http::{Method, Request};
use serde_json::Value;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

pub struct Hand(pub Client);

impl Hand {
    /// Returns null if the object does not exist.
    pub async fn get(&self, path: &str) -> Value {
        match self.ask(Method::GET, path, JSON, &Value::Null).await {
            Err(error) if error.kind() == ApiErrorKind::NotFound => Value::Null,
            answer => answer.unwrap(),
        }
    }

    pub async fn merge(&self, path: &str, change: &Value) {
        let changed = self.ask(Method::PATCH, path, MERGE, change).await;
        changed.unwrap_or_else(|error| panic!("{path} {change}: {error}"));
    }

    /// The object may remain because of its finalizers.
    pub async fn delete(&self, path: &str) {
        let gone = self.ask(Method::DELETE, path, JSON, &Value::Null).await;
        gone.unwrap();
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Value, Error> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind).body(body).unwrap();
        self.0.request(request).await.map_err(Error::from)
    }
}
