//! The calls of a drain, each with its answer.

use dogwatch_core::drain::{
    Answer, BudgetSeen, DaemonSetRef, EvictionId, Lookup, PodRef, Try, Way,
};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use kube::{Api, Client};
use serde_json::json;

use super::{answer, budget};
use crate::Error;
use crate::error::ask;

/// A call that came back.
pub(super) enum Done {
    Tried(EvictionId, Answer),
    LookedUp(DaemonSetRef, Lookup),
    Budgets(Result<Vec<BudgetSeen>, String>),
}

pub(super) type Call = BoxFuture<'static, Done>;

pub(super) fn try_to_remove(client: Client, one: Try) -> Call {
    Box::pin(async move {
        let answer = ask_to_go(&client, &one).await;
        Done::Tried(one.id, answer)
    })
}

/// Asks one pod to go, this very incarnation of it, once.
pub async fn ask_to_go(client: &Client, one: &Try) -> Answer {
    answer::read(&one.pod.name, ask(send(client, one)).await)
}

/// kube's own `evict` writes `delete_options`, which the API server does not know and passes over:
/// the UID would be no precondition at all. So both requests are written here.
async fn send(client: &Client, one: &Try) -> kube::Result<()> {
    let PodRef {
        namespace,
        name,
        uid,
    } = &one.pod;
    let pod = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let preconditions = json!({ "preconditions": { "uid": uid } });
    let (request, body) = match one.way {
        Way::Evict => {
            let metadata = json!({ "namespace": namespace, "name": name });
            let body = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": metadata,
                "deleteOptions": preconditions,
            });
            (Request::post(format!("{pod}/eviction")), body)
        }
        Way::Delete => (Request::delete(pod), preconditions),
    };
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_string().into_bytes()));
    let answer = client
        .send(request.map_err(kube::Error::HttpError)?)
        .await?;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(refusal(answer).await?)
}

/// The answer as a Status. kube would drop the headers, and an overloaded API server says
/// `Retry-After` in a header alone, above a line of plain text.
async fn refusal(answer: Response<Body>) -> kube::Result<kube::Error> {
    let code = answer.status().as_u16();
    let header = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let retry_after: Option<u32> = header.and_then(|seconds| seconds.parse().ok());
    let body = answer.into_body().collect_bytes().await?;
    let mut status: Status = serde_json::from_slice(&body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&body).trim().to_owned();
        Status::failure(&text, "NoStatus")
    });
    status.code = code;
    if let Some(seconds) = retry_after {
        status
            .details
            .get_or_insert_with(no_details)
            .retry_after_seconds = seconds;
    }
    Ok(kube::Error::Api(status.boxed()))
}

fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

pub(super) fn look_up(client: Client, set: DaemonSetRef) -> Call {
    Box::pin(async move {
        let api: Api<DaemonSet> = Api::namespaced(client, &set.namespace);
        let lookup = match ask(api.get_metadata(&set.name)).await {
            Ok(_) => Lookup::Exists,
            Err(Error::Answer(status)) if answer::says_not_found(&set.name, &status) => {
                Lookup::Gone
            }
            Err(error) => Lookup::Failed {
                why: error.in_words(),
            },
        };
        Done::LookedUp(set, lookup)
    })
}

pub(super) fn list_budgets(client: Client) -> Call {
    Box::pin(async move {
        let api: Api<PodDisruptionBudget> = Api::all(client);
        let list = ask(api.list(&ListParams::default())).await;
        let seen = list.map(|list| list.items.into_iter().map(budget::seen).collect());
        Done::Budgets(seen.map_err(|error| error.in_words()))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that answers every request alike.
    fn answering(code: u16, retry_after: Option<&'static str>, body: &'static str) -> Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let mut answer = Response::builder().status(code);
            if let Some(seconds) = retry_after {
                answer = answer.header(RETRY_AFTER, seconds);
            }
            answer.body(Body::from(body.as_bytes().to_vec()))
        });
        Client::new(service, "default")
    }

    async fn answer(client: Client) -> Answer {
        let pod = PodRef {
            namespace: "shop".into(),
            name: "web".into(),
            uid: "u1".into(),
        };
        ask_to_go(
            &client,
            &Try {
                id: EvictionId(1),
                pod,
                way: Way::Evict,
            },
        )
        .await
    }

    #[tokio::test]
    async fn an_overloaded_servers_retry_after_is_read_from_its_header() {
        let text = "Too many requests, please try again later.\n";
        let expected = Answer::TooMany {
            retry_after: Some(Duration::from_secs(9)),
            message: format!("HTTP 429 NoStatus: {}", text.trim()),
        };
        assert_eq!(answer(answering(429, Some("9"), text)).await, expected);
    }

    #[tokio::test]
    async fn what_is_no_answer_of_an_api_server_ends_nothing() {
        for (code, body) in [
            (404, "<html>"),
            (404, "{}"),
            (502, "bad gateway"),
            (503, "{}"),
        ] {
            let answer = answer(answering(code, None, body)).await;
            assert!(
                matches!(answer, Answer::Transient { .. }),
                "{code} {body}: {answer:?}"
            );
        }
    }

    #[tokio::test]
    async fn any_success_is_one_whatever_its_body() {
        assert_eq!(answer(answering(201, None, "")).await, Answer::Accepted);
    }
}
