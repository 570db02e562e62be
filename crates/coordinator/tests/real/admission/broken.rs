//! A lock whose holder is gone, where only the controller may break it. Source: specification §2.2.

use serde_json::json;

use super::hand;
use crate::support::api::MERGE;
use crate::support::{Cluster, token};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases/dogwatch-default-0";

#[tokio::test]
async fn one_who_waits_may_not_break_it_says_so_and_goes_on_once_the_controller_has() {
    let cluster = Cluster::new().await;
    cluster.plane.expect_refusals();
    let machines = cluster.machines_whose_holder_is_gone().await;
    let refusal = [
        "leaves a lock whose holder no longer exists to the controller",
        "needs verb break",
    ];
    machines[1].log().until(&refusal).await;

    let controller = token::on_node(&cluster.api, "dogwatch-controller", machines[1].name()).await;
    let controller = hand(&cluster, &controller).await;
    let free = json!({
        "metadata": { "annotations": { "dogwatch.dev/holder": null } },
        "spec": { "holderIdentity": null, "acquireTime": null },
    });
    let freed = controller.attempt("PATCH", LEASE, MERGE, &free).await;
    freed.expect("the controller may break it");
    machines[1].until_back().await;
    assert_eq!((machines[0].commands(), machines[1].commands()), (0, 1));
}
