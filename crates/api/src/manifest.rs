//! Reads the CustomResourceDefinitions in `deploy/`. `cargo xtask generate` derives them from the
//! types of this crate.

use serde_json::Value;

pub(crate) fn parse_manifest(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("a test of this crate writes it")
}
