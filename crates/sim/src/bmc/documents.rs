//! What a BMC's documents say.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::answer;
use super::fault::What;
use super::held::Held;
use super::reset::ResetType;
use super::shape::{Names, Sessions};
use super::simulated::SimBmc;

/// Whither a BMC leads that leads away: a name that can be nobody's (RFC 2606).
const ELSEWHERE: &str = "http://elsewhere.invalid";

impl SimBmc {
    /// The service root.
    pub(super) fn root(&self, held: &Held) -> Value {
        let mut root = json!({
            "@odata.id": "/redfish/v1/",
            "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
            "Id": "RootService",
            "Name": "Root Service",
            "RedfishVersion": "1.8.0",
            "Systems": { "@odata.id": held.link("/redfish/v1/Systems") },
            "Tasks": { "@odata.id": held.link("/redfish/v1/TaskService") },
        });
        if let Some(vendor) = self.0.spec.shape.vendor {
            root["Vendor"] = vendor.into();
        }
        if let Sessions::Service { .. } = self.0.spec.shape.sessions {
            let service = "/redfish/v1/SessionService";
            let sessions = held.link(&format!("{service}/Sessions"));
            root["SessionService"] = json!({ "@odata.id": held.link(service) });
            root["Links"] = json!({ "Sessions": { "@odata.id": sessions } });
        }
        root
    }

    /// The session service.
    pub(super) fn session_service(&self, held: &Held) -> Response<Bytes> {
        if self.0.spec.shape.sessions == Sessions::None {
            return answer::nothing_there();
        }
        let service = "/redfish/v1/SessionService";
        let body = json!({
            "@odata.id": service,
            "Id": "SessionService",
            "ServiceEnabled": true,
            "SessionTimeout": self.0.spec.session_life.as_secs(),
            "Sessions": { "@odata.id": held.link(&format!("{service}/Sessions")) },
        });
        answer::document(200, &body)
    }

    /// One system; `None`: there is none of this name. A reading, for faults.
    pub(super) fn system(&self, held: &mut Held, id: &str) -> Option<Value> {
        let state = self.power_state(held, id)?;
        let system = held.system(id)?;
        let (maker, model) = self.0.spec.shape.product;
        let mut body = json!({
            "@odata.id": format!("/redfish/v1/Systems/{id}"),
            "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
            "Id": id,
            "Name": self.0.spec.name,
            "SystemType": "Physical",
            "Manufacturer": maker,
            "Model": model,
            "UUID": system.machine.system_uuid(),
            "Actions": { "#ComputerSystem.Reset": self.action(held, id) },
        });
        state.write(&mut body);
        Some(body)
    }

    /// How a system's document is sent.
    pub(super) fn sent(&self, body: Value) -> Response<Bytes> {
        if self.0.spec.shape.has_etags {
            answer::tagged(body)
        } else {
            answer::document(200, &body)
        }
    }

    fn action(&self, held: &Held, id: &str) -> Value {
        let path = format!("/redfish/v1/Systems/{id}");
        let target = held.link(&format!("{path}/Actions/ComputerSystem.Reset"));
        let mut action = json!({ "target": target });
        let names = self.0.spec.shape.names;
        if matches!(names, Names::Inline | Names::Both) {
            action["ResetType@Redfish.AllowableValues"] = self.kinds(held).into();
        }
        if matches!(names, Names::ActionInfo | Names::Both) {
            action["@Redfish.ActionInfo"] = held.link(&format!("{path}/ResetActionInfo")).into();
        }
        action
    }

    /// What a system's reset takes.
    pub(super) fn action_info(&self, held: &Held, id: &str) -> Response<Bytes> {
        let is_told = matches!(self.0.spec.shape.names, Names::ActionInfo | Names::Both);
        if held.system(id).is_none() || !is_told {
            return answer::nothing_there();
        }
        let parameter = json!({
            "Name": "ResetType",
            "DataType": "String",
            "Required": true,
            "AllowableValues": self.kinds(held),
        });
        let body = json!({
            "@odata.id": format!("/redfish/v1/Systems/{id}/ResetActionInfo"),
            "@odata.type": "#ActionInfo.v1_1_2.ActionInfo",
            "Id": "ResetActionInfo",
            "Parameters": [parameter],
        });
        answer::document(200, &body)
    }

    /// The kinds of reset that it takes now.
    pub(super) fn takes(&self, held: &Held) -> Vec<ResetType> {
        let lacks = |kind| {
            held.faults
                .has(|what| matches!(what, What::Lacks(lacked) if *lacked == kind))
        };
        let resets = self.0.spec.shape.resets.iter().copied();
        resets.filter(|kind| !lacks(*kind)).collect()
    }

    fn kinds(&self, held: &Held) -> Vec<&'static str> {
        self.takes(held)
            .into_iter()
            .map(ResetType::as_str)
            .collect()
    }
}

impl Held {
    /// The collection of its systems.
    pub(super) fn members(&self) -> Response<Bytes> {
        let gone = self.faults.has(|what| *what == What::NoSuchSystem);
        let path = |id: &str| self.link(&format!("/redfish/v1/Systems/{id}"));
        let systems = self.systems.iter().filter(|_| !gone);
        let members = systems.map(|system| json!({ "@odata.id": path(&system.id) }));
        let members: Vec<_> = members.collect();
        let body = json!({
            "@odata.id": "/redfish/v1/Systems",
            "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
            "Members@odata.count": members.len(),
            "Members": members,
        });
        answer::document(200, &body)
    }

    /// A link as it says it.
    pub(super) fn link(&self, path: &str) -> String {
        if self.faults.has(|what| *what == What::ForeignLinks) {
            format!("{ELSEWHERE}{path}")
        } else {
            path.to_owned()
        }
    }

    /// Where a redirect leads.
    pub(super) fn elsewhere(path: &str) -> String {
        format!("{ELSEWHERE}{path}")
    }
}
