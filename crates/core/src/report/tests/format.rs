//! The JSON of the view: other programs read it.

use super::*;
use crate::explain::testkit::{fleet, held, in_phase, waiting};
use crate::report::{FLEET_VIEW_VERSION, FleetEstimate, NodeEstimate};

/// The committed JSON. A field that goes or changes its meaning needs a new version; a new field
/// is added here.
const GOLDEN: &str = include_str!("golden.json");

fn example() -> FleetView {
    let draining = in_phase("n1", RebootPhase::Draining, 50, ("Draining", "3 pods gone"));
    let mut lost = rebooted("n3", 10, 40);
    lost.ready = false;
    let nodes = vec![draining, waiting("n2", 10), lost];
    let mut lease = held(0, "n1", 50);
    lease.group = GroupName::new("workers").unwrap();
    let fleet = with_policy(fleet(nodes, vec![lease]), paused(None));
    let times = NodeEstimate {
        start: at(200),
        latest_start: at(300),
        finish: at(400),
        latest_finish: at(500),
    };
    let estimate = FleetEstimate {
        groups: BTreeMap::new(),
        at: at(90),
        finish: Some(at(400)),
        latest_finish: Some(at(500)),
        nodes: BTreeMap::from([("n2".to_owned(), times)]),
        left_out: vec!["gates may close".into()],
    };
    let input = FleetViewInput {
        estimate: Some(estimate),
        unreadable: vec!["the BareMetalHosts cannot be read: refused".into()],
        ..FleetViewInput::of_fleet(&fleet)
    };
    build_fleet_view(input, now(100))
}

#[test]
fn the_json_is_the_committed_one() {
    let json = serde_json::to_string_pretty(&example()).unwrap();
    assert_eq!(json.trim(), GOLDEN.trim(), "\n{json}\n");
}

#[test]
fn the_version_is_in_the_json() {
    let json = serde_json::to_value(example()).unwrap();
    assert_eq!(json["version"], FLEET_VIEW_VERSION);
}
