//! Events as the API server takes them: one shape, one length, one way to name them.

use dogwatch_core::Now;
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::lock::digest;
use k8s_openapi::api::core::v1::Event as EventObject;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::error::{Error, Kind, ask};
use crate::node::seconds;

/// The longest message an API server accepts for an Event is 1024 bytes.
const LONGEST_MESSAGE: usize = 1000;

/// One Event in the making.
pub(crate) struct Said<'a> {
    /// Where it lives.
    pub(crate) namespace: &'a str,
    /// Its `metadata.name`, or the beginning of a name of which the server makes one.
    pub(crate) name: Name,
    /// `involvedObject`.
    pub(crate) about: Value,
    /// The program that says it.
    pub(crate) component: &'a str,
    /// The node on which that runs, where there is one for each.
    pub(crate) host: Option<&'a str>,
    /// What is said.
    pub(crate) event: &'a Event,
}

/// How an Event is called.
pub(crate) enum Name {
    /// So: a second one of that name is the same news, and was said.
    Of(String),
    /// With something random behind it: each is news.
    From(String),
}

impl Name {
    /// The name of this news about an object, in this episode (the phase's beginning, say): the same
    /// words in the same episode have the same name, whoever says them.
    pub(crate) fn of(object: &str, uid: &str, episode: &str, event: &Event) -> Self {
        let (reason, message) = (event.reason, &event.message);
        let digest = digest(&format!("{uid}\n{episode}\n{reason}\n{message}"));
        Self::Of(format!("{}.{digest}", beginning(object)))
    }

    /// Another name each time.
    pub(crate) fn from(object: &str) -> Self {
        Self::From(format!("{}.", beginning(object)))
    }
}

impl Said<'_> {
    /// Says it. If its name is taken by the same words of ours, it was said before; if somebody else took the
    /// name, it is said under another one.
    pub(crate) async fn say(&self, client: &Client, now: Now) -> Result<(), Error> {
        let events: Api<EventObject> = Api::namespaced(client.clone(), self.namespace);
        let object = self.object(&self.name, now);
        let Err(error) = ask(events.create(&PostParams::default(), &object)).await else {
            return Ok(());
        };
        let Name::Of(name) = &self.name else {
            return Err(error);
        };
        if error.kind() != Kind::AlreadyExists {
            return Err(error);
        }
        if was_said(&events, name, &object).await? {
            return Ok(());
        }
        let another = self.object(&Name::From(format!("{name}-")), now);
        ask(events.create(&PostParams::default(), &another)).await?;
        Ok(())
    }

    fn object(&self, name: &Name, now: Now) -> EventObject {
        let at = seconds(now.wall);
        let (name, from) = match name {
            Name::Of(name) => (Some(name), None),
            Name::From(beginning) => (None, Some(beginning)),
        };
        let json = json!({
            "metadata": { "name": name, "generateName": from, "namespace": self.namespace },
            "involvedObject": self.about,
            "reason": self.event.reason,
            "message": shortened(&self.event.message),
            "type": match self.event.severity {
                Severity::Normal => "Normal",
                Severity::Warning => "Warning",
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

/// Whether the Event of this name is ours and says the same: names are made from what is said, so that whoever may
/// write Events can take the name of a Warning first. With the rights of an older version nobody can look; it is
/// said once more then.
async fn was_said(
    events: &Api<EventObject>,
    name: &str,
    ours: &EventObject,
) -> Result<bool, Error> {
    match ask(events.get_opt(name)).await {
        Ok(there) => Ok(there.is_some_and(|there| same_words(&there, ours))),
        Err(error) if error.kind() == Kind::Forbidden => Ok(false),
        Err(error) => Err(error),
    }
}

/// The same words by the same reporter about the same object.
fn same_words(there: &EventObject, ours: &EventObject) -> bool {
    let (about, our) = (&there.involved_object, &ours.involved_object);
    there.type_ == ours.type_
        && there.reason == ours.reason
        && there.message == ours.message
        && there.reporting_component == ours.reporting_component
        && there.reporting_instance == ours.reporting_instance
        && (&about.kind, &about.name, &about.uid) == (&our.kind, &our.name, &our.uid)
}

/// A name has room for 253 bytes, and an object's own may need them all.
fn beginning(object: &str) -> String {
    let object: String = object.chars().take(200).collect();
    object.trim_end_matches(['.', '-']).to_owned()
}

fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let mut end = LONGEST_MESSAGE;
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
        let event = |message: &str| Event {
            severity: Severity::Normal,
            reason: "Rebooting",
            message: message.into(),
        };
        let name =
            |node: &str, message, uid, episode| match Name::of(node, uid, episode, &event(message))
            {
                Name::Of(name) | Name::From(name) => name,
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
        let event = Event {
            severity: Severity::Warning,
            reason: "RebootFailed",
            message: "no new boot".into(),
        };
        let said = Said {
            namespace: "default",
            name: Name::Of("n1.x".into()),
            about: json!({ "kind": "Node", "name": "n1", "uid": "u" }),
            component: "dogwatch-coordinator",
            host: Some("n1"),
            event: &event,
        };
        let now = Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: std::time::Duration::ZERO,
        };
        let ours = said.object(&said.name, now);
        assert!(same_words(&ours.clone(), &ours));
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
            assert!(!same_words(&there, &ours), "{there:?}");
        }
    }
}
