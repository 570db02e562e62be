//! The book that mdbook makes of `docs/`: every page is in its table of contents, and every link of it leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The pages by their path from `docs/`.
type BookPages = BTreeMap<PathBuf, String>;

const CONTENTS: &str = "SUMMARY.md";

fn docs_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read_pages() -> BookPages {
    let mut pages = BookPages::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(docs_folder().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                pages.insert(path, text);
            }
        }
    }
    assert!(pages.len() > 60, "{pages:?}");
    pages
}

/// Without blocks of code, in which nothing is a link or a heading.
fn prose_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn links(text: &str) -> Vec<&str> {
    let lines = prose_lines(text);
    let targets = lines.flat_map(|line| line.split("](").skip(1));
    targets.filter_map(|rest| rest.split(')').next()).collect()
}

/// The anchors of a page as mdbook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings = prose_lines(text).filter(|line| line.starts_with('#'));
    for heading in headings {
        let words = super::without_links(heading.trim_start_matches('#').trim());
        let keep = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
        let anchor: String = words.to_lowercase().chars().filter(keep).collect();
        let anchor = anchor.replace(' ', "-");
        let repeated = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(repeated);
        let free = names.find(|name| !anchors.contains(name)).unwrap();
        anchors.insert(free);
    }
    anchors
}

/// `design/../limits.md` as `limits.md`; nothing for what is outside of the book.
fn resolve_link(page: &Path, link: &str) -> Option<PathBuf> {
    let mut resolved = page.parent().unwrap().to_owned();
    for part in Path::new(link).components() {
        if part == Component::ParentDir {
            if !resolved.pop() {
                return None;
            }
        } else if part != Component::CurDir {
            resolved.push(part);
        }
    }
    Some(resolved)
}

fn find_dead_links(pages: &BookPages) -> Vec<String> {
    let mut dead = Vec::new();
    for (page, text) in pages {
        for link in links(text) {
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => Some(page.clone()),
                path => resolve_link(page, path),
            };
            let is_picture = |target: &PathBuf| {
                target.starts_with("pictures") && docs_folder().join(target).is_file()
            };
            let shows_picture = target.as_ref().is_some_and(is_picture);
            let found = target.and_then(|target| pages.get(&target));
            let is_alive = shows_picture
                || found.is_some_and(|text| anchor.is_empty() || anchors(text).contains(anchor));
            if !is_alive {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    dead
}

#[test]
fn the_table_of_contents_names_every_page_once() {
    let pages = read_pages();
    let contents = &pages[Path::new(CONTENTS)];
    let listed: Vec<PathBuf> = links(contents).into_iter().map(PathBuf::from).collect();
    let mut sorted = listed.clone();
    sorted.sort();
    let all: Vec<PathBuf> = pages
        .into_keys()
        .filter(|page| page != Path::new(CONTENTS))
        .collect();
    assert_eq!(sorted, all, "left: docs/SUMMARY.md; right: the pages");
}

#[test]
fn every_link_of_the_book_leads_to_a_page_and_a_heading_of_the_book() {
    assert_eq!(find_dead_links(&read_pages()), [""; 0]);
}

#[test]
fn a_dead_link_a_dead_anchor_and_a_link_out_of_the_book_are_found() {
    let page = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let pages = BookPages::from([
        page(
            "a.md",
            "# A\n[1](b.md) [2](d/c.md#its-name) [3](#a) [4](gone.md) [5](b.md#gone)\n```\n[6](gone.md)\n```\n",
        ),
        page("b.md", "# B\n"),
        page(
            "d/c.md",
            "## Its `name`\n[7](../b.md) [8](../../README.md) [9](https://example.com)\n",
        ),
    ]);
    let dead = [
        "a.md: gone.md",
        "a.md: b.md#gone",
        "d/c.md: ../../README.md",
    ];
    assert_eq!(find_dead_links(&pages), dead);
}
