//! The remediator's watches and writes on the embedded API server: the cases, and tests with its
//! faults.

use std::time::Duration;

use dogwatch_k8s::remediation::{RemediationWatch, RemediationWriteError};
use dogwatch_kubesim::api::{ApiServer, ApiVerb, Denial, FaultEffect};
use serde_json::json;

use crate::remedy_client_cases;
use crate::remedy_client_cases::world::{CAPI, CLUSTER, HOME, METAL3_MACHINE, OPENSHIFT, World};
use crate::remedy_client_cases::{owner, record};
use crate::support::embedded::{asked, fail, server};

async fn world(server: &ApiServer) -> World {
    World::on(
        server.client_for_user("people"),
        server.client_for_user("controller"),
    )
    .await
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            remedy_client_cases::$name(&world(&server()).await).await;
        }
    )* };
}

remedy_client_cases::every_case!(on_embedded);

/// With the intervals of a real remediator: the clock is paused.
fn watch(server: &ApiServer) -> RemediationWatch {
    RemediationWatch::new(server.client_for_user("controller"), Some(HOME), || 1.0)
}

async fn synced(watch: &mut RemediationWatch) {
    while !watch.current_view().synced {
        watch.wait_for_change().await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_machines_come_page_by_page_and_nothing_is_asked_again() {
    let server = server();
    let world = world(&server).await;
    for number in 0..600 {
        let name = format!("m{number}");
        world.make(OPENSHIFT, &name, json!({ "spec": {} })).await;
    }
    server.clear_audit_log();
    let mut watch = watch(&server);
    synced(&mut watch).await;
    assert_eq!(watch.current_view().machines.len(), 600);
    // Three pages of OpenShift's Machines, and one list of each other kind.
    assert_eq!(asked(&server, "controller", ApiVerb::List), 3 + 5);
    tokio::select! {
        () = watch.wait_for_change() => panic!("{:?}", watch.current_view().errors),
        () = tokio::time::sleep(Duration::from_hours(1)) => {}
    }
    assert_eq!(asked(&server, "controller", ApiVerb::List), 3 + 5);
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_looked_for_every_five_minutes_and_no_oftener() {
    let server = server();
    let world = world(&server).await;
    for kind in [CAPI, CLUSTER, METAL3_MACHINE] {
        world.take_out(kind).await;
    }
    server.clear_audit_log();
    let mut watch = watch(&server);
    synced(&mut watch).await;
    let looks = || {
        let log = server.audit_log();
        let path = "/apis/cluster.x-k8s.io/v1beta2";
        log.iter().filter(|entry| entry.resource == path).count()
    };
    // One for Machines and one for Clusters.
    assert_eq!(looks(), 2);
    tokio::select! {
        () = watch.wait_for_change() => panic!("{:?}", watch.current_view()),
        () = tokio::time::sleep(Duration::from_secs(3590)) => {}
    }
    assert_eq!(looks(), 2 + 2 * 11);
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_stays_while_the_api_is_away_or_a_right_is_missing() {
    let server = server();
    let world = world(&server).await;
    let machine = world.machine(OPENSHIFT, "m", json!({ "spec": {} })).await;
    let mut sight = world.sight();
    sight.until_so(|view| view.synced).await;
    server.set_partitioned("controller", true);
    server.cut_watches(Some("controller"));
    sight.until_so(|view| view.errors.len() == 6).await;
    assert_eq!(*sight.view().machines[&machine.name], machine);
    server.set_denials(vec![Denial {
        user: Some("controller".into()),
        verb: None,
        resource: Some("machines".into()),
    }]);
    server.set_partitioned("controller", false);
    let of_machines = "machines.machine.openshift.io";
    sight
        .until_so(|view| view.errors[of_machines].contains("403"))
        .await;
    assert_eq!(*sight.view().machines[&machine.name], machine);
    assert!(sight.view().synced, "what was listed is known, and old");
    server.set_denials(Vec::new());
    world.delete(OPENSHIFT, "m").await;
    sight.until_so(|view| view.machines.is_empty()).await;
    assert!(!sight.view().errors.contains_key(of_machines));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_concluded_from_a_kind_that_may_not_be_read() {
    let server = server();
    let world = world(&server).await;
    server.set_denials(vec![Denial {
        user: Some("controller".into()),
        verb: None,
        resource: Some("metal3machines".into()),
    }]);
    let mut sight = world.sight();
    sight
        .until_so(|view| view.installed.len() == 4 && view.errors.len() == 1)
        .await;
    assert!(!sight.view().synced);
    let trouble = &sight.view().errors["metal3machines.infrastructure.cluster.x-k8s.io"];
    assert!(trouble.contains("metal3machines"), "{trouble}");
    server.set_denials(Vec::new());
    sight.until_so(|view| view.synced).await;
}

/// The rights of an older version do not include Clusters.
#[tokio::test(start_paused = true)]
async fn clusters_that_may_not_be_read_stop_no_remediation_and_pause_nothing() {
    let server = server();
    let world = world(&server).await;
    server.set_denials(vec![Denial {
        user: Some("controller".into()),
        verb: None,
        resource: Some("clusters".into()),
    }]);
    let paused = json!({ "spec": { "paused": true } });
    world.make(CLUSTER, "c", paused).await;
    let mut sight = world.sight();
    sight.until_so(|view| view.synced).await;
    assert!(sight.view().paused_clusters.is_empty());
    assert!(sight.view().errors["clusters.cluster.x-k8s.io"].contains("403"));
    server.set_denials(Vec::new());
    sight
        .until_so(|view| view.paused_clusters.contains(&world.object_name("c")))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_no_write_that_was_refused_and_is_done_once() {
    let server = server();
    let world = world(&server).await;
    let host = world.host("h", json!({})).await;
    fail(&server, FaultEffect::LoseAnswer, |request| {
        request.user == "controller" && request.verb == Some(ApiVerb::Patch)
    });
    let client = world.client();
    let answer = client.add_key(&host, &owner(), &record()).await;
    assert!(
        matches!(answer, Err(RemediationWriteError::Api(_))),
        "{answer:?}"
    );
    server.clear_faults();
    let again = client.add_key(&host, &owner(), &record()).await;
    assert!(
        matches!(again, Err(RemediationWriteError::Changed(_))),
        "{again:?}"
    );
    let host = world.host_now("h").await;
    let done = client.add_key(&host, &owner(), &record()).await.unwrap();
    assert_eq!(done, host, "it was written");
}
