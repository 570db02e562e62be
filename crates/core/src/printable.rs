//! Texts of others, made fit for one line of a message or a terminal. Pure.

/// Longer texts are cut here, in characters.
const LONGEST_TEXT: usize = 500;

/// Whether a character could move a terminal's cursor, begin a new line of a log, or turn the
/// direction of the text around it.
pub fn is_unprintable(c: char) -> bool {
    let turns_direction = matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || turns_direction
}

/// The text on one line: a space for each unprintable character.
pub fn printable_text(text: &str) -> String {
    let printable = |c: char| if is_unprintable(c) { ' ' } else { c };
    text.chars().map(printable).collect()
}

/// Replaces unprintable characters by spaces, and cuts what is too long.
///
/// A message about what a person or another program wrote quotes it, and it may hold line breaks.
pub fn one_line(text: &str) -> String {
    clip_text(text, LONGEST_TEXT)
}

/// The first characters as printable text; an ellipsis marks what is cut off.
pub fn clip_text(text: &str, longest: usize) -> String {
    let first: String = text.chars().take(longest).collect();
    let mut clipped = printable_text(&first);
    if text.chars().nth(longest).is_some() {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_many_lines_becomes_one() {
        assert_eq!(one_line("a\nb\u{7}c"), "a b c");
        assert_eq!(one_line("as it is"), "as it is");
        assert_eq!(printable_text("a\u{1b}[2J\nb\u{202e}c"), "a [2J b c");
    }

    #[test]
    fn a_long_text_ends_with_an_ellipsis() {
        let line = one_line(&"é".repeat(LONGEST_TEXT + 1));
        assert_eq!(line.chars().count(), LONGEST_TEXT + 1);
        assert!(line.ends_with("é…"));
    }
}
