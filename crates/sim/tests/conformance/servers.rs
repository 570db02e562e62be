//! Both servers, reached alike: raw HTTP under a kube client.

use dogwatch_testbed::ControlPlane;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::embedded::server;
use crate::support::real::client_that_asks_once;

/// Who asks, and so the field manager where a request names none.
pub const AGENT: &str = "conformance";

/// One server.
#[derive(Clone)]
pub struct Server {
    /// For messages.
    pub name: &'static str,
    client: kube::Client,
}

/// What came back, unread.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub media_type: String,
    pub retry_after: Option<String>,
    /// The events of a watch as an array; what is no JSON as text.
    pub body: Value,
}

impl Server {
    /// A new embedded server, empty but for what every cluster has.
    pub fn embedded() -> Self {
        let client = server().client("conformance");
        Self {
            name: "embedded",
            client,
        }
    }

    /// The real one that all cases of this process share.
    pub async fn real() -> Self {
        Self {
            name: "real",
            client: client_that_asks_once(control_plane().await.kubeconfig()).await,
        }
    }

    /// A namespace for one case.
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

    /// One request and its whole answer; that of a watch is whole when the watch has ended.
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
            body: read(&bytes),
        }
    }
}

const WITHOUT: &str = "--disable-admission-plugins=TaintNodesByCondition,DefaultTolerationSeconds";

/// Without controllers: what they would write would come at times of their own. And without two
/// plugins of admission that the embedded server has not: one taints each new Node until the node
/// lifecycle controller finds it ready, one lets a pod tolerate an unready node for five minutes.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let builder = ControlPlane::builder().controllers([]);
            let builder = builder.api_server_flag(WITHOUT);
            builder.start().await.unwrap()
        })
        .await
}

/// One document as it is, several (the events of a watch) as an array.
fn read(bytes: &[u8]) -> Value {
    let documents = serde_json::Deserializer::from_slice(bytes).into_iter();
    let documents: Result<Vec<Value>, _> = documents.collect();
    match documents.as_deref() {
        Ok([one]) if one.get("type").is_none_or(|_| one.get("object").is_none()) => one.clone(),
        Ok(many) => Value::Array(many.to_vec()),
        Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}
