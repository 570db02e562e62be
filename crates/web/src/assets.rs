//! The files of the page, which are part of the program.

/// One file of the page, as browsers get it.
#[derive(Debug, Clone, Copy)]
pub struct PageFile {
    /// Its path on the server; `/` is the page itself.
    pub path: &'static str,
    pub content_type: &'static str,
    pub content: &'static str,
}

macro_rules! page_file {
    ($path:literal, $file:literal, $content_type:expr) => {
        PageFile {
            path: $path,
            content_type: $content_type,
            content: include_str!(concat!("../page/", $file)),
        }
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

const PAGE_FILES: [PageFile; 14] = [
    page_file!("/", "index.html", crate::response::HTML),
    page_file!("/style.css", "style.css", "text/css; charset=utf-8"),
    page_file!("/icon.svg", "icon.svg", "image/svg+xml"),
    page_file!("/app.js", "app.js", SCRIPT),
    page_file!("/dom.js", "dom.js", SCRIPT),
    page_file!("/format.js", "format.js", SCRIPT),
    page_file!("/feed.js", "feed.js", SCRIPT),
    page_file!("/grid.js", "grid.js", SCRIPT),
    page_file!("/summary.js", "summary.js", SCRIPT),
    page_file!("/timeline.js", "timeline.js", SCRIPT),
    page_file!("/tables.js", "tables.js", SCRIPT),
    page_file!("/detail.js", "detail.js", SCRIPT),
    page_file!("/actions.js", "actions.js", SCRIPT),
    page_file!("/plain.css", "plain.css", "text/css; charset=utf-8"),
];

/// All files of the page.
pub fn list_page_files() -> &'static [PageFile] {
    &PAGE_FILES
}

pub(crate) fn find_page_file(path: &str) -> Option<&'static PageFile> {
    PAGE_FILES.iter().find(|file| file.path == path)
}

/// A number that another content of any file changes: the pictures in the docs say from which page
/// they were made. FNV-1a.
pub fn page_fingerprint() -> u64 {
    PAGE_FILES
        .iter()
        .flat_map(|file| file.path.bytes().chain(file.content.bytes()).chain([0]))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: specification §12.1, "under 100 KB".
    const MAX_PAGE_BYTES: usize = 100_000;

    #[test]
    fn the_whole_page_is_smaller_than_100_kb() {
        let size: usize = PAGE_FILES.iter().map(|file| file.content.len()).sum();
        assert!(size < MAX_PAGE_BYTES, "{size} bytes");
    }

    #[test]
    fn no_file_names_a_foreign_origin_or_makes_markup_of_text() {
        for file in &PAGE_FILES {
            // The namespace of SVG is a name and is not fetched.
            let text = file.content.replace("http://www.w3.org/2000/svg", "");
            for forbidden in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "localStorage.setItem(\"token",
                "style=\"",
                "onclick=",
            ] {
                assert!(!text.contains(forbidden), "{}: {forbidden}", file.path);
            }
        }
    }

    #[test]
    fn every_file_that_a_file_imports_is_served() {
        for file in &PAGE_FILES {
            let imports = file.content.split(" from \"./").skip(1);
            for import in imports {
                let name = import.split('"').next().unwrap_or_default();
                assert!(find_page_file(&format!("/{name}")).is_some(), "{name}");
            }
        }
    }
}
