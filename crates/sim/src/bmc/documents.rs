//! The documents that a simulated BMC serves.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::bmc_state::BmcState;
use super::fault::BmcFaultKind;
use super::maker_profile::{ResetTypeLocation, SessionSupport};
use super::reset::ResetType;
use super::responses;
use super::sim_bmc::SimBmc;

/// Origin of links that lead away from the BMC: a name that nobody can own (RFC 2606).
const FOREIGN_ORIGIN: &str = "http://elsewhere.invalid";

impl SimBmc {
    pub(super) fn service_root_document(&self, held: &BmcState) -> Value {
        let mut root = json!({
            "@odata.id": "/redfish/v1/",
            "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
            "Id": "RootService",
            "Name": "Root Service",
            "RedfishVersion": "1.8.0",
            "Systems": { "@odata.id": held.link_to_path("/redfish/v1/Systems") },
            "Tasks": { "@odata.id": held.link_to_path("/redfish/v1/TaskService") },
        });
        if let Some(vendor) = self.0.spec.profile.vendor {
            root["Vendor"] = vendor.into();
        }
        if let SessionSupport::Service { .. } = self.0.spec.profile.sessions {
            let service = "/redfish/v1/SessionService";
            let sessions = held.link_to_path(&format!("{service}/Sessions"));
            root["SessionService"] = json!({ "@odata.id": held.link_to_path(service) });
            root["Links"] = json!({ "Sessions": { "@odata.id": sessions } });
        }
        root
    }

    pub(super) fn session_service_document(&self, held: &BmcState) -> Response<Bytes> {
        if self.0.spec.profile.sessions == SessionSupport::None {
            return responses::not_found_response();
        }
        let service = "/redfish/v1/SessionService";
        let body = json!({
            "@odata.id": service,
            "Id": "SessionService",
            "ServiceEnabled": true,
            "SessionTimeout": self.0.spec.session_life.as_secs(),
            "Sessions": { "@odata.id": held.link_to_path(&format!("{service}/Sessions")) },
        });
        responses::json_document(200, &body)
    }

    /// Makes the document of one system; `None` if there is no system of this name. This counts as
    /// a reading for faults.
    pub(super) fn system_document(&self, held: &mut BmcState, id: &str) -> Option<Value> {
        let state = self.reported_power_state(held, id)?;
        let system = held.find_system(id)?;
        let (maker, model) = self.0.spec.profile.product;
        let mut body = json!({
            "@odata.id": format!("/redfish/v1/Systems/{id}"),
            "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
            "Id": id,
            "Name": self.0.spec.name,
            "SystemType": "Physical",
            "Manufacturer": maker,
            "Model": model,
            "UUID": system.machine.system_uuid(),
            "Actions": { "#ComputerSystem.Reset": self.reset_action_document(held, id) },
        });
        state.write_power_state(&mut body);
        Some(body)
    }

    /// Sends a system's document, with an ETag if the profile has ETags.
    pub(super) fn system_response(&self, body: Value) -> Response<Bytes> {
        if self.0.spec.profile.has_etags {
            responses::with_etag(body)
        } else {
            responses::json_document(200, &body)
        }
    }

    fn reset_action_document(&self, held: &BmcState, id: &str) -> Value {
        let path = format!("/redfish/v1/Systems/{id}");
        let target = held.link_to_path(&format!("{path}/Actions/ComputerSystem.Reset"));
        let mut action = json!({ "target": target });
        let names = self.0.spec.profile.names;
        if matches!(names, ResetTypeLocation::Inline | ResetTypeLocation::Both) {
            action["ResetType@Redfish.AllowableValues"] = self.reset_type_names(held).into();
        }
        if matches!(
            names,
            ResetTypeLocation::ActionInfo | ResetTypeLocation::Both
        ) {
            action["@Redfish.ActionInfo"] =
                held.link_to_path(&format!("{path}/ResetActionInfo")).into();
        }
        action
    }

    /// Makes the `ActionInfo` document with the reset types that the system accepts.
    pub(super) fn action_info_document(&self, held: &BmcState, id: &str) -> Response<Bytes> {
        let is_told = matches!(
            self.0.spec.profile.names,
            ResetTypeLocation::ActionInfo | ResetTypeLocation::Both
        );
        if held.find_system(id).is_none() || !is_told {
            return responses::not_found_response();
        }
        let parameter = json!({
            "Name": "ResetType",
            "DataType": "String",
            "Required": true,
            "AllowableValues": self.reset_type_names(held),
        });
        let body = json!({
            "@odata.id": format!("/redfish/v1/Systems/{id}/ResetActionInfo"),
            "@odata.type": "#ActionInfo.v1_1_2.ActionInfo",
            "Id": "ResetActionInfo",
            "Parameters": [parameter],
        });
        responses::json_document(200, &body)
    }

    /// Returns the reset types that the BMC accepts now.
    pub(super) fn accepted_reset_types(&self, held: &BmcState) -> Vec<ResetType> {
        let lacks = |kind| {
            held.faults
                .has_fault(|what| matches!(what, BmcFaultKind::Lacks(lacked) if *lacked == kind))
        };
        let resets = self.0.spec.profile.resets.iter().copied();
        resets.filter(|kind| !lacks(*kind)).collect()
    }

    fn reset_type_names(&self, held: &BmcState) -> Vec<&'static str> {
        self.accepted_reset_types(held)
            .into_iter()
            .map(ResetType::as_str)
            .collect()
    }
}

impl BmcState {
    /// Makes the collection of systems.
    pub(super) fn system_collection_document(&self) -> Response<Bytes> {
        let gone = self
            .faults
            .has_fault(|what| *what == BmcFaultKind::NoSuchSystem);
        let path = |id: &str| self.link_to_path(&format!("/redfish/v1/Systems/{id}"));
        let systems = self.systems.iter().filter(|_| !gone);
        let members = systems.map(|system| json!({ "@odata.id": path(&system.id) }));
        let members: Vec<_> = members.collect();
        let body = json!({
            "@odata.id": "/redfish/v1/Systems",
            "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
            "Members@odata.count": members.len(),
            "Members": members,
        });
        responses::json_document(200, &body)
    }

    pub(super) fn link_to_path(&self, path: &str) -> String {
        if self
            .faults
            .has_fault(|what| *what == BmcFaultKind::ForeignLinks)
        {
            format!("{FOREIGN_ORIGIN}{path}")
        } else {
            path.to_owned()
        }
    }

    /// Returns the target of a redirect.
    pub(super) fn foreign_link(path: &str) -> String {
        format!("{FOREIGN_ORIGIN}{path}")
    }
}
