//! The lock's cases on a real API server.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod lock_cases;

use lock_cases::world::World;

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            lock_cases::$name(&World::on(client().await).await).await;
        }
    )* };
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

lock_cases::every_case!(on_real);
