//! Functions and types, found line by line in text that rustfmt has formatted.

/// The name of the function that begins on this line.
pub fn function_name(line: &str) -> Option<&str> {
    let mut code = line.trim_start();
    for qualifier in ["pub ", "const ", "async ", "unsafe "] {
        code = strip_visibility(code);
        code = code.strip_prefix(qualifier).unwrap_or(code);
    }
    identifier(code.strip_prefix("fn ")?)
}

/// The name of the struct, enum, trait or top-level type alias that begins on this line.
pub fn type_name(line: &str) -> Option<&str> {
    let is_nested = line.starts_with(' ');
    let code = strip_visibility(line.trim_start());
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let keyword = |word| code.strip_prefix(word);
    let rest = keyword("struct ")
        .or_else(|| keyword("enum "))
        .or_else(|| keyword("trait "))
        .or_else(|| keyword("type ").filter(|_| !is_nested))?;
    identifier(rest)
}

/// `pub(crate) fn` → `fn`.
fn strip_visibility(code: &str) -> &str {
    let restricted = code
        .strip_prefix("pub(")
        .and_then(|rest| rest.split_once(") "));
    restricted.map_or(code, |(_, rest)| rest)
}

fn identifier(text: &str) -> Option<&str> {
    let end = text
        .find(|character: char| !character.is_alphanumeric() && character != '_')
        .unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

pub fn is_one_word_function(name: &str) -> bool {
    !name.trim_matches('_').contains('_')
}

/// `Lease` is one word, `LeaseView` and `HTTPServer` are two.
pub fn is_one_word_type(name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    let begins_word = |at: usize| {
        letters[at].is_uppercase()
            && (at == 0
                || !letters[at - 1].is_uppercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()))
    };
    (0..letters.len()).filter(|at| begins_word(*at)).count() <= 1
}

/// rustfmt closes a function with a brace in the column where it began. One without a body ends at once.
pub fn function_length(lines: &[&str]) -> usize {
    let first = lines[0];
    let indent = &first[..first.len() - first.trim_start().len()];
    let closing = format!("{indent}}}");
    let body = lines
        .iter()
        .position(|line| line.ends_with('{') || line.ends_with(['}', ';']));
    match body.map(|at| lines[at]) {
        Some(line) if line.ends_with('{') => lines
            .iter()
            .position(|line| *line == closing)
            .map_or(1, |end| end + 1),
        Some(_) | None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_types_are_found_with_every_qualifier() {
        for (line, expected) in [
            ("fn decide(", Some("decide")),
            ("    pub(crate) const fn read_it<T>(", Some("read_it")),
            ("pub async unsafe fn x() {}", Some("x")),
            ("    let fn_name = 1;", None),
            ("/// fn no()", None),
        ] {
            assert_eq!(function_name(line), expected, "{line}");
        }
        for (line, expected) in [
            ("pub struct LeaseView<'a> {", Some("LeaseView")),
            ("pub(super) enum X {", Some("X")),
            ("pub(super) trait Domain: Send {", Some("Domain")),
            ("    type Item = u8;", None),
            ("type Short = u8;", Some("Short")),
        ] {
            assert_eq!(type_name(line), expected, "{line}");
        }
    }

    #[test]
    fn words_of_a_type_are_counted_by_their_capitals() {
        for (name, one) in [("Lease", true), ("LeaseView", false), ("HTTPServer", false)] {
            assert_eq!(is_one_word_type(name), one, "{name}");
        }
        assert!(is_one_word_function("_read") && !is_one_word_function("read_lease"));
    }
}
