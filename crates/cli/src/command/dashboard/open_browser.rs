//! Opens the page in the person's browser.

use std::process::{Command, Stdio};

/// `BROWSER` names a program; otherwise the desktop decides.
pub fn open_in_browser(url: &str) -> Result<(), String> {
    let named = std::env::var("BROWSER").ok();
    let named = named.filter(|program| !program.is_empty());
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let program = match named {
        Some(program) => program,
        None if cfg!(target_os = "macos") => "open".to_owned(),
        None if has_display => "xdg-open".to_owned(),
        None => return Err("this session has no display".to_owned()),
    };
    let started = Command::new(&program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(mut child) => {
            // Whoever waits for it: a browser may run for days, and must not stay a zombie.
            std::thread::spawn(move || child.wait());
            Ok(())
        }
        Err(error) => Err(format!("{program} cannot be started: {error}")),
    }
}
