//! Tests of a kind's definition on a real API server.

use dogwatch_testbed::shared_control_plane;
use kube::Client;
use serde_json::{Value, json};

/// A spec, the field that its refusal names, and a part of the message.
pub type Refused = (&'static str, &'static str, &'static str);

/// A kind on the shared server.
pub struct Kind {
    /// `apiVersion` and `kind`.
    pub api: (&'static str, &'static str),
    /// The API path of its objects, with or without a namespace.
    pub path: &'static str,
}

impl Kind {
    /// Installs this definition on the shared server.
    pub async fn install(&self, definition: &Value) {
        let kind = definition["metadata"]["name"].as_str().unwrap();
        let (manifest, plane) = (definition.to_string(), shared_control_plane().await);
        plane.install_manifests(&manifest, &[kind]).await.unwrap();
    }

    /// Sends a dry run. Unknown fields are refused, as with kubectl.
    pub async fn admitted(
        &self,
        client: &Client,
        name: &str,
        spec: &Value,
    ) -> Result<Value, String> {
        let path = "?dryRun=All&fieldValidation=Strict";
        self.send(client, "POST", path, &self.object(name, spec))
            .await
    }

    pub fn object(&self, name: &str, spec: &Value) -> Value {
        let (version, kind) = self.api;
        json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name }, "spec": spec })
    }

    /// Sends the object to the kind's path with this suffix. Returns the answer or the refusal.
    pub async fn send(
        &self,
        client: &Client,
        method: &str,
        end: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let media_type = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let path = format!("{}{end}", self.path);
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", media_type);
        let request = request.body(body.to_string().into_bytes()).unwrap();
        match client.request(request).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(status.message.clone()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Checks that all these specs are refused as stated, and that they violate every rule of the
    /// definition that has a message.
    pub async fn refuses(
        &self,
        client: &Client,
        name: &str,
        refused: &[Refused],
        definition: &Value,
    ) {
        let (mut wrong, mut said) = (Vec::new(), String::new());
        for (spec, field, says) in refused {
            let asked = serde_json::from_str(spec).unwrap();
            match self.admitted(client, name, &asked).await {
                Err(message) if message.contains(field) && message.contains(says) => {
                    said += &message;
                }
                Err(message) => wrong.push(format!("{spec} says: {message}")),
                Ok(_) => wrong.push(format!("{spec} is taken")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut unsaid = messages(&schema["properties"]["spec"]);
        unsaid.retain(|message| !said.contains(message));
        assert!(unsaid.is_empty(), "no case above breaks: {unsaid:?}");
    }
}

/// The messages of the rules, anywhere in a schema.
fn messages(schema: &Value) -> Vec<&str> {
    let own = schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten();
    let mut found: Vec<&str> = own.filter_map(|rule| rule["message"].as_str()).collect();
    let properties = schema["properties"].as_object().into_iter();
    let properties = properties.flat_map(|parts| parts.values());
    let others = ["items", "additionalProperties"]
        .iter()
        .filter_map(|part| schema.get(part));
    for part in properties.chain(others) {
        found.extend(messages(part));
    }
    found
}
