//! The terminal in raw mode, on its alternate screen; restored however the program ends.
//!
//! Written on rustix and tokio instead of crossterm, which reads keys on a thread of its own, handles
//! signals beside tokio, and adds a dozen crates; what is used of a terminal here fits in two files.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Mutex, Once, PoisonError};

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use rustix::fs::OFlags;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::net::unix::pipe;

use super::ansi::{TerminalAbilities, write_changes};
use crate::exit::{CliExitCode, CommandFailure};

/// Alternate screen, no cursor, no wrapping at the right edge.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE_SCREEN: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// What the terminal was like, while it is changed. A panic has to find it.
static SAVED_TERMINAL: Mutex<Option<(File, Termios)>> = Mutex::new(None);
static PANIC_HOOK: Once = Once::new();

/// Fails with the next step if somebody cannot look at the screen or press keys.
pub fn require_terminal() -> Result<(), CommandFailure> {
    if io::stdout().is_terminal() && io::stdin().is_terminal() {
        return Ok(());
    }
    Err(CommandFailure::new(
        CliExitCode::Usage,
        "this command needs a terminal for its output and its keys",
    )
    .with_next_step("without a terminal: dogwatch status --watch"))
}

pub struct TopTerminal {
    device: File,
    /// The same device, read without blocking the runtime.
    input: pipe::Receiver,
    shown: Buffer,
    abilities: TerminalAbilities,
}

impl TopTerminal {
    pub fn open_terminal() -> Result<Self, CommandFailure> {
        let terminal = Self::open_raw_terminal();
        terminal.map_err(|error| {
            CommandFailure::new(
                CliExitCode::Failed,
                format!("failed to open the terminal: {error}"),
            )
            .with_next_step("without a terminal: dogwatch status --watch")
        })
    }

    fn open_raw_terminal() -> io::Result<Self> {
        // Opened anew, so that the shell's standard input stays a blocking one.
        let device = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open("/dev/tty")?;
        // The check that is left out refuses everything but a FIFO; a terminal can be polled too.
        let input = pipe::Receiver::from_file_unchecked(device.try_clone()?)?;
        let saved = tcgetattr(&device)?;
        let mut raw = saved.clone();
        raw.make_raw();
        save_terminal(device.try_clone()?, saved);
        let terminal = Self {
            device,
            input,
            shown: Buffer::empty(Rect::ZERO),
            abilities: TerminalAbilities::of_environment(|name| std::env::var(name).ok()),
        };
        tcsetattr(&terminal.device, OptionalActions::Now, &raw)?;
        write_out(ENTER_SCREEN.as_bytes())?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub fn read_size(&self) -> io::Result<(u16, u16)> {
        let size = tcgetwinsize(&self.device)?;
        Ok((size.ws_col, size.ws_row))
    }

    /// The next bytes that were typed; an error if the terminal has gone.
    pub async fn read_input(&self) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 256];
        loop {
            self.input.readable().await?;
            match self.input.try_read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => return Ok(bytes[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what differs from the picture before.
    pub fn show_buffer(&mut self, next: Buffer) -> io::Result<()> {
        let mut text = String::new();
        if self.shown.area() != next.area() {
            text.push_str("\x1b[0m\x1b[2J");
            self.shown = Buffer::empty(*next.area());
        }
        write_changes(&mut text, &self.shown, &next, self.abilities);
        self.shown = next;
        if text.is_empty() {
            return Ok(());
        }
        write_out(text.as_bytes())
    }

    /// After a change of size the terminal may have moved what it showed.
    pub fn forget_screen(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
    }
}

impl Drop for TopTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn save_terminal(terminal: File, settings: Termios) {
    let mut saved = SAVED_TERMINAL
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    *saved = Some((terminal, settings));
    PANIC_HOOK.call_once(|| {
        let print_panic = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            print_panic(panic);
        }));
    });
}

/// Does nothing the second time. Errors have nobody left to tell: the terminal may have gone.
fn restore_terminal() {
    let mut saved = SAVED_TERMINAL
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some((terminal, settings)) = saved.take() {
        let _ = write_out(LEAVE_SCREEN.as_bytes());
        let _ = tcsetattr(&terminal, OptionalActions::Now, &settings);
    }
}
