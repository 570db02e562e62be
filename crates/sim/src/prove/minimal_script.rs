//! Makes a failing script short: removes lines as long as it still fails.

/// The line after which a script only ends what it began, and says how it must end. Nothing after
/// it is removed.
pub(super) const EPILOGUE: &str = "# Everything comes to its end.";

/// Removes halves, quarters and so on, down to single lines, while `fails` says that what is left
/// still fails in the same way. Lines up to `start` are tried last.
pub fn find_minimal_script(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let position = |wanted: &str| lines.iter().position(|line| line.trim() == wanted);
    let start = position("start").map_or(0, |at| at + 1);
    let end = position(EPILOGUE).unwrap_or(lines.len());
    let join = |setup: &[&str], commands: &[&str]| {
        let mut text = [setup, commands, &lines[end..]].concat().join("\n");
        text.push('\n');
        text
    };
    let setup = &lines[..start];
    let commands = remove_chunks(lines[start..end].to_vec(), |rest| fails(&join(setup, rest)));
    let setup = remove_chunks(setup.to_vec(), |rest| fails(&join(rest, &commands)));
    join(&setup, &commands)
}

fn remove_chunks<'a>(mut lines: Vec<&'a str>, fails: impl Fn(&[&'a str]) -> bool) -> Vec<&'a str> {
    let mut size = lines.len().div_ceil(2);
    while size > 0 {
        let before = lines.len();
        let mut at = 0;
        while at < lines.len() {
            let end = (at + size).min(lines.len());
            let rest = [&lines[..at], &lines[end..]].concat();
            if fails(&rest) {
                lines = rest;
            } else {
                at = end;
            }
        }
        let is_done = size == 1 && lines.len() == before;
        size = if is_done { 0 } else { (size / 2).max(1) };
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_fails_and_no_line_of_it_can_go() {
        let text = format!("cluster\nhost h1\nstart\na\nb\nc\nd\ne\nf\ng\n{EPILOGUE}\nrun 1h\n");
        let needs = |text: &str| {
            let has = |wanted: &&str| text.lines().any(|line| line == *wanted);
            ["start", "b", "f"].iter().all(has)
        };
        let short = find_minimal_script(&text, needs);
        assert_eq!(short, format!("start\nb\nf\n{EPILOGUE}\nrun 1h\n"));
    }
}
