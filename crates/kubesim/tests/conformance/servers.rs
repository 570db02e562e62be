//! Both servers behind one interface: raw HTTP under a kube client.

use std::sync::Arc;

use dogwatch_kubesim::api::{ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_testbed::ControlPlane;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WARNING};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::client_that_asks_once;

/// The User-Agent, and so the field manager of a request that names none.
pub const AGENT: &str = "conformance";

#[derive(Clone)]
pub struct Server {
    /// For messages.
    pub name: &'static str,
    client: kube::Client,
}

/// A status code and the body.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub media_type: String,
    pub retry_after: Option<String>,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    /// The events of a watch as an array; a body that is no JSON as text.
    pub body: Value,
}

impl Server {
    /// A new embedded server with only the initial objects.
    pub fn embedded() -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(TokioClock::starting_at(epoch));
        let server = ApiServer::new(clock, ApiServerOptions::default());
        let client = server.client_for_user("conformance");
        Self {
            name: "embedded",
            client,
        }
    }

    /// The real server, which all cases of this process share.
    pub async fn real() -> Self {
        Self {
            name: "real",
            client: client_that_asks_once(control_plane().await.admin_kubeconfig()).await,
        }
    }

    pub async fn make_namespace(&self, name: &str) {
        let body = json!({ "metadata": { "name": name } }).to_string();
        let request = http::Request::post("/api/v1/namespaces")
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, AGENT)
            .body(body.into_bytes())
            .unwrap();
        let answer = self.ask(request).await;
        assert_eq!(answer.code, 201, "{answer:?}");
    }

    /// Sends a request and reads the whole answer; that of a watch is complete when the watch ends.
    pub async fn ask(&self, request: http::Request<Vec<u8>>) -> Answer {
        let request = request.map(Body::from);
        let (head, body) = self.client.send(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let header = |name| {
            let value = head.headers.get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let media_type = header(CONTENT_TYPE).unwrap_or_default();
        Answer {
            code: head.status.as_u16(),
            media_type: media_type.split(';').next().unwrap_or_default().to_owned(),
            retry_after: header(RETRY_AFTER),
            warnings: all_warnings(&head.headers),
            body: read(&bytes),
        }
    }
}

fn all_warnings(headers: &http::HeaderMap) -> Vec<String> {
    let all = headers.get_all(WARNING).iter();
    all.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

const WITHOUT: &str = "--disable-admission-plugins=TaintNodesByCondition,DefaultTolerationSeconds";

/// Without controllers, because their writes would come at random times. And without two admission
/// plugins that the embedded server lacks: one taints each new Node until the node lifecycle
/// controller finds it Ready, one lets a pod tolerate an unready node for five minutes.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let builder = ControlPlane::builder().with_controllers([]);
            let builder = builder.with_api_server_flag(WITHOUT);
            builder.start().await.unwrap()
        })
        .await
}

/// Parses one document, or several (the events of a watch) as an array.
fn read(bytes: &[u8]) -> Value {
    let documents = serde_json::Deserializer::from_slice(bytes).into_iter();
    let documents: Result<Vec<Value>, _> = documents.collect();
    match documents.as_deref() {
        Ok([one]) if one.get("type").is_none_or(|_| one.get("object").is_none()) => one.clone(),
        Ok(many) => Value::Array(many.to_vec()),
        Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}
