//! The power controller's cases on a real API server, with short times, with the rights that are shipped.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real API server has the real time"
)]

#[allow(dead_code, reason = "each test binary uses its part")]
mod power_cases;
mod power_rights;

use std::path::Path;
use std::time::Duration;

use dogwatch_core::power::Config;
use jiff::Timestamp;
use tokio::sync::Mutex;

use power_cases::world::World;

/// One after the other: a process keeps every host of the cluster.
static ALONE: Mutex<()> = Mutex::const_new(());

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = ALONE.lock().await;
            let mut world = World::on(client().await, short(), Timestamp::now()).await;
            world.leading = power_rights::controller().await;
            power_rights::in_namespace(&world.namespace).await;
            power_cases::$name(&world).await;
            world.end().await;
            power_rights::after(&world.namespace, CASES).await;
        }
    )*
        const CASES: usize = [$(stringify!($name)),*].len();
    };
}

every_power_case!(on_real);

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_said_with_the_role_that_lacks_and_read_when_it_is_given()
{
    let _alone = ALONE.lock().await;
    let mut world = World::on(client().await, short(), Timestamp::now()).await;
    world.leading = power_rights::controller().await;
    let _bmc = world.host("h0").await;
    let _process = world.process("first");
    world
        .until("it says so", || async {
            let (status, reason) = world.condition("h0", "PowerControlReady").await;
            status == "False" && reason == "SecretForbidden"
        })
        .await;
    power_rights::in_namespace(&world.namespace).await;
    world.until_ready("h0").await;
    world.end().await;
}

fn short() -> Config {
    let seconds = Duration::from_secs;
    Config {
        poll: seconds(1),
        check: seconds(2),
        confirm: Duration::from_millis(500),
        settle: seconds(4),
        soft: seconds(20),
        call: seconds(2),
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
