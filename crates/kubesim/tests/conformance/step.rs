//! The steps of a case.

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;

use super::differences_1_32::common_part;
use super::servers::{AGENT, Answer};

pub const MERGE: &str = "application/merge-patch+json";
pub const JSON: &str = "application/json-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
pub const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// One request and the expectations on its answer.
///
/// `{ns}` in a path or a body is the case's namespace, `{x}` what an earlier step kept as `x`.
#[derive(Debug, Clone)]
pub struct Step {
    method: Method,
    path: String,
    content_type: &'static str,
    accept: &'static str,
    body: Option<Value>,
    code: u16,
    has: Vec<(&'static str, Value)>,
    lacks: Vec<&'static str>,
    says: Vec<&'static str>,
    keeps: Vec<(&'static str, &'static str)>,
    /// The step is sent at once and its answer read at the end of the case: a watch that sees the
    /// later steps.
    pub open: bool,
    /// The step is repeated until it is served: a definition takes effect some time after its
    /// creation.
    pub until_served: bool,
    /// The answer is checked against the expectations but not compared with the other server's.
    pub apart: bool,
}

fn step(method: Method, path: impl Into<String>, code: u16) -> Step {
    Step {
        method,
        path: path.into(),
        content_type: "application/json",
        accept: "application/json",
        body: None,
        code,
        has: Vec::new(),
        lacks: Vec::new(),
        says: Vec::new(),
        keeps: Vec::new(),
        open: false,
        until_served: false,
        apart: false,
    }
}

pub fn get(path: impl Into<String>) -> Step {
    step(Method::GET, path, 200)
}

pub fn post(path: impl Into<String>, body: Value) -> Step {
    step(Method::POST, path, 201).with(body)
}

pub fn put(path: impl Into<String>, body: Value) -> Step {
    step(Method::PUT, path, 200).with(body)
}

pub fn delete(path: impl Into<String>) -> Step {
    step(Method::DELETE, path, 200)
}

pub fn patch(content_type: &'static str, path: impl Into<String>, body: Value) -> Step {
    let mut step = step(Method::PATCH, path, 200).with(body);
    step.content_type = content_type;
    step
}

pub fn merge(path: impl Into<String>, body: Value) -> Step {
    patch(MERGE, path, body)
}

pub fn apply(manager: &str, path: &str, body: Value) -> Step {
    let and = if path.contains('?') { '&' } else { '?' };
    patch(APPLY, format!("{path}{and}fieldManager={manager}"), body)
}

impl Step {
    pub fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Sets the `Accept` header.
    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub fn content_type(mut self, content_type: &'static str) -> Self {
        self.content_type = content_type;
        self
    }

    /// Expects this status code.
    pub fn is(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    /// Expects this value at this JSON pointer.
    pub fn has(mut self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.has.push((pointer, value.into()));
        self
    }

    /// Expects nothing at this JSON pointer.
    pub fn lacks(mut self, pointer: &'static str) -> Self {
        self.lacks.push(pointer);
        self
    }

    /// Expects the Status' message to contain this text.
    pub fn says(mut self, fragment: &'static str) -> Self {
        self.says.push(fragment);
        self
    }

    /// Keeps the value at this JSON pointer for later steps.
    pub fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.keeps.push((name, pointer));
        self
    }

    /// Keeps the request open during the later steps.
    pub fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// Repeats the request until the path is served.
    pub fn until_served(mut self) -> Self {
        self.until_served = true;
        self
    }

    /// Does not compare the answer: it shows the progress of something asynchronous.
    pub fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    pub fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The request, with the kept values filled in.
    pub fn request(&self, kept: &Kept) -> http::Request<Vec<u8>> {
        let path = kept.fill(&self.path).replace(' ', "%20");
        let body = self.body.clone().map(|mut body| {
            kept.fill_in(&mut body);
            body.to_string().into_bytes()
        });
        let request = http::Request::builder().method(&self.method).uri(path);
        let request = request.header("user-agent", AGENT);
        let request = request.header("accept", self.accept);
        let request = request.header("content-type", self.content_type);
        request.body(body.unwrap_or_default()).unwrap()
    }

    /// The failed expectations.
    pub fn faults(&self, answer: &Answer, kept: &Kept) -> Vec<String> {
        let mut faults = Vec::new();
        if answer.code != self.code {
            faults.push(format!("{} instead of {}", answer.code, self.code));
        }
        for (pointer, value) in &self.has {
            let mut value = value.clone();
            kept.fill_in(&mut value);
            let found = answer.body.pointer(pointer);
            if found != Some(&value) {
                faults.push(format!("{found:?} instead of {value} at {pointer}"));
            }
        }
        for pointer in &self.lacks {
            if let Some(found) = answer.body.pointer(pointer) {
                faults.push(format!("{found} at {pointer}, where nothing should be"));
            }
        }
        let message = answer.body["message"].as_str().unwrap_or_default();
        for fragment in &self.says {
            let fragment = kept.fill(fragment);
            if !message.contains(common_part(&fragment)) {
                faults.push(format!("message does not say {fragment:?}"));
            }
        }
        faults
    }

    /// Keeps the values that later steps need.
    pub fn remember(&self, answer: &Answer, kept: &mut Kept) {
        for (name, pointer) in &self.keeps {
            let found = answer.body.pointer(pointer).and_then(Value::as_str);
            let found = found.unwrap_or_else(|| panic!("nothing to keep at {pointer}: {answer:?}"));
            kept.put(name, found);
        }
    }
}

/// Values kept from earlier answers.
#[derive(Debug, Default)]
pub struct Kept(BTreeMap<String, String>);

impl Kept {
    pub fn put(&mut self, name: &str, value: &str) {
        self.0.insert(format!("{{{name}}}"), value.to_owned());
    }

    fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in &self.0 {
            out = out.replace(name, value);
        }
        out
    }

    fn fill_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.fill(text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.fill_in(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.fill_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
