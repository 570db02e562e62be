//! The way it should go.

use crate::support::{Cluster, objects};

#[tokio::test]
async fn three_nodes_that_want_it_at_once_reboot_one_after_the_other() {
    let cluster = Cluster::new().await;
    let machines = cluster.machines(3).await;
    let mut boots = Vec::new();
    for machine in &machines {
        cluster.pod(&objects::pod(&format!("web-{}", machine.name()), machine.name(), "web")).await;
        boots.push(machine.boot_id());
    }
    for machine in &machines {
        machine.touch("new kernel");
    }
    for (machine, old) in machines.iter().zip(&boots) {
        let last = machine.until_back().await;
        assert_eq!(last["oldBootId"], **old);
        assert_eq!(machine.commands(), 1);
    }
}
