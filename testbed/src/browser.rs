//! A real Chromium (Debian's), driven by playwright-core, with the accessibility checks of axe-core.
//! Both come from `browser/package-lock.json` into the project's cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::{
    Error,
    cached_artifact::{find_or_make, fingerprint},
};

const FILES: [(&str, &str); 4] = [
    ("package.json", include_str!("../browser/package.json")),
    (
        "package-lock.json",
        include_str!("../browser/package-lock.json"),
    ),
    (".npmrc", include_str!("../browser/.npmrc")),
    ("driver.mjs", include_str!("../browser/driver.mjs")),
];

/// The folder with the driver and its packages; installs them first if they are missing, which
/// takes some 5 s. Blocks.
pub fn find_or_install() -> Result<PathBuf, Error> {
    let texts = FILES.map(|(_, text)| text);
    let folder = format!("browser-{:016x}", fingerprint(&texts));
    find_or_make(&folder, "driver", install_driver)
}

fn install_driver(target: &Path) -> Result<(), Error> {
    eprintln!(
        "installing playwright-core and axe-core (about 5 s, once) into {}",
        target.display()
    );
    let partial = target.with_extension("partial");
    fs::create_dir_all(&partial).map_err(Error::io_error("make", &partial))?;
    for (name, text) in FILES {
        let path = partial.join(name);
        fs::write(&path, text).map_err(Error::io_error("write", &path))?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
    ])
    .current_dir(&partial)
    .stdin(Stdio::null());
    let output = npm.output().map_err(Error::io_error("run", "npm"))?;
    if !output.status.success() {
        return Err(Error::Install {
            what: "the browser's driver (on Debian it needs chromium, nodejs and npm)",
            command: format!("{npm:?}"),
            status: output.status,
            output: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        });
    }
    fs::rename(&partial, target).map_err(Error::io_error("rename", &partial))
}

/// How a page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSettings {
    pub width: u32,
    pub height: u32,
    /// `prefers-color-scheme`.
    pub dark: bool,
    pub scripts: bool,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self {
            width: 1280,
            height: 900,
            dark: false,
            scripts: true,
        }
    }
}

/// What a page costs after garbage was collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeap {
    pub bytes: u64,
    /// Nodes of documents, those without a document too.
    pub dom_nodes: u64,
}

/// A running browser with one page. Dropping it ends both.
#[derive(Debug)]
pub struct Browser {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Browser {
    pub async fn start() -> Result<Self, Error> {
        let folder = tokio::task::spawn_blocking(find_or_install)
            .await
            .expect("installing does not panic")?;
        let mut child = tokio::process::Command::new("node")
            .arg(folder.join("driver.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io_error("run", "node"))?;
        let input = child.stdin.take().expect("asked for above");
        let output = child.stdout.take().expect("asked for above");
        Ok(Self {
            _child: child,
            input,
            output: BufReader::new(output).lines(),
        })
    }

    /// Opens a new page without cookies, and closes the one before.
    pub async fn open_page(&mut self, settings: PageSettings) {
        let PageSettings {
            width,
            height,
            dark,
            scripts,
        } = settings;
        let scheme = if dark { "dark" } else { "light" };
        self.send(json!({"command": "open", "width": width, "height": height, "scheme": scheme, "scripts": scripts})).await;
    }

    /// Returns the status of the answer.
    pub async fn go_to(&mut self, url: &str) -> u64 {
        let status = self.send(json!({"command": "goto", "url": url})).await;
        status.as_u64().unwrap_or_default()
    }

    /// Waits until the element is there.
    pub async fn click_on(&mut self, selector: &str) {
        self.send(json!({"command": "click", "selector": selector}))
            .await;
    }

    pub async fn fill_field(&mut self, selector: &str, text: &str) {
        self.send(json!({"command": "fill", "selector": selector, "text": text}))
            .await;
    }

    /// Presses a key, like `Tab` or `Shift+Tab`.
    pub async fn press_key(&mut self, key: &str) {
        self.send(json!({"command": "press", "key": key})).await;
    }

    pub async fn type_text(&mut self, text: &str) {
        self.send(json!({"command": "type", "text": text})).await;
    }

    /// Waits until the expression is true.
    pub async fn wait_until(&mut self, script: &str) {
        self.send(json!({"command": "wait", "script": script}))
            .await;
    }

    pub async fn evaluate_script(&mut self, script: &str) -> Value {
        self.send(json!({"command": "evaluate", "script": script}))
            .await
    }

    /// The text as it is shown.
    pub async fn read_text(&mut self, selector: &str) -> String {
        let text = self
            .send(json!({"command": "text", "selector": selector}))
            .await;
        text.as_str().unwrap_or_default().to_owned()
    }

    pub async fn list_cookies(&mut self) -> Value {
        self.send(json!({"command": "cookies"})).await
    }

    /// Errors of scripts, refusals of the page's policy, and dialogs since the last call.
    pub async fn take_complaints(&mut self) -> Vec<String> {
        let complaints = self.send(json!({"command": "complaints"})).await;
        string_list(&complaints)
    }

    /// Violations of WCAG 2.2 AA and of axe's best practices.
    pub async fn find_accessibility_violations(&mut self) -> Vec<String> {
        let violations = self.send(json!({"command": "violations"})).await;
        string_list(&violations)
    }

    pub async fn measure_heap(&mut self) -> PageHeap {
        let heap = self.send(json!({"command": "heap"})).await;
        let number = |name: &str| heap[name].as_u64().unwrap_or_default();
        PageHeap {
            bytes: number("usedSize"),
            dom_nodes: number("nodes"),
        }
    }

    pub async fn take_screenshot(&mut self, path: &Path) {
        self.send(json!({"command": "screenshot", "path": path.display().to_string()}))
            .await;
    }

    /// # Panics
    /// If the command fails: the caller is a test.
    async fn send(&mut self, command: Value) -> Value {
        let line = format!("{command}\n");
        self.input
            .write_all(line.as_bytes())
            .await
            .expect("the driver reads");
        let answer = self.output.next_line().await.expect("the driver answers");
        let answer = answer.unwrap_or_else(|| panic!("the driver ended at {command}"));
        let mut answer: Value = serde_json::from_str(&answer).expect("the driver answers in JSON");
        if let Some(error) = answer.get("error") {
            panic!("{command}: {error}");
        }
        answer["ok"].take()
    }
}

fn string_list(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_come_from_whichever_registry_npm_uses() {
        let lock: Value = serde_json::from_str(FILES[1].1).expect("it is JSON");
        let packages = lock["packages"].as_object().expect("it lists packages");
        assert!(packages.len() > 2);
        for (name, package) in packages {
            assert!(package.get("resolved").is_none(), "{name} names a host");
        }
    }
}
