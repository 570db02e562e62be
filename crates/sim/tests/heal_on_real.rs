//! The healer's cases on a real API server, with short times: with the rights that are shipped, no
//! more and no less, and with all admission policies in force.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_cases;
mod heal_rights;

use std::path::Path;
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
            let mut world = World::on(client().await, short()).await;
            world.leading = heal_rights::controller(&world.namespace).await;
            heal_cases::$name(&world).await;
            world.end().await;
            heal_rights::after(&world.namespace, CASES).await;
        }
    )*
        const CASES: usize = [$(stringify!($name)),*].len();
    };
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
    client_by(control_plane.kubeconfig()).await
}

async fn client_by(path: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}
