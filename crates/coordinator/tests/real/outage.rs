//! The API server is down. Source: specification §2.5: "it keeps trying, for ever".

use crate::support::{Cluster, OnCommand, Setting};

#[tokio::test]
async fn an_api_server_that_is_away_across_the_boot_delays_the_return_and_no_more() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::default().on_command(OnCommand::Nothing))
        .await;
    machine.touch("new kernel");
    machine.until_commands(1).await;
    let lines = machine.log().len();
    cluster.plane.stop_api();
    machine.reboot().await;
    machine
        .log()
        .until_after(lines, &["does not answer; retrying"])
        .await;
    cluster.plane.start_api().await.expect("it starts again");
    machine.until_back().await;
    assert_eq!((machine.commands(), machine.most_attempts()), (1, 1));
}

#[tokio::test]
async fn an_api_server_that_goes_away_during_the_drain_stops_nothing_for_good() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    cluster.plane.stop_api();
    machine.log().until(&["failed to watch the Node"]).await;
    cluster.plane.start_api().await.expect("it starts again");
    cluster.unblock().await;
    machine.until_back().await;
    assert_eq!(machine.commands(), 1);
}
