//! The documents that a power driver reads, as far as it reads them. What is of no use to it may have
//! any shape: BMCs are not strict.

use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::tolerant::{Id, Links, Members, Name, Parameters, ResetTypes, Shape, State, Whatever};
use crate::{About, Class, Fault, Reading};

/// The service root (DSP0266 §6.4). A driver keeps it for its life: three links, and nothing else of it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Root {
    #[serde(rename = "Systems", default)]
    systems: Whatever<Id>,
    #[serde(rename = "SessionService", default)]
    session_service: Whatever<Id>,
    #[serde(rename = "Links", default)]
    links: Whatever<Links>,
}

impl Root {
    /// Where a session is made: `Links.Sessions`, else the standard's path below the SessionService.
    pub(super) fn sessions(&self) -> Option<String> {
        let link = self.links.get().and_then(Links::sessions);
        let service = self.session_service.get().and_then(Id::link);
        let below = |service: &str| format!("{}/Sessions", service.trim_end_matches('/'));
        link.map(str::to_owned).or_else(|| service.map(below))
    }

    /// The collection of systems; the standard's path where the root does not name it.
    pub(super) fn systems(&self) -> &str {
        let link = self.systems.get().and_then(Id::link);
        link.unwrap_or("/redfish/v1/Systems")
    }
}

/// A collection, or its first page.
#[derive(Debug, Deserialize)]
pub(super) struct Collection {
    #[serde(rename = "Members")]
    members: Whatever<Members>,
    #[serde(rename = "Members@odata.count")]
    count: Option<usize>,
}

impl Collection {
    /// How many there are, on all pages.
    pub(super) fn len(&self) -> usize {
        let here = self.members.get().map_or(0, Members::len);
        self.count.unwrap_or_default().max(here)
    }

    /// The links to the first of them.
    pub(super) fn first(&self) -> &[String] {
        self.members.get().map_or(&[], Members::first)
    }
}

/// A ComputerSystem. A second `PowerState` in one document is an error of the parser, as it must be: it
/// would be two states at once.
#[derive(Debug, Deserialize)]
pub(super) struct System {
    #[serde(rename = "@odata.type", default)]
    kind: Whatever<Name>,
    #[serde(rename = "@odata.etag", default)]
    etag: Whatever<Name>,
    #[serde(rename = "PowerState", default)]
    power_state: State,
    #[serde(rename = "UUID", default)]
    uuid: Whatever<Name>,
    #[serde(rename = "Manufacturer", default)]
    manufacturer: Whatever<Name>,
    #[serde(rename = "Model", default)]
    model: Whatever<Name>,
    #[serde(rename = "Actions", default)]
    actions: Whatever<Actions>,
}

#[derive(Debug, Deserialize)]
struct Actions {
    #[serde(
        rename = "#ComputerSystem.Reset",
        default,
        deserialize_with = "present"
    )]
    reset: Option<Whatever<ResetAction>>,
}

fn present<'de, D: Deserializer<'de>>(it: D) -> Result<Option<Whatever<ResetAction>>, D::Error> {
    Whatever::deserialize(it).map(Some)
}

impl Shape for Actions {
    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

impl Shape for ResetAction {
    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

#[derive(Debug, Deserialize)]
struct ResetAction {
    #[serde(default)]
    target: Whatever<Name>,
    #[serde(rename = "ResetType@Redfish.AllowableValues", default)]
    allowed: Whatever<ResetTypes>,
    #[serde(rename = "@Redfish.ActionInfo", default)]
    info: Whatever<Name>,
}

/// How a system is told to change its power.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reset {
    /// The link that the command goes to; not checked yet.
    pub(super) target: Option<String>,
    /// The allowable reset types that stand in the system itself; empty: it names none.
    pub(super) allowed: Vec<String>,
    /// The link to where they stand instead.
    pub(super) info: Option<String>,
}

impl System {
    /// The power. Only the word itself is off.
    ///
    /// # Errors
    /// [`Class::Contradiction`]: no state, or one that nobody knows.
    pub(super) fn reading(&self) -> Result<Reading, Fault> {
        match self.power_state.word() {
            Some("On" | "Paused") => Ok(Reading::On),
            Some("Off") => Ok(Reading::Off),
            Some("PoweringOn") => Ok(Reading::PoweringOn),
            Some("PoweringOff") => Ok(Reading::PoweringOff),
            Some(_) | None => Err(Fault::harmless(
                Class::Contradiction,
                format!("its PowerState is {}", self.power_state),
            )),
        }
    }

    /// Whether it is a system at all, as far as it says.
    pub(super) fn is_system(&self) -> bool {
        let kind = self.kind.get().map(Name::as_str);
        kind.is_none_or(|kind| kind.starts_with("#ComputerSystem."))
    }

