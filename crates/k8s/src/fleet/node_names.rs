//! Lists Nodes by a label selector.

use dogwatch_core::name::NodeName;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::FleetClient;
use crate::Error;
use crate::error::with_timeout;
use crate::readable_dates::ReadableApi as _;

impl FleetClient {
    /// The names of the Nodes that `selector` (in kubectl's syntax) selects, sorted. `None`: all
    /// Nodes.
    pub async fn list_node_names(&self, selector: Option<&str>) -> Result<Vec<NodeName>, Error> {
        let params = ListParams {
            label_selector: selector.map(str::to_owned),
            ..ListParams::default()
        };
        let nodes = with_timeout(self.node_api().list_readable_metadata(&params)).await?;
        let names = nodes
            .items
            .iter()
            .map(|node| NodeName::new(node.name_any()));
        let mut names: Vec<NodeName> = names.filter_map(Result::ok).collect();
        names.sort();
        Ok(names)
    }
}
