//! Converts a Node or a BareMetalHost into a schedule's target.

use dogwatch_api::annotation;
use dogwatch_core::power::HostName;
use dogwatch_core::reboot::{ParsedAnnotation, RebootRequest};
use dogwatch_core::schedule::{
    CarriedNode, HostNodeClaim, PowerRebootRefusal, StandingRequest, TargetObject,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::PartialObjectMeta;

use crate::host::{self, HostObject};

pub(super) fn target_of_node(node: &PartialObjectMeta<Node>) -> TargetObject {
    let text = node.annotations().get(annotation::REBOOT_REQUESTED);
    let request = match ParsedAnnotation::<RebootRequest>::from_text(text.map(String::as_str)) {
        ParsedAnnotation::Absent => StandingRequest::Absent,
        ParsedAnnotation::Is(request) => request
            .not_before
            .map_or(StandingRequest::Now, StandingRequest::NotBefore),
        ParsedAnnotation::Bad { why } => StandingRequest::Unreadable { why },
    };
    TargetObject {
        request,
        ..common_fields(node)
    }
}

pub(super) fn target_of_host(host: &HostObject) -> TargetObject {
    let annotations = host.annotations();
    let is_asked = annotations.contains_key(annotation::METAL3_REBOOT);
    let carries = annotations.get(annotation::NODE).map(|node| CarriedNode {
        node: node.clone(),
        older_claim: None,
    });
    TargetObject {
        request: if is_asked {
            StandingRequest::Now
        } else {
            StandingRequest::Absent
        },
        power_refusal: match carries {
            Some(_) => None,
            None => PowerRebootRefusal::from_host(&host::convert_host(host)),
        },
        carries,
        ..common_fields(host)
    }
}

/// The Node that a host names, if any.
pub(super) fn claim_of_host(host: &PartialObjectMeta<HostObject>) -> Option<HostNodeClaim> {
    Some(HostNodeClaim {
        created: created_at(host),
        uid: host.uid()?,
        host: HostName::new(host.namespace()?, host.name_any()),
        node: host.annotations().get(annotation::NODE)?.clone(),
    })
}

fn common_fields(object: &impl ResourceExt) -> TargetObject {
    let marks = object.annotations().get(annotation::SCHEDULED);
    TargetObject {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        created: created_at(object),
        labels: object.labels().clone(),
        marks: ParsedAnnotation::from_text(marks.map(String::as_str)),
        request: StandingRequest::Absent,
        carries: None,
        power_refusal: None,
    }
}

fn created_at(object: &impl ResourceExt) -> Timestamp {
    let created = object.creation_timestamp();
    created.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}
