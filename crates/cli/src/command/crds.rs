//! `dogwatch crds`: the kinds that Dogwatch adds to a cluster.

use std::io::Write as _;

use crate::exit::Failure;
use crate::output;

/// `deploy/crds`, each a document of its own.
pub(super) const CRDS: [&str; 1] = [include_str!("../../../../deploy/crds/rebootpolicies.yaml")];

/// Prints them.
pub fn run() -> Result<(), Failure> {
    let mut out = output::stdout();
    out.write_all(CRDS.join("---\n").as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_api::reboot_policy::crd;
    use serde_json::Value;

    #[test]
    fn what_is_printed_is_what_this_version_understands() {
        let printed: Vec<Value> = serde_saphyr::from_multiple(&CRDS.join("---\n")).unwrap();
        assert_eq!(printed, [crd()]);
    }
}
