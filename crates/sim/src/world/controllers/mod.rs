//! What kube-controller-manager and kube-scheduler do in a cluster, as far as Dogwatch meets it.
pub mod words;
