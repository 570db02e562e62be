//! Texts of others, made fit for one line of a message. Pure.

/// Longer texts are cut here, in characters.
const LONGEST_TEXT: usize = 500;

/// Replaces control characters by spaces, and cuts what is too long.
///
/// A message about what a person or another program wrote quotes it, and it may hold line breaks.
pub fn one_line(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(LONGEST_TEXT).map(visible).collect();
    if text.chars().nth(LONGEST_TEXT).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_many_lines_becomes_one() {
        assert_eq!(one_line("a\nb\u{7}c"), "a b c");
        assert_eq!(one_line("as it is"), "as it is");
    }

    #[test]
    fn a_long_text_ends_with_an_ellipsis() {
        let line = one_line(&"é".repeat(LONGEST_TEXT + 1));
        assert_eq!(line.chars().count(), LONGEST_TEXT + 1);
        assert!(line.ends_with("é…"));
    }
}
