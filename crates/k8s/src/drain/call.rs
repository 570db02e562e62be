//! Sends the API calls of a drain.

use std::collections::BTreeMap;

use dogwatch_core::drain::{
    DaemonSetLookup, DaemonSetRef, DeploymentLookup, DeploymentRestart, EvictionAnswer,
    EvictionAttempt, EvictionId, MachineRulesLookup, ObservedDisruptionBudget, PodIdentity,
    RemovalMethod, ReplicaSetRef, RestartAnswer,
};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use kube::{Api, Client};
use serde_json::json;

use super::{answer, budget, deployment, machine_rules};
use crate::Error;
use crate::error::with_timeout;
use crate::readable_dates::ReadableApi as _;

/// The result of one finished call.
pub(super) enum DrainCallResult {
    Tried(EvictionId, EvictionAnswer),
    LookedUp(DaemonSetRef, DaemonSetLookup),
    Budgets(Result<Vec<ObservedDisruptionBudget>, String>),
    Namespace(String, Result<BTreeMap<String, String>, String>),
    MachineRules(MachineRulesLookup),
    Deployment(ReplicaSetRef, DeploymentLookup),
    Restarted(ReplicaSetRef, RestartAnswer),
}

pub(super) type DrainCall = BoxFuture<'static, DrainCallResult>;

pub(super) fn removal_call(client: Client, one: EvictionAttempt) -> DrainCall {
    Box::pin(async move {
        let answer = request_pod_removal(&client, &one).await;
        DrainCallResult::Tried(one.id, answer)
    })
}

/// Sends one eviction or deletion for this pod, with its UID as precondition.
pub async fn request_pod_removal(client: &Client, one: &EvictionAttempt) -> EvictionAnswer {
    answer::parse_eviction_answer(&one.pod.name, with_timeout(send_removal(client, one)).await)
}

/// kube's own `evict` writes `delete_options`, a field that the API server ignores, so the UID
/// would be no precondition. Both requests are therefore built here.
async fn send_removal(client: &Client, one: &EvictionAttempt) -> kube::Result<()> {
    let PodIdentity {
        namespace,
        name,
        uid,
    } = &one.pod;
    let pod = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let preconditions = json!({ "preconditions": { "uid": uid } });
    let (request, body) = match one.removal_method {
        RemovalMethod::Evict => {
            let metadata = json!({ "namespace": namespace, "name": name });
            let body = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": metadata,
                "deleteOptions": preconditions,
            });
            (Request::post(format!("{pod}/eviction")), body)
        }
        RemovalMethod::Delete => (Request::delete(pod), preconditions),
    };
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_string().into_bytes()));
    let answer = client
        .send(request.map_err(kube::Error::HttpError)?)
        .await?;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(read_refusal(answer).await?)
}

/// Reads the refusal as a Status. kube would drop the headers, and an overloaded API server sends
/// `Retry-After` in a header only, with a plain text body.
async fn read_refusal(answer: Response<Body>) -> kube::Result<kube::Error> {
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
            .get_or_insert_with(empty_details)
            .retry_after_seconds = seconds;
    }
    Ok(kube::Error::Api(status.boxed()))
}

fn empty_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

pub(super) fn lookup_call(client: Client, set: DaemonSetRef) -> DrainCall {
    Box::pin(async move {
        let api: Api<DaemonSet> = Api::namespaced(client, &set.namespace);
        let lookup = match with_timeout(api.get_metadata(&set.name)).await {
            Ok(_) => DaemonSetLookup::Exists,
            Err(Error::Answer(status)) if answer::is_not_found_of(&set.name, &status) => {
                DaemonSetLookup::Gone
            }
            Err(error) => DaemonSetLookup::Failed {
                why: error.error_chain(),
            },
        };
        DrainCallResult::LookedUp(set, lookup)
    })
}

/// A namespace that does not exist has no labels; its pods are on their way out.
pub(super) fn namespace_call(client: Client, namespace: String) -> DrainCall {
    Box::pin(async move {
        let api: Api<Namespace> = Api::all(client);
        let labels = match with_timeout(api.get_metadata(&namespace)).await {
            Ok(found) => Ok(found.metadata.labels.unwrap_or_default()),
            Err(Error::Answer(status)) if answer::is_not_found_of(&namespace, &status) => {
                Ok(BTreeMap::new())
            }
            Err(error) => Err(error.error_chain()),
        };
        DrainCallResult::Namespace(namespace, labels)
    })
}

pub(super) fn machine_rules_call(client: Client, node: String) -> DrainCall {
    Box::pin(async move {
        let lookup = machine_rules::look_up_machine_rules(&client, &node).await;
        DrainCallResult::MachineRules(lookup)
    })
}

pub(super) fn deployment_call(client: Client, set: ReplicaSetRef) -> DrainCall {
    Box::pin(async move {
        let lookup = deployment::look_up_deployment(&client, &set).await;
        DrainCallResult::Deployment(set, lookup)
    })
}

pub(super) fn restart_call(client: Client, restart: DeploymentRestart) -> DrainCall {
    Box::pin(async move {
        let answer = deployment::restart_deployment(&client, &restart).await;
        DrainCallResult::Restarted(restart.replica_set, answer)
    })
}

pub(super) fn budget_list_call(client: Client) -> DrainCall {
    Box::pin(async move {
        let api: Api<PodDisruptionBudget> = Api::all(client);
        let list = with_timeout(api.list_readable(&ListParams::default())).await;
        let seen = list.map(|list| {
            list.items
                .into_iter()
                .map(budget::observed_budget)
                .collect()
        });
        DrainCallResult::Budgets(seen.map_err(|error| error.error_chain()))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that gives every request the same answer.
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

    async fn answer(client: Client) -> EvictionAnswer {
        let pod = PodIdentity {
            namespace: "shop".into(),
            name: "web".into(),
            uid: "u1".into(),
        };
        request_pod_removal(
            &client,
            &EvictionAttempt {
                id: EvictionId(1),
                pod,
                removal_method: RemovalMethod::Evict,
            },
        )
        .await
    }

    #[tokio::test]
    async fn an_overloaded_servers_retry_after_is_read_from_its_header() {
        let text = "Too many requests, please try again later.\n";
        let expected = EvictionAnswer::TooMany {
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
                matches!(answer, EvictionAnswer::Transient { .. }),
                "{code} {body}: {answer:?}"
            );
        }
    }

    #[tokio::test]
    async fn any_success_is_one_whatever_its_body() {
        assert_eq!(
            answer(answering(201, None, "")).await,
            EvictionAnswer::Accepted
        );
    }
}
