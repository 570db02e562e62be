//! The Redfish documents that a power driver reads, and only the parts that it needs. Everything
//! else may have any shape: BMCs are not strict.

use dogwatch_core::power::SystemId;
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::tolerant::{
    ActionParameters, BoundedText, CollectionMembers, LenientShape, LenientValue, ODataLink,
    PowerStateText, ResetTypes, RootLinks,
};
use crate::{BmcFault, BmcInfo, FaultClass, PowerReading};

/// The service root (DSP0266 §6.4). A driver keeps three links of it for its lifetime.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ServiceRoot {
    #[serde(rename = "Systems", default)]
    systems: LenientValue<ODataLink>,
    #[serde(rename = "SessionService", default)]
    session_service: LenientValue<ODataLink>,
    #[serde(rename = "Links", default)]
    links: LenientValue<RootLinks>,
}

impl ServiceRoot {
    /// Where sessions are created: `Links.Sessions`, otherwise the standard's path below the
    /// SessionService.
    pub(super) fn sessions_link(&self) -> Option<String> {
        let link = self.links.get().and_then(RootLinks::sessions_link);
        let service = self.session_service.get().and_then(ODataLink::link);
        let below = |service: &str| format!("{}/Sessions", service.trim_end_matches('/'));
        link.map(str::to_owned).or_else(|| service.map(below))
    }

    /// The collection of systems; the standard's path if the root does not name it.
    pub(super) fn systems_link(&self) -> &str {
        let link = self.systems.get().and_then(ODataLink::link);
        link.unwrap_or("/redfish/v1/Systems")
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct SystemCollection {
    #[serde(rename = "Members")]
    members: LenientValue<CollectionMembers>,
    #[serde(rename = "Members@odata.count")]
    count: Option<usize>,
}

impl SystemCollection {
    /// The number of systems on all pages.
    pub(super) fn len(&self) -> usize {
        let here = self.members.get().map_or(0, CollectionMembers::len);
        self.count.unwrap_or_default().max(here)
    }

    /// The links to the first systems.
    pub(super) fn first_links(&self) -> &[String] {
        self.members
            .get()
            .map_or(&[], CollectionMembers::first_links)
    }
}

/// A ComputerSystem. The parser must reject a document with two `PowerState` properties, because
/// they could contradict each other.
#[derive(Debug, Deserialize)]
pub(super) struct ComputerSystem {
    #[serde(rename = "@odata.type", default)]
    kind: LenientValue<BoundedText>,
    #[serde(rename = "@odata.etag", default)]
    etag: LenientValue<BoundedText>,
    #[serde(rename = "PowerState", default)]
    power_state: PowerStateText,
    #[serde(rename = "UUID", default)]
    uuid: LenientValue<BoundedText>,
    #[serde(rename = "Manufacturer", default)]
    manufacturer: LenientValue<BoundedText>,
    #[serde(rename = "Model", default)]
    model: LenientValue<BoundedText>,
    #[serde(rename = "Actions", default)]
    actions: LenientValue<SystemActions>,
}

#[derive(Debug, Deserialize)]
struct SystemActions {
    #[serde(
        rename = "#ComputerSystem.Reset",
        default,
        deserialize_with = "present"
    )]
    reset: Option<LenientValue<ResetAction>>,
}

fn present<'de, D: Deserializer<'de>>(
    it: D,
) -> Result<Option<LenientValue<ResetAction>>, D::Error> {
    LenientValue::deserialize(it).map(Some)
}

impl LenientShape for SystemActions {
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

impl LenientShape for ResetAction {
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

#[derive(Debug, Deserialize)]
struct ResetAction {
    #[serde(default)]
    target: LenientValue<BoundedText>,
    #[serde(rename = "ResetType@Redfish.AllowableValues", default)]
    allowed: LenientValue<ResetTypes>,
    #[serde(rename = "@Redfish.ActionInfo", default)]
    info: LenientValue<BoundedText>,
}

/// How a system accepts reset commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResetCapability {
    /// The link to which the command is sent; not checked yet.
    pub(super) target: Option<String>,
    /// The reset types listed in the system's document; empty: none are listed.
    pub(super) allowed: Vec<String>,
    /// The link to the ActionInfo document that lists them instead.
    pub(super) info: Option<String>,
}

impl ComputerSystem {
    /// The power state. Only the exact word `Off` means off.
    ///
    /// # Errors
    /// [`FaultClass::Contradiction`]: no state, or an unknown one.
    pub(super) fn power_reading(&self) -> Result<PowerReading, BmcFault> {
        match self.power_state.power_state_word() {
            Some("On" | "Paused") => Ok(PowerReading::On),
            Some("Off") => Ok(PowerReading::Off),
            Some("PoweringOn") => Ok(PowerReading::PoweringOn),
            Some("PoweringOff") => Ok(PowerReading::PoweringOff),
            Some(_) | None => Err(BmcFault::without_effect(
                FaultClass::Contradiction,
                format!("the system's PowerState is {}", self.power_state),
            )),
        }
    }

