//! House rules that no other tool knows: nothing of a machine is left in the tree, and what is long is named.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{
    figures::{LONG_FILE_LINES, LONG_FUNCTION_LINES, function_length, function_name},
    source_tree,
};

/// What betrays the machine it was written on, or that somebody was not done. In pieces, so that this file passes.
const LEFTOVERS: [&str; 7] = [
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "work/"),
    concat!("/tmp", "/t/"),
    concat!("FIX", "ME"),
    concat!("TO", "DO:"),
    concat!("XX", "X:"),
];

/// Fails on leftovers; reports what is long.
pub fn check_house_rules() -> Result<String> {
    let mut leftovers = Vec::new();
    let mut long = Vec::new();
    for file in source_tree::tracked_files()? {
        let bytes = fs::read(source_tree::workspace_root().join(&file))
            .with_context(|| format!("failed to read {}", file.display()))?;
        // What is not text has no lines to look at.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        leftovers.extend(find_leftovers(&file, &text));
        if file.extension().is_some_and(|extension| extension == "rs") {
            long.extend(find_long_code(&file, &text));
        }
    }
    for line in &long {
        eprintln!("long: {line}");
    }
    let mut found = String::new();
    for line in &leftovers {
        write!(found, "\n  {line}").expect("a String takes all");
    }
    ensure!(
        leftovers.is_empty(),
        "leftovers that must not be committed:{found}"
    );
    Ok(format!(
        "ok ({} files or functions are long, named above)",
        long.len()
    ))
}

fn find_leftovers(file: &Path, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let found = lines.filter_map(|(index, line)| {
        let leftover = LEFTOVERS
            .iter()
            .find(|leftover| line.contains(**leftover))?;
        Some(format!("{}:{}: {leftover}", file.display(), index + 1))
    });
    found.collect()
}

fn find_long_code(file: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LONG_FILE_LINES {
        found.push(format!("{}: {} lines", file.display(), lines.len()));
    }
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let length = function_length(&lines[start..]);
        if length > LONG_FUNCTION_LINES {
            found.push(format!(
                "{}:{}: fn {name}: {length} lines",
                file.display(),
                start + 1
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_path_is_found_with_its_line() {
        let text = format!("fine\nlet path = \"{}x\";\n", LEFTOVERS[0]);
        assert_eq!(find_leftovers(Path::new("a.rs"), &text).len(), 1);
        assert!(find_leftovers(Path::new("a.rs"), &text)[0].starts_with("a.rs:2:"));
    }

    #[test]
    fn a_long_function_is_named_and_a_short_one_is_not() {
        let body = "        call();\n".repeat(LONG_FUNCTION_LINES);
        let text = format!(
            "    pub async fn long<T>(\n        a: T,\n    ) {{\n{body}    }}\n    fn short() {{\n    }}\n"
        );
        let found = find_long_code(Path::new("a.rs"), &text);
        assert_eq!(
            found,
            [format!(
                "a.rs:1: fn long: {} lines",
                LONG_FUNCTION_LINES + 4
            )]
        );
    }
}
