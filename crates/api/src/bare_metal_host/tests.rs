//! Properties that the schema must have.

use super::*;
use crate::schema::check::{parts_without_description, schema_of, visit_parts};

#[test]
fn every_field_explains_itself_to_kubectl() {
    assert_eq!(
        parts_without_description(&schema_of(&host_crd())),
        Vec::<String>::new()
    );
}

#[test]
fn what_metal3_has_more_stays_on_the_object_and_what_is_ours_is_strict() {
    let mut open = Vec::new();
    visit_parts(&schema_of(&host_crd()), "", &mut |path, part| {
        if part["x-kubernetes-preserve-unknown-fields"] == true {
            open.push(path.to_owned());
        }
    });
    assert_eq!(
        open,
        [".spec", ".spec.bmc", ".status", ".status.provisioning"]
    );
}

#[test]
fn metal3s_columns_are_there_as_metal3_has_them() {
    let columns = host_crd()["spec"]["versions"][0]["additionalPrinterColumns"].clone();
    let columns = columns.as_array().unwrap();
    for (name, path, priority) in [
        ("Status", ".status.operationalStatus", 1),
        ("State", ".status.provisioning.state", 0),
        ("Consumer", ".spec.consumerRef.name", 0),
        ("BMC", ".spec.bmc.address", 1),
        ("Online", ".spec.online", 0),
        ("Error", ".status.errorType", 0),
        ("Age", ".metadata.creationTimestamp", 0),
    ] {
        let column = columns
            .iter()
            .find(|column| column["name"] == name)
            .unwrap();
        assert_eq!(
            (&column["jsonPath"], &column["priority"]),
            (&path.into(), &priority.into())
        );
    }
}
