//! The program in a pseudo-terminal of util-linux's `script`: its keys and what its screen shows.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Generous, because only a failing test waits that long.
const LONG: Duration = Duration::from_mins(2);

/// Runs a program in a terminal; killed on drop.
pub struct PseudoTerminal {
    child: Child,
    keys: ChildStdin,
    written: Receiver<Vec<u8>>,
    screen: TerminalScreen,
    folder: TempDir,
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PseudoTerminal {
    /// Runs this command, with its environment, in a terminal of this many columns and rows.
    pub fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let line = format!(
            "cd '{}'; stty cols {columns} rows {rows}; stty -g >before; tty >name; {}; code=$?; stty -g >after; exit $code",
            folder.path().display(),
            words.join(" "),
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &line])
            .arg("/dev/null")
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` of util-linux starts");
        let keys = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            written,
            screen: TerminalScreen::default(),
            folder,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses the keys and waits until the screen shows this.
    pub fn press_and_see(&mut self, keys: &str, text: &str) -> String {
        self.press(keys);
        self.see(text)
    }

    /// Waits until the screen shows this text, and returns the whole screen.
    pub fn see(&mut self, text: &str) -> String {
        self.see_when(text, |screen| screen.contains(text))
    }

    /// Presses the keys and waits until the screen no longer shows this.
    pub fn press_and_miss(&mut self, keys: &str, text: &str) -> String {
        self.press(keys);
        self.see_when(&format!("no {text}"), |screen| !screen.contains(text))
    }

    /// Waits until the screen, with the rule under its tabs, fills exactly this many columns and rows.
    pub fn see_size(&mut self, columns: u16, rows: u16) -> String {
        let columns = usize::from(columns);
        let what = format!("{columns} columns and {rows} rows");
        self.see_when(&what, |screen| {
            let widths = screen.lines().map(|line| line.chars().count());
            screen.lines().count() == usize::from(rows) && widths.max() == Some(columns)
        })
    }

    fn see_when(&mut self, what: &str, is_seen: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + LONG;
        loop {
            let shown = self.screen.text();
            if is_seen(&shown) {
                return shown;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.written.recv_timeout(left) {
                Ok(bytes) => self.screen.show_bytes(&bytes),
                Err(error) => panic!("the screen does not show {what:?} ({error}):\n{shown}"),
            }
        }
    }

    /// Gives the terminal another size, as the corner of a window does.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let name = std::fs::read_to_string(self.file("name")).unwrap();
        let status = Command::new("stty")
            .args(["-F", name.trim(), "cols", &columns.to_string()])
            .args(["rows", &rows.to_string()])
            .status();
        assert!(status.unwrap().success(), "stty sets the size");
    }

    /// Waits for the program's end: its exit code. The terminal must be as it was before.
    pub fn wait_for_end(mut self) -> i32 {
        while let Ok(bytes) = self.written.recv_timeout(LONG) {
            self.screen.show_bytes(&bytes);
        }
        assert!(!self.screen.is_alternate, "the shell's screen is back");
        assert!(!self.screen.is_cursor_hidden, "the cursor is back");
        let settings = |name| std::fs::read_to_string(self.file(name)).unwrap();
        assert_eq!(settings("before"), settings("after"), "the line settings");
        self.child
            .wait()
            .unwrap()
            .code()
            .expect("it was not killed")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The cells that a terminal would show, as far as `dogwatch top` uses a terminal.
#[derive(Default)]
struct TerminalScreen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    is_alternate: bool,
    is_cursor_hidden: bool,
    /// The begin of a character or sequence whose end has not come yet.
    unfinished: Vec<u8>,
}

impl TerminalScreen {
    /// The lines without blanks at their ends.
    fn text(&self) -> String {
        let lines = self.rows.iter().map(|row| row.iter().collect::<String>());
        lines
            .flat_map(|line| [line.trim_end().to_owned(), "\n".to_owned()])
            .collect()
    }

    fn show_bytes(&mut self, bytes: &[u8]) {
        self.unfinished.extend(bytes);
        let whole = match std::str::from_utf8(&self.unfinished) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.unfinished.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut self.unfinished, rest)).unwrap();
        let mut left = text.as_str();
        while let Some(first) = left.chars().next() {
            if first != '\x1b' {
                self.show_character(first);
                left = &left[first.len_utf8()..];
                continue;
            }
            let is_final = |c: char| c.is_ascii_alphabetic();
            let Some(end) = left.find(is_final) else {
                self.unfinished.splice(..0, left.bytes());
                return;
            };
            self.obey_sequence(&left[1..=end]);
            left = &left[end + 1..];
        }
    }

    fn show_character(&mut self, character: char) {
        match character {
            '\r' => self.column = 0,
            '\n' => self.row += 1,
            _ => {
                let height = self.rows.len().max(self.row + 1);
                self.rows.resize(height, Vec::new());
                let row = &mut self.rows[self.row];
                row.resize(row.len().max(self.column + 1), ' ');
                row[self.column] = character;
                self.column += 1;
            }
        }
    }

    fn obey_sequence(&mut self, sequence: &str) {
        match sequence {
            "[2J" => self.rows.clear(),
            "[?1049h" => self.is_alternate = true,
            "[?1049l" => self.is_alternate = false,
            "[?25l" => self.is_cursor_hidden = true,
            "[?25h" => self.is_cursor_hidden = false,
            "[?7l" | "[?7h" => {}
            _ if sequence.ends_with('m') => {}
            _ => {
                let place = sequence.strip_prefix('[');
                let place = place.and_then(|text| text.strip_suffix('H'));
                let (row, column) = place
                    .and_then(|text| text.split_once(';'))
                    .unwrap_or_else(|| panic!("a new sequence: {sequence:?}"));
                self.row = row.parse::<usize>().unwrap() - 1;
                self.column = column.parse::<usize>().unwrap() - 1;
            }
        }
    }
}
