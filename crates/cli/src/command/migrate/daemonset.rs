//! Finds kured's DaemonSets among objects, and reads what they tell kured.

use dogwatch_core::kured::Kured;
use serde_json::Value;

/// One DaemonSet of kured.
#[derive(Debug, Clone)]
pub struct Daemon {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its settings.
    pub kured: Kured,
    lock: Option<String>,
}

impl Daemon {
    /// `NAMESPACE/NAME`.
    pub fn called(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Who holds kured's lock, in kured's own words.
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

/// The DaemonSets of kured among documents, also those within a List.
pub fn kureds(documents: &[Value]) -> Vec<Daemon> {
    documents
        .iter()
        .flat_map(|document| match document["items"].as_array() {
            Some(items) => items.as_slice(),
            None => std::slice::from_ref(document),
        })
        .filter_map(daemon)
        .collect()
}

fn daemon(object: &Value) -> Option<Daemon> {
    // A list of one kind leaves the kind of its items out.
    if !matches!(object["kind"].as_str(), None | Some("DaemonSet")) {
        return None;
    }
    let pod = &object["spec"]["template"]["spec"];
    let container = pod["containers"]
        .as_array()?
        .iter()
        .find(|one| is_kured(one))?;
    let metadata = &object["metadata"];
    let words = ["command", "args"].map(|field| texts(&container[field]));
    // Another annotation can hold the lock; its name is a setting, and the usual one is the case.
    let lock = metadata["annotations"]["weave.works/kured-node-lock"].as_str();
    Some(Daemon {
        name: metadata["name"].as_str()?.to_owned(),
        namespace: metadata["namespace"]
            .as_str()
            .unwrap_or("kube-system")
            .to_owned(),
        kured: Kured {
            words: words.concat(),
            environment: environment(container),
            mounts: mounts(pod, container),
            node_selector: serde_json::from_value(pod["nodeSelector"].clone()).unwrap_or_default(),
        },
        lock: lock.map(str::to_owned),
    })
}

/// The image's last part, without tag and digest, or what it runs.
fn is_kured(container: &Value) -> bool {
    let image = container["image"].as_str().unwrap_or_default();
    let image = image.split('@').next().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let program = texts(&container["command"])
        .into_iter()
        .next()
        .unwrap_or_default();
    last.split(':').next() == Some("kured") || program.rsplit('/').next() == Some("kured")
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn environment(container: &Value) -> Vec<(String, Option<String>)> {
    let variables = container["env"].as_array().into_iter().flatten();
    let pair = |variable: &Value| {
        let name = variable["name"].as_str()?.to_owned();
        let elsewhere = !variable["valueFrom"].is_null();
        let value = variable["value"].as_str().unwrap_or_default().to_owned();
        Some((name, (!elsewhere).then_some(value)))
    };
    let sources = container["envFrom"].as_array().into_iter().flatten();
    // Whatever they hold may be a setting.
    let unread = sources.map(|_| ("KURED_(envFrom)".to_owned(), None));
    variables.filter_map(pair).chain(unread).collect()
}

fn mounts(pod: &Value, container: &Value) -> Vec<(String, String)> {
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
