//! What a real API server makes of a kind's definition.

use dogwatch_testbed::shared;
use kube::Client;
use serde_json::{Value, json};

/// A spec, the field that is named when it is refused, and what is said.
pub type Refused = (&'static str, &'static str, &'static str);

/// A kind as the shared server is asked about it.
pub struct Kind {
    /// `apiVersion` and `kind`.
    pub api: (&'static str, &'static str),
    /// Where its objects are, in a namespace or in none.
    pub path: &'static str,
}

impl Kind {
    /// Has this definition on the shared server.
    pub async fn install(&self, definition: &Value) {
        let kind = definition["metadata"]["name"].as_str().unwrap();
        let (manifest, plane) = (definition.to_string(), shared().await);
        plane.install(&manifest, &[kind]).await.unwrap();
    }

    /// Asks whether it would be taken; nothing is stored. What is unknown is refused as kubectl has it.
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

    /// Sends it to the kind's path with this at its end. What it answers, or what is said against it.
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

    /// All of these are refused as is said, and they break every rule of the definition that has words of its own.
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

/// What the rules say, wherever they stand in a schema.
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
