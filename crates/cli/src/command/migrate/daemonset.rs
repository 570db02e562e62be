//! Finds kured's DaemonSets among objects and reads their settings.

use dogwatch_core::kured::KuredInstallation;
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct KuredDaemonSet {
    pub name: String,
    pub namespace: String,
    pub kured: KuredInstallation,
    lock: Option<String>,
}

impl KuredDaemonSet {
    /// `NAMESPACE/NAME`.
    pub fn namespaced_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The holder of kured's lock, as kured wrote it.
    pub fn lock_holder(&self) -> Option<String> {
        let lock: Value = serde_json::from_str(self.lock.as_deref()?).ok()?;
        let one = lock["nodeID"].as_str().map(str::to_owned);
        let several = lock["locks"].as_array().filter(|locks| !locks.is_empty());
        let several = several.map(|locks| {
            let names = locks.iter().filter_map(|lock| lock["nodeID"].as_str());
            names.collect::<Vec<_>>().join(", ")
        });
        one.or(several).filter(|holder| !holder.is_empty())
    }
}

/// Finds kured's DaemonSets among documents, also inside a List.
pub fn find_kured_daemonsets(documents: &[Value]) -> Vec<KuredDaemonSet> {
    documents
        .iter()
        .flat_map(|document| match document["items"].as_array() {
            Some(items) => items.as_slice(),
            None => std::slice::from_ref(document),
        })
        .filter_map(parse_daemonset)
        .collect()
}

fn parse_daemonset(object: &Value) -> Option<KuredDaemonSet> {
    // The items of a list of one kind have no kind of their own.
    if !matches!(object["kind"].as_str(), None | Some("DaemonSet")) {
        return None;
    }
    let pod = &object["spec"]["template"]["spec"];
    let container = pod["containers"]
        .as_array()?
        .iter()
        .find(|one| is_kured(one))?;
    let metadata = &object["metadata"];
    let words = ["command", "args"].map(|field| string_list(&container[field]));
    // kured can keep its lock in another annotation; only the default name is read here.
    let lock = metadata["annotations"]["weave.works/kured-node-lock"].as_str();
    Some(KuredDaemonSet {
        name: metadata["name"].as_str()?.to_owned(),
        namespace: metadata["namespace"]
            .as_str()
            .unwrap_or("kube-system")
            .to_owned(),
        kured: KuredInstallation {
            arguments: words.concat(),
            environment: read_environment(container),
            mounts: read_host_mounts(pod, container),
            node_selector: serde_json::from_value(pod["nodeSelector"].clone()).unwrap_or_default(),
        },
        lock: lock.map(str::to_owned),
    })
}

/// Recognizes kured by the last part of the image's name, without tag and digest, or by the
/// command.
fn is_kured(container: &Value) -> bool {
    let image = container["image"].as_str().unwrap_or_default();
    let image = image.split('@').next().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let program = string_list(&container["command"])
        .into_iter()
        .next()
        .unwrap_or_default();
    last.split(':').next() == Some("kured") || program.rsplit('/').next() == Some("kured")
}

fn string_list(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn read_environment(container: &Value) -> Vec<(String, Option<String>)> {
    let variables = container["env"].as_array().into_iter().flatten();
    let pair = |variable: &Value| {
        let name = variable["name"].as_str()?.to_owned();
        let elsewhere = !variable["valueFrom"].is_null();
        let value = variable["value"].as_str().unwrap_or_default().to_owned();
        Some((name, (!elsewhere).then_some(value)))
    };
    let sources = container["envFrom"].as_array().into_iter().flatten();
    // Any variable of these sources may be a setting.
    let unread = sources.map(|_| ("KURED_(envFrom)".to_owned(), None));
    variables.filter_map(pair).chain(unread).collect()
}

fn read_host_mounts(pod: &Value, container: &Value) -> Vec<(String, String)> {
    let volumes = pod["volumes"].as_array();
    let host = |name: &Value| {
        let volume = volumes?.iter().find(|volume| volume["name"] == *name)?;
        volume["hostPath"]["path"].as_str()
    };
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    mounts
        .filter_map(|mount| {
            let inside = mount["mountPath"].as_str()?.to_owned();
            Some((inside, host(&mount["name"])?.to_owned()))
        })
        .collect()
}
