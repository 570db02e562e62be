//! Reads RebootPolicies from files, with the line of each problem.

use std::io::Read as _;
use std::path::Path;

use dogwatch_api::reboot_policy::{API_VERSION, KIND};
use dogwatch_core::policy::Policy;
use dogwatch_k8s::policy::convert_policy;
use serde::Serialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::located_yaml::{LocatedValue, line_of_path};
use crate::exit::{CliExitCode, CommandFailure};

/// Standard input as a file's name.
const STANDARD_INPUT: &str = "-";

#[derive(Debug)]
pub struct PolicyInFile {
    /// As the person named it.
    pub file: String,
    /// Of the object's first line.
    pub line: u64,
    pub policy: Policy,
    /// The zone of its first window, for times that people read.
    pub time_zone: Option<String>,
    pub problems: Vec<PolicyProblem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyProblem {
    pub file: String,
    pub line: u64,
    /// Begins with the path of the field.
    pub message: String,
}

/// What the files hold.
#[derive(Debug, Default)]
pub struct PolicyFiles {
    pub policies: Vec<PolicyInFile>,
    /// Problems that belong to no policy.
    pub problems: Vec<PolicyProblem>,
    /// How many objects of other kinds there are.
    pub others: usize,
}

pub fn read_policy_files(files: &[impl AsRef<Path>]) -> Result<PolicyFiles, CommandFailure> {
    let mut found = PolicyFiles::default();
    for file in files {
        let file = file.as_ref();
        let text = read_text(file).map_err(|error| {
            let text = format!("failed to read {}: {error}", file.display());
            CommandFailure::new(CliExitCode::Usage, text)
        })?;
        found.add_text(&file.display().to_string(), &text);
    }
    Ok(found)
}

fn read_text(file: &Path) -> std::io::Result<String> {
    if file.as_os_str() != STANDARD_INPUT {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

impl PolicyFiles {
    pub fn add_text(&mut self, file: &str, text: &str) {
        let documents = serde_saphyr::from_multiple::<Spanned<LocatedValue>>(text);
        let documents = match documents {
            Ok(documents) => documents,
            Err(error) => {
                let line = error.location().map_or(1, |location| location.line());
                let message = first_line(&error.to_string());
                self.add_problem(file, line, message);
                return;
            }
        };
        for document in &documents {
            match document.value.find_field("items").map(|items| &items.value) {
                Some(LocatedValue::List(items)) => {
                    for item in items {
                        self.add_object(file, item);
                    }
                }
                Some(LocatedValue::Scalar(_) | LocatedValue::Object(_)) | None => {
                    self.add_object(file, document);
                }
            }
        }
    }

    fn add_problem(&mut self, file: &str, line: u64, message: String) {
        let file = file.to_owned();
        self.problems.push(PolicyProblem {
            file,
            line,
            message,
        });
    }

    fn add_object(&mut self, file: &str, located: &Spanned<LocatedValue>) {
        let object = located.value.to_json();
        if object.is_null() {
            return;
        }
        if object["kind"] != KIND {
            self.others += 1;
            return;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let policy = convert_policy(name, &object["spec"]);
        let problems = api_version_problem(&object).into_iter();
        let problems = problems.chain(policy.problems.iter().cloned());
        let problem = |message: String| PolicyProblem {
            file: file.to_owned(),
            line: line_of_path(located, &path_of_problem(&message)),
            message,
        };
        self.policies.push(PolicyInFile {
            file: file.to_owned(),
            line: located.referenced.line(),
            time_zone: first_time_zone(&object),
            problems: problems.map(problem).collect(),
            policy,
        });
    }
}

fn api_version_problem(object: &Value) -> Option<String> {
    let version = &object["apiVersion"];
    (version != API_VERSION).then(|| {
        let version = version.as_str().unwrap_or("nothing");
        format!("apiVersion: {version:?} is not {API_VERSION}")
    })
}

fn first_time_zone(object: &Value) -> Option<String> {
    let zone = &object["spec"]["windows"][0]["timeZone"];
    zone.as_str().map(str::to_owned)
}

/// `spec.windows[0].excludedDates` of `spec.windows[0]: excludedDates: "x" is not a date`.
fn path_of_problem(message: &str) -> String {
    let is_path = |part: &&str| !part.is_empty() && !part.contains([' ', '"', '`']);
    let mut parts: Vec<&str> = message.split(": ").collect();
    // The last part is the sentence.
    parts.pop();
    let path = parts.into_iter().take_while(is_path);
    path.collect::<Vec<_>>().join(".")
}

/// Errors of the parser draw the place below their first line.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
