//! Fits text into a terminal's cells.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub fn text_width(text: &str) -> usize {
    text.width()
}

/// At most `width` cells; what is cut off is marked with an ellipsis.
pub fn fit_width(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut fitted = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        fitted.push(c);
    }
    if width > 0 {
        fitted.push('…');
    }
    fitted
}

/// Lines of at most `width` cells, broken between words where that is possible. Spaces at the
/// start of the text are kept on its first line, and indent the others.
pub fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    let indent = if indent.len() * 2 > width {
        ""
    } else {
        &indent
    };
    let mut lines = Vec::new();
    let mut line = indent.to_owned();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(line.width() > indent.width());
        if line.width() + gap + word.width() <= width {
            line.push_str(&" ".repeat(gap));
            line.push_str(word);
            continue;
        }
        if line.width() > indent.width() {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
        }
        push_long_word(&mut lines, &mut line, word, width);
    }
    if line.width() > indent.width() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Breaks a word that is wider than a line.
fn push_long_word(lines: &mut Vec<String>, line: &mut String, word: &str, width: usize) {
    let indent = line.clone();
    for c in word.chars() {
        let wide = c.width().unwrap_or(0);
        if line.width() + wide > width && line.width() > indent.width() {
            lines.push(std::mem::replace(line, indent.clone()));
        }
        line.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_off_says_so() {
        assert_eq!(fit_width("waiting", 7), "waiting");
        assert_eq!(fit_width("waiting", 5), "wait…");
        assert_eq!(fit_width("日本語", 4), "日…");
        assert_eq!(fit_width("waiting", 0), "");
    }

    #[test]
    fn lines_break_between_words_and_inside_what_is_too_long() {
        assert_eq!(wrap_text("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap_text("  → wait for it", 8), ["  → wait", "  for it"]);
        assert_eq!(wrap_text("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap_text("", 4), [""]);
        assert_eq!(wrap_text("short", 8), ["short"]);
        assert_eq!(
            wrap_text("a/very/long/path", 6),
            ["a/very", "/long/", "path"]
        );
        let lines = wrap_text("x y/very/long/path z", 6);
        assert_eq!(lines.concat().replace(' ', ""), "xy/very/long/pathz");
        assert!(wrap_text("日本語日本語", 1).len() >= 6);
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let text = "  the quick brown 日本語 fox-jumps-over-a-long-word and more";
        for width in 2..40 {
            for line in wrap_text(text, width) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }
}
