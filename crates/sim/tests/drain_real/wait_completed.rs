//! `do: WaitCompleted` with the real Job controller.

use std::time::Duration;

use dogwatch_core::drain::{DrainConfig, PodRule, PodRules, RuleAction};
use dogwatch_testbed::ControlPlane;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::workload::PlayedWorkload;
use crate::support::real::client_that_asks_once;

#[tokio::test]
async fn a_jobs_pod_ends_by_itself_and_the_job_is_complete() {
    let controllers = ["job-controller", "garbage-collector-controller"];
    let builder = ControlPlane::builder().with_controllers(controllers);
    let plane = builder.start().await.unwrap();
    let web = PlayedWorkload::start(client_that_asks_once(plane.admin_kubeconfig()).await).await;
    let world = &web.world;
    world.job("web").await;
    web.until_ready().await;
    let pod = world.pods().await.remove(0);
    let action = RuleAction::WaitCompleted {
        timeout: Duration::from_hours(3),
    };
    let drain = world.drain(DrainConfig {
        rules: PodRules {
            rules: vec![PodRule {
                action,
                ..PodRule::default()
            }],
            ..PodRules::default()
        },
        ..DrainConfig::default()
    });
    world
        .until(&drain, |progress| progress.held.len() == 1)
        .await;
    assert!(!world.is_deleting(&pod).await);
    let ended = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
        "name": "c", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0}},
    }]}});
    let params = PatchParams::default();
    let pods = world.api::<Pod>();
    pods.patch_status(&pod, &params, &Patch::Merge(ended))
        .await
        .unwrap();
    // Its pod leaves only when the Job has counted it.
    let progress = world.until_drained(&drain).await;
    assert_eq!((progress.gone, progress.is_incomplete()), (1, false));
    let job = world.api::<Job>();
    world
        .within(async {
            while job.get("web").await.unwrap().status.unwrap().succeeded != Some(1) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    assert_eq!(web.pods_elsewhere().await, [""; 0]);
}
