//! dogwatch-k8s
