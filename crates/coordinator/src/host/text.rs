//! Bytes from the host, made fit for a condition, an Event and a terminal.

/// How much of a sentinel file, or of a command's output, is kept as the reason shown.
/// Source: specification §2.1.
pub(crate) const REASON_BYTES: usize = 1024;

/// The first [`REASON_BYTES`] as one line: invalid UTF-8 and control characters replaced, so that
/// no file can move a terminal's cursor or break a log line; trimmed.
pub(crate) fn reason(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(REASON_BYTES)];
    let text: String = String::from_utf8_lossy(cut)
        .chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect();
    let mut end = text.len().min(REASON_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    // Half a character at the cut is our doing, not the file's.
    let text = if cut.len() < bytes.len() {
        text.trim_end_matches(char::REPLACEMENT_CHARACTER)
    } else {
        text
    };
    text.trim().to_owned()
}

/// Control characters, and those that turn the direction of text around.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_replaced_and_the_ends_trimmed() {
        assert_eq!(reason(b"  kernel\n\x1b[2Jlibc\0 \n"), "kernel  [2Jlibc");
        assert_eq!(reason("a\u{202e}b".as_bytes()), "a b");
        assert_eq!(reason(b""), "");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(reason(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn a_character_cut_in_half_leaves_no_trace() {
        let mut long = vec![b'x'; REASON_BYTES - 1];
        long.extend_from_slice("é and more".as_bytes());
        assert_eq!(reason(&long), "x".repeat(REASON_BYTES - 1));
        // Nor where what was replaced before it has made room for a whole replacement character.
        let shrunk = format!("\u{202e}{}é and more", "x".repeat(REASON_BYTES - 4));
        assert_eq!(reason(shrunk.as_bytes()), "x".repeat(REASON_BYTES - 4));
    }

    proptest! {
        #[test]
        fn it_is_one_line_of_at_most_a_kibibyte(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let text = reason(&bytes);
            prop_assert!(text.len() <= REASON_BYTES);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
