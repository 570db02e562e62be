//! Hosts on the embedded API server: the cases, and tests with its faults.

use std::time::Duration;

use dogwatch_core::power::{HostOwner, OwnerRules};
use dogwatch_k8s::host::HostWatch;
use dogwatch_kubesim::api::{ApiServer, ApiVerb, Denial, FaultEffect};

use crate::host_cases;
use crate::host_cases::world::{World, writing};
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
            host_cases::$name(&world(&server()).await).await;
        }
    )* };
}

host_cases::every_case!(on_embedded);

#[tokio::test(start_paused = true)]
async fn many_hosts_come_page_by_page_and_nothing_is_asked_again() {
    let server = server();
    let world = world(&server).await;
    for number in 0..600 {
        world
            .host(
                &format!("h{number}"),
                &format!("ipmi://192.0.2.1:{}", 1000 + number),
            )
            .await;
    }
    server.clear_audit_log();
    let mut watch = HostWatch::new(
        server.client_for_user("controller"),
        OwnerRules::default(),
        || 0.5,
    );
    while !watch.current_view().synced {
        watch.wait_for_changes().await;
    }
    assert_eq!(watch.current_view().hosts.len(), 600);
    // Three pages of hosts, one list of leader Leases.
    assert_eq!(asked(&server, "controller", ApiVerb::List), 4);
    let hour = tokio::time::sleep(Duration::from_hours(1));
    tokio::select! {
        names = watch.wait_for_changes() => panic!("{names:?}"),
        () = hour => {}
    }
    assert_eq!(asked(&server, "controller", ApiVerb::List), 4);
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_looked_for_every_five_minutes_and_no_oftener() {
    let server = server();
    let world = world(&server).await;
    world.take_the_kind_out().await;
    server.clear_audit_log();
    let mut watch = HostWatch::new(
        server.client_for_user("controller"),
        OwnerRules::default(),
        || 1.0,
    );
    while !watch.current_view().synced {
        watch.wait_for_changes().await;
    }
    let hour = tokio::time::sleep(Duration::from_secs(3590));
    tokio::select! {
        names = watch.wait_for_changes() => panic!("{names:?}"),
        () = hour => {}
    }
    // Only discovery of the kind, which needs no rights, and one list of leader Leases.
    let log = server.audit_log();
    let looks = log
        .iter()
        .filter(|it| it.resource.ends_with("/metal3.io/v1alpha1"));
    assert_eq!(looks.count(), 12, "{log:?}");
    assert_eq!(asked(&server, "controller", ApiVerb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_stays_while_the_api_is_away() {
    let server = server();
    let world = world(&server).await;
    let host = world.host("h", "ipmi://192.0.2.1").await;
    let mut sight = world.sight();
    sight
        .until(|view| view.owner_of(&host) == HostOwner::Ours && !view.hosts.is_empty())
        .await;
    server.set_partitioned("controller", true);
    server.cut_watches(Some("controller"));
    sight.until(|view| view.errors.len() == 2).await;
    assert_eq!(*sight.view().hosts[&host.name], host);
    assert_eq!(sight.view().owner_of(&host), HostOwner::Ours);
    server.set_partitioned("controller", false);
    world.delete("h").await;
    sight.until(|view| view.hosts.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn while_leaders_of_metal3_cannot_be_seen_nothing_is_ours_and_nobody_is_dead() {
    let server = server();
    let world = world(&server).await;
    let host = world.host("h", "ipmi://192.0.2.1").await;
    server.set_denials(vec![Denial {
        user: Some("controller".into()),
        verb: None,
        resource: Some("leases".into()),
    }]);
    let mut sight = world.sight();
    sight
        .until(|view| view.synced && view.errors.contains_key("leases"))
        .await;
    assert_eq!(sight.view().owner_of(&host), HostOwner::NotYetKnown);
    server.set_denials(Vec::new());
    sight
        .until(|view| view.owner_of(&host) == HostOwner::Ours)
        .await;
    // A live leader whose watch falls silent does not become dead by that.
    world
        .operator_lease("bmo-1", "2026-01-01T00:00:02.000000Z")
        .await;
    let theirs = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    sight.until(|view| view.owner_of(&host) == theirs).await;
    server.set_partitioned("controller", true);
    server.cut_watches(Some("controller"));
    let hour = sight.during(Duration::from_hours(1), |view| {
        assert_eq!(view.owner_of(&host), theirs);
    });
    hour.await;
    server.set_partitioned("controller", false);
    sight
        .until(|view| view.owner_of(&host) == HostOwner::Ours)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_no_write_that_was_refused() {
    let server = server();
    let world = world(&server).await;
    let host = world.host("h", "ipmi://192.0.2.1").await;
    fail(&server, FaultEffect::LoseAnswer, |request| {
        request.user == "controller" && request.verb == Some(ApiVerb::Patch)
    });
    let write = writing(&host, |status| status.powered_on = Some(true));
    let answer = world.hosts().write_status(&host, &write, &[]).await;
    assert!(
        matches!(answer, Err(dogwatch_k8s::host::HostWriteError::Api(_))),
        "{answer:?}"
    );
    assert_eq!(world.object("h").await.status["poweredOn"], true);
}
