//! The real scheduler of a control plane. A DaemonSet's pods, too, are on no node without it.

use std::process::Command;

use tokio::net::TcpStream;

use super::programs::find_or_build_programs;
use crate::{ControlPlane, Error, ports, server_process::ServerProcess};

/// A running scheduler. Dropping it ends it.
#[derive(Debug)]
pub struct RealScheduler {
    _service: ServerProcess,
}

impl RealScheduler {
    /// Schedules the pods of this control plane; it serves when this returns.
    pub async fn start(plane: &ControlPlane) -> Result<Self, Error> {
        let programs = tokio::task::spawn_blocking(find_or_build_programs)
            .await
            .expect("building does not panic")?;
        let mut service = ServerProcess::new("kube-scheduler")?;
        let port = ports::find_free_port()?;
        let mut command = Command::new(&programs.kube_scheduler);
        command
            .arg(format!(
                "--kubeconfig={}",
                plane.admin_kubeconfig().display()
            ))
            .arg("--leader-elect=false")
            .arg(format!("--secure-port={port}"))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--cert-dir={}", service.folder().display()));
        service.spawn_process(&mut command)?;
        service
            .wait_until_answering(async || TcpStream::connect(("127.0.0.1", port)).await.is_ok())
            .await?;
        Ok(Self { _service: service })
    }
}
