//! The calls of a drain, each with its answer.

use dogwatch_core::drain::{
    Answer, BudgetSeen, DaemonSetRef, EvictionId, Lookup, PodRef, Try, Way,
};
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Client};

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
    let preconditions = serde_json::json!({ "preconditions": { "uid": uid } });
    let request = match one.way {
        Way::Evict => http::Request::post(format!("{pod}/eviction")).body(serde_json::json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "namespace": namespace, "name": name },
            "deleteOptions": preconditions,
        })),
        Way::Delete => http::Request::delete(pod).body(preconditions),
    };
    let (mut parts, body) = request.map_err(kube::Error::HttpError)?.into_parts();
    parts.headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    let body = body.to_string().into_bytes();
    client
        .request_text(http::Request::from_parts(parts, body))
        .await
        .map(drop)
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
