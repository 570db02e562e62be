//! The healer's Events, although others may write Events too. Source: specification §1, S6.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::reboot::RebootPhase;
use dogwatch_k8s::healer::{HealerClient, HealerEventSubject};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event as EventObject;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};

use super::World;

pub async fn a_warning_is_said_although_somebody_took_its_name_first(world: &World) {
    let node = world.make_node("n1", RebootPhase::Waiting).await;
    let about = HealerEventSubject {
        kind: "Node",
        name: node.name.to_string(),
        uid: node.uid.clone(),
        episode: String::new(),
    };
    let healer = HealerClient::new(world.leading.clone(), &world.namespace);
    for _ in 0..2 {
        healer.write_event(&about, &warning(), now()).await.unwrap();
    }
    let ours = warnings(world, &node.uid).await;
    assert_eq!(ours.len(), 1, "said twice it is one: {ours:?}");

    // The attack: the Event's name is a hash of its content, so anybody can compute it and create
    // an Event of that name with other content.
    let events: Api<EventObject> = Api::namespaced(world.client.clone(), "default");
    let mut strangers = ours[0].clone();
    let name = strangers.metadata.name.clone().unwrap();
    let gone = events.delete(&name, &DeleteParams::default()).await;
    assert!(gone.is_ok(), "{gone:?}");
    strangers.metadata.resource_version = None;
    strangers.metadata.uid = None;
    strangers.type_ = Some("Normal".into());
    strangers.message = Some("all is well".into());
    strangers.reporting_component = Some("stranger".into());
    let made = events.create(&PostParams::default(), &strangers).await;
    assert!(made.is_ok(), "{made:?}");
    assert_eq!(warnings(world, &node.uid).await, []);

    healer.write_event(&about, &warning(), now()).await.unwrap();
    let ours = warnings(world, &node.uid).await;
    assert_eq!(ours.len(), 1, "{ours:?}");
    assert_ne!(ours[0].metadata.name, Some(name));
    assert_eq!(ours[0].message.as_deref(), Some("nobody came back"));
}

fn warning() -> DecisionEvent {
    DecisionEvent {
        severity: EventSeverity::Warning,
        reason: "RebootFailed",
        message: "nobody came back".into(),
    }
}

fn now() -> Now {
    Now {
        wall: Timestamp::UNIX_EPOCH,
        mono: Duration::ZERO,
    }
}

/// The Warnings about this Node.
async fn warnings(world: &World, uid: &str) -> Vec<EventObject> {
    let events: Api<EventObject> = Api::namespaced(world.client.clone(), "default");
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let mut found = events.list(&about).await.unwrap().items;
    found.retain(|it| {
        it.type_.as_deref() == Some("Warning") && it.reason.as_deref() == Some("RebootFailed")
    });
    found
}
