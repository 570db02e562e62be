//! Host power, in figures: a real `dogwatch controller` on a real API server, before simulated BMCs
//! that are asked over HTTP; beside it the fence agent that others use.
//!
//! The BMCs live in this process, so that their memory and time are not the controller's.
//! `DOGWATCH` names a program that is built already. `BMO` names metal3's baremetal-operator, and
//! `BMO_CRDS` the folder of its CRDs. `PARTS` says what is measured, of `fences`, `crash`, `idle`,
//! `peer` and `metal3`; `HOSTS`, `HUNG`, `FENCES`, `MANY` and `WINDOW` (seconds) change how
//! much.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the bench")]
#![allow(clippy::cast_precision_loss, reason = "nothing here comes near 2^53")]

#[allow(dead_code, reason = "each bench uses its part")]
#[path = "power/controller.rs"]
mod controller;
#[path = "power/crash.rs"]
mod crash;
#[path = "power/effort.rs"]
mod effort;
#[path = "power/fences.rs"]
mod fences;
#[path = "power/idle.rs"]
mod idle;
#[path = "power/metal3.rs"]
mod metal3;
#[path = "power/own.rs"]
mod own;
#[path = "power/peer.rs"]
mod peer;
#[path = "power/stage.rs"]
mod stage;
#[path = "power/table.rs"]
mod table;

use dogwatch_testbed::bench::number_of;

use controller::Controller;
use stage::Stage;
use table::note;

const HOSTS: usize = 1_000;
const HUNG: usize = 100;
const MANY: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let parts = std::env::var("PARTS").unwrap_or_else(|_| "fences,crash,idle,peer,metal3".into());
    let is_wanted = |part: &str| parts.split(',').any(|wanted| wanted == part);
    if is_wanted("peer") {
        peer::measure().await;
    }
    if is_wanted("metal3") {
        metal3::measure(number_of("HOSTS", HOSTS)).await;
    }
    if !["fences", "crash", "idle"].into_iter().any(is_wanted) {
        return;
    }
    let (hosts, hung) = (number_of("HOSTS", HOSTS), number_of("HUNG", HUNG));
    let mut stage = Stage::start(controller::find_program()).await;
    if is_wanted("fences") || is_wanted("crash") {
        stage.add_hosts(hosts, hung).await;
        let controller = Controller::start(&stage).await;
        controller.until_on(hosts - hung).await;
        fences::measure(&stage, &controller, hosts - hung).await;
        note(
            &format!("RSS of the controller with {hosts} hosts"),
            &format!("{:.0} MiB", controller.resident("VmRSS:")),
        );
        if is_wanted("crash") {
            crash::measure(&stage, controller).await;
        }
    }
    if is_wanted("idle") {
        idle::measure(&mut stage, number_of("MANY", MANY)).await;
    }
}
