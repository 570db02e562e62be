//! Runs the commands of `docs/learn.md` against a demo, with the real kubectl, and compares what
//! they print with the page: a page that is outdated fails.
//!
//! The first and the last line of each output must be those of the page, but for numbers, times,
//! durations and names of objects. What lies between depends on the moment: which events a command
//! has time to print, and on which node each pod runs. With `DOGWATCH_WRITE_LEARN` set, the outputs
//! on the page are replaced by the present ones.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod demo_serving;

use std::path::{Path, PathBuf};
use std::process::Command;

use demo_serving::{ServingDemo, kubectl_program};

#[test]
fn the_commands_of_the_page_print_what_the_page_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/learn.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut demo = ServingDemo::start_demo(&["--speed", "8"]);
    demo.read_until("the cluster keeps running");
    let shell = PageShell::beside_demo(&demo);
    let (mut written, mut differences) = (String::new(), Vec::new());
    for part in split_page(&page) {
        match part {
            PagePart::Text(text) => written.push_str(&text),
            PagePart::File { name, text } => {
                std::fs::write(shell.folder.join(name), &text).unwrap();
                written.push_str(&text);
            }
            PagePart::Step { command, output } => {
                let found = shell.run_command(&command);
                if shapes_of_ends(&output) != shapes_of_ends(&found) {
                    differences.push(format!(
                        "$ {command}\non the page:\n{output}\nnow:\n{found}"
                    ));
                }
                written.extend(["$ ", &command, "\n", &found]);
            }
        }
    }
    if std::env::var_os("DOGWATCH_WRITE_LEARN").is_some() {
        std::fs::write(&path, written).unwrap();
        return;
    }
    assert!(
        differences.is_empty(),
        "docs/learn.md is outdated (DOGWATCH_WRITE_LEARN=1 rewrites it):\n\n{}",
        differences.join("\n\n")
    );
}

/// Runs commands as a reader of the page does.
struct PageShell {
    folder: PathBuf,
    path: String,
    kubeconfig: String,
    cache: PathBuf,
}

impl PageShell {
    fn beside_demo(demo: &ServingDemo) -> Self {
        let kubeconfig = Path::new(&demo.kubeconfig);
        let folder = kubeconfig.with_file_name("page");
        std::fs::create_dir_all(&folder).unwrap();
        let programs = [
            Path::new(env!("CARGO_BIN_EXE_dogwatch")).to_owned(),
            kubectl_program(),
        ];
        let folders = programs.map(|program| program.parent().unwrap().display().to_string());
        Self {
            path: format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap()),
            kubeconfig: demo.kubeconfig.clone(),
            cache: demo.kubectl_cache(),
            folder,
        }
    }

    /// Standard output and standard error, as a terminal shows them.
    fn run_command(&self, command: &str) -> String {
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(&self.folder)
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache)
            .env("USER", "you")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(str::trim_end);
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

/// A part of the page.
#[derive(Debug, PartialEq, Eq)]
enum PagePart {
    Text(String),
    /// A block that begins with `# NAME.yaml` is a file.
    File {
        name: String,
        text: String,
    },
    /// A command in a `console` block, and what it prints.
    Step {
        command: String,
        output: String,
    },
}

fn split_page(page: &str) -> Vec<PagePart> {
    let mut parts = Vec::new();
    let mut block = "";
    for line in page.lines() {
        let whole = format!("{line}\n");
        if let Some(info) = line.strip_prefix("```") {
            block = if block.is_empty() { info } else { "" };
            parts.push(PagePart::Text(whole));
            continue;
        }
        let command = line.strip_prefix("$ ").filter(|_| block == "console");
        let file = line.strip_prefix("# ").filter(|name| {
            block == "yaml" && Path::new(name).extension().is_some_and(|it| it == "yaml")
        });
        match (command, file, parts.last_mut()) {
            (Some(command), _, _) => parts.push(PagePart::Step {
                command: command.to_owned(),
                output: String::new(),
            }),
            (None, Some(name), _) => parts.push(PagePart::File {
                name: name.to_owned(),
                text: whole,
            }),
            (None, None, Some(PagePart::Step { output, .. })) => output.push_str(&whole),
            (None, None, Some(PagePart::File { text, .. })) => text.push_str(&whole),
            (None, None, _) => parts.push(PagePart::Text(whole)),
        }
    }
    parts
}

/// The first and the last line without what may differ between two runs.
fn shapes_of_ends(text: &str) -> [Option<String>; 2] {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    [lines.next(), lines.next_back()].map(|line| line.map(shape_of_line))
}

/// Every number becomes `#`, every duration `#s`, and blanks are single.
fn shape_of_line(line: &str) -> String {
    let words = line.split_whitespace().map(shape_of_word);
    words.collect::<Vec<_>>().join(" ")
}

fn shape_of_word(word: &str) -> String {
    // Like default/web-6cd75ce1ea-555cl.
    if let Some((kind, _)) = word.split_once('/') {
        return format!("{kind}/…");
    }
    let mut shape = String::new();
    for letter in word.chars() {
        match letter {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' if shape.ends_with("#.") => drop(shape.pop()),
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    // Like 1m20s, 90s or 250ms.
    let mut duration = shape.clone();
    for unit in ["#ms", "#d", "#h", "#m", "#s"] {
        duration = duration.replace(unit, "");
    }
    let rest = duration.trim_matches(|letter: char| letter.is_ascii_punctuation());
    if shape.contains('#') && rest.is_empty() && !duration.contains('#') {
        return format!("#s{duration}");
    }
    shape
}

#[test]
fn a_page_is_split_into_files_commands_and_text() {
    let page = "Hello\n```yaml\n# a.yaml\nx: 1\n```\n```console\n$ one\nout\n$ two\n```\nEnd\n";
    let parts = split_page(page);
    let step = |command: &str, output: &str| PagePart::Step {
        command: command.into(),
        output: output.into(),
    };
    assert_eq!(
        parts[2],
        PagePart::File {
            name: "a.yaml".into(),
            text: "# a.yaml\nx: 1\n".into()
        }
    );
    assert_eq!(parts[5], step("one", "out\n"));
    assert_eq!(parts[6], step("two", ""));
}

#[test]
fn only_numbers_times_and_durations_may_differ() {
    for (one, other) in [
        ("n1  Ready  5s", "n2 Ready  1m20s"),
        ("done 12.5 % (3s)", "done 7 % (250ms)"),
        ("at 2026-12-24T03:00:00Z", "at 2027-01-02T13:05:00Z"),
    ] {
        assert_eq!(shape_of_line(one), shape_of_line(other), "{one}");
    }
    for (one, other) in [("n1 Ready", "n1 NotReady"), ("5s", "<none>")] {
        assert_ne!(shape_of_line(one), shape_of_line(other), "{one}");
    }
    let [first, last] = shapes_of_ends("node/n1 begins\nand goes on\n\nnode/n1 ends\n");
    assert_eq!(first.as_deref(), Some("node/… begins"));
    assert_eq!(last.as_deref(), Some("node/… ends"));
}
