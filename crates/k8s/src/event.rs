//! Builds and writes Events of one form, with a limited length and stable names.

use dogwatch_core::Now;
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::lock::name_digest;
use k8s_openapi::api::core::v1::Event as EventObject;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::node::format_seconds;

/// The API server accepts messages of at most 1024 bytes in an Event.
const MAX_MESSAGE_BYTES: usize = 1000;

pub(crate) struct EventDraft<'a> {
    pub(crate) namespace: &'a str,
    /// `metadata.name`, or a prefix to which the server adds a random suffix.
    pub(crate) name: EventName,
    pub(crate) involved_object: Value,
    /// The reporting program.
    pub(crate) component: &'a str,
    /// The node on which the program runs, for programs that run once per node.
    pub(crate) host: Option<&'a str>,
    pub(crate) event: &'a DecisionEvent,
}

pub(crate) enum EventName {
    /// If an Event of this name exists with the same text, it was written before.
    Fixed(String),
    /// A prefix: the server adds a random suffix, so each Event is new.
    Generated(String),
}

impl EventName {
    /// A name made from the object, the text and the episode (the start of the phase, for example):
    /// the same text in the same episode gives the same name, in whichever process.
    pub(crate) fn of_episode(
        object: &str,
        uid: &str,
        episode: &str,
        event: &DecisionEvent,
    ) -> Self {
        let (reason, message) = (event.reason, &event.message);
        let digest = name_digest(&format!("{uid}\n{episode}\n{reason}\n{message}"));
        Self::Fixed(format!("{}.{digest}", name_prefix(object)))
    }

    /// A name that is different each time.
    pub(crate) fn with_random_suffix(object: &str) -> Self {
        Self::Generated(format!("{}.", name_prefix(object)))
    }
}

impl EventDraft<'_> {
    /// Writes the Event. If our own identical Event has the name, nothing more is written; if
    /// another Event has it, the Event is written with a random suffix.
    pub(crate) async fn write_event(&self, client: &Client, now: Now) -> Result<(), Error> {
        let events: Api<EventObject> = Api::namespaced(client.clone(), self.namespace);
        let object = self.event_object(&self.name, now);
        let Err(error) = with_timeout(events.create(&PostParams::default(), &object)).await else {
            return Ok(());
        };
        let EventName::Fixed(name) = &self.name else {
            return Err(error);
        };
        if error.kind() != ApiErrorKind::AlreadyExists {
            return Err(error);
        }
        if was_written(&events, name, &object).await? {
            return Ok(());
        }
        let another = self.event_object(&EventName::Generated(format!("{name}-")), now);
        with_timeout(events.create(&PostParams::default(), &another)).await?;
        Ok(())
    }

    fn event_object(&self, name: &EventName, now: Now) -> EventObject {
        let at = format_seconds(now.wall);
        let (name, from) = match name {
            EventName::Fixed(name) => (Some(name), None),
            EventName::Generated(beginning) => (None, Some(beginning)),
        };
        let json = json!({
            "metadata": { "name": name, "generateName": from, "namespace": self.namespace },
            "involvedObject": self.involved_object,
            "reason": self.event.reason,
            "message": truncate_message(&self.event.message),
            "type": match self.event.severity {
                EventSeverity::Normal => "Normal",
                EventSeverity::Warning => "Warning",
            },
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": { "component": self.component, "host": self.host },
            "reportingComponent": self.component,
            "reportingInstance": self.host.unwrap_or(self.component),
        });
        serde_json::from_value(json).expect("the JSON above is an Event")
    }
}

/// Whether the Event of this name is ours and identical. Names are predictable, so anybody who may
/// write Events can take the name of a Warning first. If we may not read Events (rights of an older
/// version), the answer is no, and the Event is written once more.
async fn was_written(
    events: &Api<EventObject>,
    name: &str,
    ours: &EventObject,
) -> Result<bool, Error> {
    match with_timeout(events.get_opt(name)).await {
        Ok(there) => Ok(there.is_some_and(|there| is_same_event(&there, ours))),
        Err(error) if error.kind() == ApiErrorKind::Forbidden => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_same_event(there: &EventObject, ours: &EventObject) -> bool {
    let (about, our) = (&there.involved_object, &ours.involved_object);
    there.type_ == ours.type_
        && there.reason == ours.reason
        && there.message == ours.message
        && there.reporting_component == ours.reporting_component
        && there.reporting_instance == ours.reporting_instance
        && (&about.kind, &about.name, &about.uid) == (&our.kind, &our.name, &our.uid)
}

/// A name may have 253 bytes, and the object's own name may use all of them.
fn name_prefix(object: &str) -> String {
    let object: String = object.chars().take(200).collect();
    object.trim_end_matches(['.', '-']).to_owned()
}

fn truncate_message(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let mut end = MAX_MESSAGE_BYTES;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_news_of_one_episode_has_one_name_however_often_a_process_starts() {
        let event = |message: &str| DecisionEvent {
            severity: EventSeverity::Normal,
            reason: "Rebooting",
            message: message.into(),
        };
        let name = |node: &str, message, uid, episode| match EventName::of_episode(
            node,
            uid,
            episode,
            &event(message),
        ) {
            EventName::Fixed(name) | EventName::Generated(name) => name,
        };
        let first = name("n1", "attempt 1", "u", "12:00");
        assert_eq!(first, name("n1", "attempt 1", "u", "12:00"));
        for other in [
            name("n1", "attempt 2", "u", "12:00"),
            name("n1", "attempt 1", "v", "12:00"),
            name("n1", "attempt 1", "u", "12:01"),
        ] {
            assert_ne!(first, other);
        }
        let long = name(&format!("{}.x", "n".repeat(199)), "m", "u", "");
        assert!(long.len() <= 253 && !long.contains(".."), "{long}");
    }

    #[test]
    fn only_the_same_words_of_the_same_reporter_about_the_same_object_were_said_before() {
        let event = DecisionEvent {
            severity: EventSeverity::Warning,
            reason: "RebootFailed",
            message: "no new boot".into(),
        };
        let said = EventDraft {
            namespace: "default",
            name: EventName::Fixed("n1.x".into()),
            involved_object: json!({ "kind": "Node", "name": "n1", "uid": "u" }),
            component: "dogwatch-coordinator",
            host: Some("n1"),
            event: &event,
        };
        let now = Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: std::time::Duration::ZERO,
        };
        let ours = said.event_object(&said.name, now);
        assert!(is_same_event(&ours.clone(), &ours));
        let forge: [fn(&mut EventObject); 6] = [
            |it| it.type_ = Some("Normal".into()),
            |it| it.reason = Some("Rebooted".into()),
            |it| it.message = Some("all is well".into()),
            |it| it.reporting_component = Some("kubelet".into()),
            |it| it.reporting_instance = Some("n2".into()),
            |it| it.involved_object.uid = Some("v".into()),
        ];
        for forge in forge {
            let mut there = ours.clone();
            forge(&mut there);
            assert!(!is_same_event(&there, &ours), "{there:?}");
        }
    }
}
