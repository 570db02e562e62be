//! Hosts on the embedded API server: the cases, and what its faults show.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod host_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::Duration;

use dogwatch_core::power::{Owner, OwnerRules};
use dogwatch_k8s::host::HostWatch;
use dogwatch_sim::api::{ApiServer, Denial, FaultEffect, Verb};
use host_cases::world::{World, writing};
use support::embedded::{asked, fail, server};

async fn world(server: &ApiServer) -> World {
    World::on(server.client("people"), server.client("controller")).await
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
    let mut watch = HostWatch::new(server.client("controller"), OwnerRules::default(), || 0.5);
    while !watch.view().synced {
        watch.changed().await;
    }
    assert_eq!(watch.view().hosts.len(), 600);
    // Three pages of hosts, one list of leaders' Leases.
    assert_eq!(asked(&server, "controller", Verb::List), 4);
    let hour = tokio::time::sleep(Duration::from_hours(1));
    tokio::select! {
        names = watch.changed() => panic!("{names:?}"),
        () = hour => {}
    }
    assert_eq!(asked(&server, "controller", Verb::List), 4);
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_looked_for_every_five_minutes_and_no_oftener() {
    let server = server();
    let world = world(&server).await;
    world.take_the_kind_out().await;
    server.clear_audit_log();
    let mut watch = HostWatch::new(server.client("controller"), OwnerRules::default(), || 1.0);
    while !watch.view().synced {
        watch.changed().await;
    }
    let hour = tokio::time::sleep(Duration::from_secs(3590));
    tokio::select! {
        names = watch.changed() => panic!("{names:?}"),
        () = hour => {}
    }
    // Only whether it is served: nobody has a right over what is not there. One list of leaders' Leases.
    let log = server.audit_log();
    let looks = log
        .iter()
        .filter(|it| it.resource.ends_with("/metal3.io/v1alpha1"));
    assert_eq!(looks.count(), 12, "{log:?}");
    assert_eq!(asked(&server, "controller", Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_stays_while_the_api_is_away() {
    let server = server();
    let world = world(&server).await;
    let host = world.host("h", "ipmi://192.0.2.1").await;
    let mut sight = world.sight();
    sight
        .until(|view| view.owner(&host) == Owner::Ours && !view.hosts.is_empty())
        .await;
    server.partition("controller", true);
    server.cut_watches(Some("controller"));
    sight.until(|view| view.trouble.len() == 2).await;
    assert_eq!(*sight.view().hosts[&host.name], host);
    assert_eq!(sight.view().owner(&host), Owner::Ours);
    server.partition("controller", false);
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
        .until(|view| view.synced && view.trouble.contains_key("leases"))
        .await;
    assert_eq!(sight.view().owner(&host), Owner::NotYetKnown);
    server.set_denials(Vec::new());
    sight.until(|view| view.owner(&host) == Owner::Ours).await;
    // A live one, of which nothing is heard any more: not even then is it dead.
    world
        .operator_lease("bmo-1", "2026-01-01T00:00:02.000000Z")
        .await;
    let theirs = Owner::Theirs {
        leader: "bmo-1".into(),
    };
    sight.until(|view| view.owner(&host) == theirs).await;
    server.partition("controller", true);
    server.cut_watches(Some("controller"));
    let hour = sight.during(Duration::from_hours(1), |view| {
        assert_eq!(view.owner(&host), theirs);
    });
    hour.await;
    server.partition("controller", false);
    sight.until(|view| view.owner(&host) == Owner::Ours).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_no_write_that_was_refused() {
    let server = server();
    let world = world(&server).await;
    let host = world.host("h", "ipmi://192.0.2.1").await;
    fail(&server, FaultEffect::LoseAnswer, |request| {
        request.user == "controller" && request.verb == Some(Verb::Patch)
    });
    let write = writing(&host, |status| status.powered_on = Some(true));
    let answer = world.hosts().write_status(&host, &write, &[]).await;
    assert!(
        matches!(answer, Err(dogwatch_k8s::host::WriteError::Api(_))),
        "{answer:?}"
    );
    assert_eq!(world.object("h").await.status["poweredOn"], true);
}
