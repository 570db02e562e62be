//! The documents that a power driver reads, as far as it reads them. What is of no use to it may have
//! any shape: BMCs are not strict.

use serde::Deserialize;
use serde_json::Value;

use crate::{About, Class, Fault, Reading};

/// A link: `{"@odata.id": "/redfish/v1/Systems"}`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Link {
    #[serde(rename = "@odata.id")]
    pub(super) id: String,
}

/// The service root (DSP0266 §6.4).
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Root {
    #[serde(rename = "Systems")]
    systems: Option<Link>,
    #[serde(rename = "SessionService")]
    session_service: Option<Link>,
    #[serde(rename = "Links", default)]
    links: Value,
}

impl Root {
    /// Where a session is made: `Links.Sessions`, else the standard's path below the SessionService.
    pub(super) fn sessions(&self) -> Option<String> {
        let link = self.links.pointer("/Sessions/@odata.id");
        let link = link.and_then(Value::as_str).map(ToOwned::to_owned);
        let service = self.session_service.as_ref();
        let below = |service: &Link| Some(format!("{}/Sessions", service.id.trim_end_matches('/')));
        link.or_else(|| service.and_then(below))
    }

    /// The collection of systems; the standard's path where the root does not name it.
    pub(super) fn systems(&self) -> &str {
        let link = self.systems.as_ref();
        link.map_or("/redfish/v1/Systems", |link| &link.id)
    }
}

/// A collection, or its first page.
#[derive(Debug, Deserialize)]
pub(super) struct Collection {
    #[serde(rename = "Members")]
    pub(super) members: Vec<Link>,
    #[serde(rename = "Members@odata.count")]
    count: Option<usize>,
}

impl Collection {
    /// How many there are, on all pages.
    pub(super) fn len(&self) -> usize {
        self.count.unwrap_or_default().max(self.members.len())
    }
}

/// A ComputerSystem. A second `PowerState` in one document is an error of the parser, as it must be: it
/// would be two states at once.
#[derive(Debug, Deserialize)]
pub(super) struct System {
    #[serde(rename = "@odata.type", default)]
    kind: Value,
    #[serde(rename = "@odata.etag", default)]
    etag: Value,
    #[serde(rename = "PowerState", default)]
    power_state: Value,
    #[serde(rename = "UUID", default)]
    uuid: Value,
    #[serde(rename = "Manufacturer", default)]
    manufacturer: Value,
    #[serde(rename = "Model", default)]
    model: Value,
    #[serde(rename = "Actions", default)]
    actions: Value,
}

/// How a system is told to change its power.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        match self.power_state.as_str() {
            Some("On" | "Paused") => Ok(Reading::On),
            Some("Off") => Ok(Reading::Off),
            Some("PoweringOn") => Ok(Reading::PoweringOn),
            Some("PoweringOff") => Ok(Reading::PoweringOff),
            Some(_) | None => Err(Fault::harmless(
                Class::Contradiction,
                format!("its PowerState is {}", shown(&self.power_state)),
            )),
        }
    }

    /// Whether it is a system at all, as far as it says.
    pub(super) fn is_system(&self) -> bool {
        let kind = self.kind.as_str();
        kind.is_none_or(|kind| kind.starts_with("#ComputerSystem."))
    }

    /// `None`: it has no such action.
    pub(super) fn reset(&self) -> Option<Reset> {
        let action = self.actions.get("#ComputerSystem.Reset")?;
        Some(Reset {
            target: text(&action["target"]),
            allowed: texts(&action["ResetType@Redfish.AllowableValues"]),
            info: text(&action["@Redfish.ActionInfo"]),
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
    parameters: Vec<Value>,
}

impl ActionInfo {
    /// The allowable reset types; empty: it names none.
    pub(super) fn reset_types(&self) -> Vec<String> {
        let mut parameters = self.parameters.iter();
        let reset_type = parameters.find(|parameter| parameter["Name"] == "ResetType");
        reset_type.map_or_else(Vec::new, |parameter| texts(&parameter["AllowableValues"]))
    }
}

/// A Task (DSP0268), or an answer that is none.
pub(super) fn task_state(document: &Value) -> Option<&str> {
    document.get("TaskState")?.as_str()
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn texts(values: &Value) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(text).collect()
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), |word| format!("'{word}'"))
}
