//! Remediation, in figures: a real `dogwatch controller` that keeps power and remediates, on a real API
//! server, with simulated BMCs that are asked over HTTP. Machines and Nodes are objects alone: nobody renews
//! a Node's sign of life.
//!
//! `DOGWATCH` names a program that is built already. `PARTS` says what is measured, of `failing`, `peer` and
//! `memory`; `HOSTS`, `FAILING`, `HUNG` and `MANY` change how much.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the bench")]
#![allow(clippy::cast_precision_loss, reason = "nothing here comes near 2^53")]

#[allow(dead_code, reason = "each bench uses its part")]
#[path = "power/controller.rs"]
mod controller;
#[path = "power/effort.rs"]
mod effort;
#[path = "remedy/failing.rs"]
mod failing;
#[path = "remedy/memory.rs"]
mod memory;
#[path = "power/own.rs"]
mod own;
#[path = "remedy/peer.rs"]
mod peer;
#[allow(dead_code, reason = "each bench uses its part")]
#[path = "power/stage.rs"]
mod stage;
#[allow(dead_code, reason = "each bench uses its part")]
#[path = "power/table.rs"]
mod table;
#[path = "remedy/yard.rs"]
mod yard;

use dogwatch_testbed::bench::number_of;

use controller::Controller;
use stage::Stage;

const HOSTS: usize = 1_000;
const FAILING: usize = 50;
const HUNG: usize = 10;
const MANY: usize = 5_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Ok(kubeconfig) = std::env::var(memory::WATCHES) {
        return memory::watch(kubeconfig.as_ref()).await;
    }
    let parts = std::env::var("PARTS").unwrap_or_else(|_| "failing,peer,memory".into());
    let is_wanted = |part: &str| parts.split(',').any(|wanted| wanted == part);
    let mut stage = Stage::start(controller::find_program()).await;
    yard::install(&stage).await;
    let mut still_hung = 0;
    if is_wanted("failing") || is_wanted("peer") {
        let hosts = number_of("HOSTS", HOSTS);
        yard::furnish(&mut stage, hosts).await;
        if is_wanted("failing") {
            let controller = Controller::remediating(&stage).await;
            controller.until_on(hosts).await;
            let (failing, hung) = (number_of("FAILING", FAILING), number_of("HUNG", HUNG));
            failing::measure(&stage, &controller, failing, hung).await;
            still_hung = hung;
        }
        if is_wanted("peer") {
            peer::measure(&stage).await;
        }
    }
    if is_wanted("memory") {
        memory::measure(&mut stage, number_of("MANY", MANY), still_hung).await;
    }
}