    /// `None`: it has no such action.
    pub(super) fn reset(&self) -> Option<Reset> {
        let action = self.actions.get()?.reset.as_ref()?;
        let Some(action) = action.get() else {
            return Some(Reset::default());
        };
        let allowed = action.allowed.get();
        Some(Reset {
            target: text(&action.target),
            allowed: allowed.map_or_else(Vec::new, ResetTypes::to_vec),
            info: text(&action.info),
        })
    }

    /// The version of the document, where it carries one.
    pub(super) fn etag(&self) -> Option<String> {
        text(&self.etag)
    }

    /// Who made it.
    pub(super) fn manufacturer(&self) -> Option<String> {
        text(&self.manufacturer)
    }

    /// What it says of itself, but for what it can do.
    pub(super) fn about(&self) -> About {
        let product = [text(&self.manufacturer), text(&self.model)];
        let product = product.into_iter().flatten().collect::<Vec<_>>().join(" ");
        About {
            system_uuid: text(&self.uuid),
            commands: Vec::new(),
            product: Some(product).filter(|product| !product.is_empty()),
        }
    }
}

/// What `@Redfish.ActionInfo` leads to (DSP0268, ActionInfo).
#[derive(Debug, Deserialize)]
pub(super) struct ActionInfo {
    #[serde(rename = "Parameters", default)]
    parameters: Whatever<Parameters>,
}

impl ActionInfo {
    /// The allowable reset types; empty: it names none.
    pub(super) fn reset_types(&self) -> Vec<String> {
        let types = self.parameters.get().and_then(Parameters::reset_types);
        types.map_or_else(Vec::new, ResetTypes::to_vec)
    }
}

/// A Task (DSP0268), or an answer that is none.
pub(super) fn task_state(document: &Value) -> Option<&str> {
    document.get("TaskState")?.as_str()
}

fn text(name: &Whatever<Name>) -> Option<String> {
    let text = name.get()?.as_str();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a MiB of it in a list.
    fn many(item: &str) -> String {
        let count = (512 << 10) / (item.len() + 1);
        format!("[{}]", vec![item; count].join(","))
    }

    fn kept(root: &Root, reset: &Reset, about: &About) -> usize {
        let root = root.systems().len() + root.sessions().map_or(0, |link| link.len());
        let links = [
            &reset.target,
            &reset.info,
            &about.system_uuid,
            &about.product,
        ];
        let links = links.into_iter().flatten().map(String::len).sum::<usize>();
        root + links + reset.allowed.iter().map(String::capacity).sum::<usize>()
    }

    #[test]
    fn what_is_kept_of_a_hostile_bmcs_documents_is_at_most_64_kib() {
        let long = format!("\"{}\"", "x".repeat(200 << 10));
        let zeros = many("0");
        let types = many("\"T\"");
        for (links, link, allowed) in [
            (&*zeros, "{}".to_owned(), &*types),
            (
                "{}",
                format!("{{\"@odata.id\":{long}}}"),
                &*format!("[{long},{long}]"),
            ),
            (
                &*format!("{{\"Sessions\":{zeros}}}"),
                zeros.clone(),
                &*many("[]"),
            ),
        ] {
            let root =
                format!("{{\"Links\":{links},\"Systems\":{link},\"SessionService\":{link}}}");
            let root: Root = serde_json::from_str(&root).expect("a root");
            let system = format!(
                "{{\"PowerState\":\"Off\",\"UUID\":{long},\"Model\":{long},\"Actions\":{{\"#ComputerSystem.Reset\":\
                 {{\"target\":{long},\"ResetType@Redfish.AllowableValues\":{allowed}}}}}}}"
            );
            let system: System = serde_json::from_str(&system).expect("a system");
            let reset = system.reset().expect("it has the action");
            assert_eq!(system.reading(), Ok(Reading::Off));
            assert!(reset.allowed.len() <= 64, "{}", reset.allowed.len());
            let kept = kept(&root, &reset, &system.about());
            assert!(kept <= 64 << 10, "{kept}");
            assert_eq!(root.systems(), "/redfish/v1/Systems");
        }
        let info = format!(
            "{{\"Parameters\":[0,{{\"Name\":\"ResetType\",\"AllowableValues\":{types}}}]}}"
        );
        let info: ActionInfo = serde_json::from_str(&info).expect("an ActionInfo");
        assert_eq!(info.reset_types().len(), 64);
    }

    #[test]
    fn two_power_states_in_one_document_are_an_error() {
        let twice = r#"{"PowerState":"On","PowerState":"Off"}"#;
        serde_json::from_str::<System>(twice).expect_err("two states at once");
    }

    #[test]
    fn what_has_another_shape_is_as_if_it_were_not_there() {
        for odd in ["null", "7", "-1.5", "true", "[]", "{}"] {
            let system = format!("{{\"PowerState\":{odd},\"Actions\":{odd},\"UUID\":{odd}}}");
            let system: System = serde_json::from_str(&system).expect(odd);
            let fault = system.reading().expect_err("no state");
            assert_eq!(fault.class, Class::Contradiction);
            assert_eq!((system.reset(), system.about().system_uuid), (None, None));
        }
    }
}