    /// Whether the document claims to be a system; one without a type counts as a system.
    pub(super) fn is_system(&self) -> bool {
        let kind = self.kind.get().map(BoundedText::as_str);
        kind.is_none_or(|kind| kind.starts_with("#ComputerSystem."))
    }

    /// `None`: the system has no reset action.
    pub(super) fn reset_capability(&self) -> Option<ResetCapability> {
        let action = self.actions.get()?.reset.as_ref()?;
        let Some(action) = action.get() else {
            return Some(ResetCapability::default());
        };
        let allowed = action.allowed.get();
        Some(ResetCapability {
            target: non_empty_text(&action.target),
            allowed: allowed.map_or_else(Vec::new, ResetTypes::to_vec),
            info: non_empty_text(&action.info),
        })
    }

    /// The document's ETag, if it has one.
    pub(super) fn etag(&self) -> Option<String> {
        non_empty_text(&self.etag)
    }

    pub(super) fn manufacturer(&self) -> Option<String> {
        non_empty_text(&self.manufacturer)
    }

    /// The system's UUID, unless it is none that can be compared.
    pub(super) fn comparable_uuid(&self) -> Option<String> {
        non_empty_text(&self.uuid).filter(|uuid| SystemId::parse(uuid).is_some())
    }

    /// The description of the system, without its commands.
    pub(super) fn describe_system(&self) -> BmcInfo {
        let product = [
            non_empty_text(&self.manufacturer),
            non_empty_text(&self.model),
        ];
        let product = product.into_iter().flatten().collect::<Vec<_>>().join(" ");
        BmcInfo {
            system_uuid: non_empty_text(&self.uuid),
            commands: Vec::new(),
            product: Some(product).filter(|product| !product.is_empty()),
        }
    }
}

/// The document to which `@Redfish.ActionInfo` links (DSP0268, ActionInfo).
#[derive(Debug, Deserialize)]
pub(super) struct ActionInfo {
    #[serde(rename = "Parameters", default)]
    parameters: LenientValue<ActionParameters>,
}

impl ActionInfo {
    /// The allowable reset types; empty: none are listed.
    pub(super) fn reset_types(&self) -> Vec<String> {
        let types = self
            .parameters
            .get()
            .and_then(ActionParameters::reset_types);
        types.map_or_else(Vec::new, ResetTypes::to_vec)
    }
}

/// The state of a Task (DSP0268); `None` if the answer is not a Task.
pub(super) fn task_state(document: &Value) -> Option<&str> {
    document.get("TaskState")?.as_str()
}

fn non_empty_text(name: &LenientValue<BoundedText>) -> Option<String> {
    let text = name.get()?.as_str();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of half a MiB.
    fn many(item: &str) -> String {
        let count = (512 << 10) / (item.len() + 1);
        format!("[{}]", vec![item; count].join(","))
    }

    fn kept(root: &ServiceRoot, reset: &ResetCapability, about: &BmcInfo) -> usize {
        let root = root.systems_link().len() + root.sessions_link().map_or(0, |link| link.len());
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
            let root: ServiceRoot = serde_json::from_str(&root).expect("a root");
            let system = format!(
                "{{\"PowerState\":\"Off\",\"UUID\":{long},\"Model\":{long},\"Actions\":{{\"#ComputerSystem.Reset\":\
                 {{\"target\":{long},\"ResetType@Redfish.AllowableValues\":{allowed}}}}}}}"
            );
            let system: ComputerSystem = serde_json::from_str(&system).expect("a system");
            let reset = system.reset_capability().expect("it has the action");
            assert_eq!(system.power_reading(), Ok(PowerReading::Off));
            assert!(reset.allowed.len() <= 64, "{}", reset.allowed.len());
            let kept = kept(&root, &reset, &system.describe_system());
            assert!(kept <= 64 << 10, "{kept}");
            assert_eq!(root.systems_link(), "/redfish/v1/Systems");
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
        serde_json::from_str::<ComputerSystem>(twice).expect_err("two states at once");
    }

    #[test]
    fn what_has_another_shape_is_as_if_it_were_not_there() {
        for odd in ["null", "7", "-1.5", "true", "[]", "{}"] {
            let system = format!("{{\"PowerState\":{odd},\"Actions\":{odd},\"UUID\":{odd}}}");
            let system: ComputerSystem = serde_json::from_str(&system).expect(odd);
            let fault = system.power_reading().expect_err("no state");
            assert_eq!(fault.class, FaultClass::Contradiction);
            assert_eq!(
                (
                    system.reset_capability(),
                    system.describe_system().system_uuid
                ),
                (None, None)
            );
        }
    }
}
