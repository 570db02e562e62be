//! The healer's cases on a real API server, with short times.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_cases;

use std::time::Duration;

use dogwatch_core::heal::Config;
use dogwatch_core::reboot;
use tokio::sync::Mutex;

use heal_cases::world::World;

/// One after the other: a healer sees every Node of the cluster.
static ALONE: Mutex<()> = Mutex::const_new(());

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = ALONE.lock().await;
            let world = World::on(client().await, short()).await;
            heal_cases::$name(&world).await;
            world.end().await;
        }
    )* };
}

heal_cases::every_case!(on_real);

fn short() -> Config {
    let seconds = Duration::from_secs;
    Config {
        heal_after: seconds(4),
        abort_after: seconds(1),
        presence_after: seconds(2),
        lock_stale_after: seconds(60),
        flags: reboot::Config {
            drain_timeout: seconds(5),
            reboot_timeout: seconds(3),
            settle: seconds(1),
            ..reboot::Config::default()
        },
    }
}

async fn client() -> kube::Client {
    let control_plane = dogwatch_testbed::shared().await;
    let kubeconfig = kube::config::Kubeconfig::read_from(control_plane.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}
