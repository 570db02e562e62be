//! A Node or a BareMetalHost, as far as a schedule goes.

use dogwatch_api::annotation;
use dogwatch_core::power::HostName;
use dogwatch_core::reboot::{Parsed, Request};
use dogwatch_core::schedule::{Carried, Claim, NotByPower, Object, StandingRequest};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::PartialObjectMeta;

use crate::host::{self, HostObject};

pub(super) fn of_node(node: &PartialObjectMeta<Node>) -> Object {
    let text = node.annotations().get(annotation::REBOOT_REQUESTED);
    let request = match Parsed::<Request>::read(text.map(String::as_str)) {
        Parsed::Absent => StandingRequest::Absent,
        Parsed::Is(request) => request
            .not_before
            .map_or(StandingRequest::Now, StandingRequest::NotBefore),
        Parsed::Bad { why } => StandingRequest::Unreadable { why },
    };
    Object {
        request,
        ..object(node)
    }
}

pub(super) fn of_host(host: &HostObject) -> Object {
    let annotations = host.annotations();
    let is_asked = annotations.contains_key(annotation::METAL3_REBOOT);
    let carries = annotations.get(annotation::NODE).map(|node| Carried {
        node: node.clone(),
        older_claim: None,
    });
    Object {
        request: if is_asked {
            StandingRequest::Now
        } else {
            StandingRequest::Absent
        },
        not_by_power: match carries {
            Some(_) => None,
            None => NotByPower::of(&host::convert(host)),
        },
        carries,
        ..object(host)
    }
}

/// That a host names a Node, if it does.
pub(super) fn claim(host: &PartialObjectMeta<HostObject>) -> Option<Claim> {
    Some(Claim {
        created: created(host),
        uid: host.uid()?,
        host: HostName::new(host.namespace()?, host.name_any()),
        node: host.annotations().get(annotation::NODE)?.clone(),
    })
}

/// What is the same of both.
fn object(object: &impl ResourceExt) -> Object {
    let marks = object.annotations().get(annotation::SCHEDULED);
    Object {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        created: created(object),
        labels: object.labels().clone(),
        marks: Parsed::read(marks.map(String::as_str)),
        request: StandingRequest::Absent,
        carries: None,
        not_by_power: None,
    }
}

fn created(object: &impl ResourceExt) -> Timestamp {
    let created = object.creation_timestamp();
    created.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}
