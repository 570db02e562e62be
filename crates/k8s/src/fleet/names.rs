//! Which Nodes a person means.

use dogwatch_core::name::NodeName;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::FleetClient;
use crate::Error;
use crate::error::ask;

impl FleetClient {
    /// The names of all Nodes that `selector` (as kubectl writes one) selects; all of them where
    /// there is none. By name.
    pub async fn names(&self, selector: Option<&str>) -> Result<Vec<NodeName>, Error> {
        let params = ListParams {
            label_selector: selector.map(str::to_owned),
            ..ListParams::default()
        };
        let nodes = ask(self.nodes().list_metadata(&params)).await?;
        let names = nodes
            .items
            .iter()
            .map(|node| NodeName::new(node.name_any()));
        let mut names: Vec<NodeName> = names.filter_map(Result::ok).collect();
        names.sort();
        Ok(names)
    }
}
