//! What a package's scripts do: tell systemd. A service is never enabled or started by its installation, because it has no
//! kubeconfig yet; an update restarts one that runs.

/// In `sh`, with the unit's name for `UNIT`.
const RELOAD: &str = "systemctl daemon-reload || true";
const RESTART: &str = "systemctl try-restart UNIT || true";
const DISABLE: &str = "systemctl disable --now UNIT || true";

/// Debian's scripts by name. `DPKG_ROOT` is set when the system is not the one that runs.
pub fn debian_scripts(unit: &str) -> [(&'static str, String); 3] {
    let script = |body: &str| {
        let text = format!(
            "#!/bin/sh\nset -e\nif [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then\n{body}\nfi\n"
        );
        text.replace("UNIT", unit)
    };
    [
        (
            "postinst",
            script(&format!(
                "    {RELOAD}\n    if [ \"$1\" = configure ] && [ -n \"$2\" ]; then {RESTART}; fi"
            )),
        ),
        (
            "prerm",
            script(&format!("    if [ \"$1\" = remove ]; then {DISABLE}; fi")),
        ),
        ("postrm", script(&format!("    {RELOAD}"))),
    ]
}

/// The scripts of an rpm. They are told how many versions of the package will be there.
pub struct RedHatScripts {
    pub after_install: String,
    pub before_removal: String,
    pub after_removal: String,
}

pub fn red_hat_scripts(unit: &str) -> RedHatScripts {
    let script = |body: &str| {
        let text = format!("if [ -d /run/systemd/system ]; then\n{body}\nfi\n");
        text.replace("UNIT", unit)
    };
    RedHatScripts {
        after_install: script(&format!(
            "    {RELOAD}\n    if [ \"$1\" -gt 1 ]; then {RESTART}; fi"
        )),
        before_removal: script(&format!("    if [ \"$1\" -eq 0 ]; then {DISABLE}; fi")),
        after_removal: script(&format!("    {RELOAD}")),
    }
}
