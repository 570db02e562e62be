//! Names: holders, groups, and the run ids of requests.

use super::super::{FIELD_MANAGER_LIMIT, HolderId, digest};
use crate::name::{GroupName, RunId};

/// What the run id of a request begins with while nobody was told that the lock is held.
const UNANSWERED: &str = "api/";
/// What it begins with once somebody was.
const ANSWERED: &str = "answered/";

impl HolderId {
    /// `api/HOST`; the name is replaced by a hash of it where it would pass the limit.
    pub fn api(host: &str) -> Self {
        plain_or(&format!("api/{host}"), || {
            format!("api/sha256-{}", digest(host))
        })
    }

    /// `fleetlock/GROUP/ID`; replaced by hashes where it would pass the limit, or where the id has
    /// characters that a field manager or a call cannot carry.
    pub fn fleetlock(group: &str, id: &str) -> Self {
        let hash = digest(&format!("{group}/{id}"));
        let with_group = || {
            plain_or(&format!("fleetlock/{group}/sha256-{hash}"), || {
                format!("fleetlock/sha256-{hash}")
            })
        };
        plain_or(&format!("fleetlock/{group}/{id}"), || {
            with_group().to_string()
        })
    }
}

/// A comma separates the names of a call, and the API server refuses managers that cannot be
/// printed.
fn plain_or(text: &str, hashed: impl FnOnce() -> String) -> HolderId {
    let printable = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b',');
    let fits = printable && text.len() <= FIELD_MANAGER_LIMIT;
    let text = if fits { text.to_owned() } else { hashed() };
    HolderId::new(text).expect("a hash fits, and is not empty")
}

/// The group of a FleetLock group's name, which is case-sensitive: itself where it is a DNS label
/// that no Lease of another kind is named by, else its hash.
pub fn fleetlock_group(name: &str) -> GroupName {
    let remedy = name == "remedy" || name.starts_with("remedy-");
    match GroupName::new(name) {
        Ok(group) if !remedy => group,
        Ok(_) | Err(_) => GroupName::new(format!("sha256-{}", digest(name)))
            .expect("a hash with its prefix is a DNS label"),
    }
}

/// The run id of a process' n-th request: `api/PROCESS/N`.
pub fn request_run(process: &str, number: u64) -> RunId {
    RunId::new(format!("{UNANSWERED}{process}/{number}"))
        .expect("a process' name is short and has letters and digits only")
}

/// The same request once its client may have been told that it holds: `answered/PROCESS/N`. An id
/// that is none of a request stays as it is.
pub fn answered(run: &RunId) -> RunId {
    match run.as_str().strip_prefix(UNANSWERED) {
        Some(rest) => RunId::new(format!("{ANSWERED}{rest}")).unwrap_or_else(|_| run.clone()),
        None => run.clone(),
    }
}

/// Whether somebody may have been told that this run holds.
pub fn is_answered(run: &RunId) -> bool {
    run.as_str().starts_with(ANSWERED)
}

/// Which process' request this is, in either form; `None` for a coordinator's run.
pub fn request_process(run: &RunId) -> Option<&str> {
    let text = run.as_str();
    let rest = text
        .strip_prefix(UNANSWERED)
        .or_else(|| text.strip_prefix(ANSWERED))?;
    Some(rest.split_once('/').map_or(rest, |(process, _)| process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_plainly_where_it_fits() {
        assert_eq!(HolderId::api("web-1.example").as_str(), "api/web-1.example");
        let id = HolderId::fleetlock("Workers.EU", "978a225b");
        assert_eq!(id.as_str(), "fleetlock/Workers.EU/978a225b");
    }

    #[test]
    fn what_no_field_manager_can_be_is_hashed_and_stays_apart() {
        let long = "h".repeat(250);
        let holders = [
            HolderId::api(&long),
            HolderId::api(&format!("{long}2")),
            HolderId::fleetlock("g", &long),
            HolderId::fleetlock(&long, "i"),
            HolderId::fleetlock("g", "a,b"),
            HolderId::fleetlock("g", "a b"),
            HolderId::fleetlock("g", "ä"),
            HolderId::fleetlock("g", "a\nb"),
        ];
        for (number, holder) in holders.iter().enumerate() {
            assert!(holder.as_str().len() <= FIELD_MANAGER_LIMIT, "{holder}");
            assert!(holder.as_str().is_ascii(), "{holder}");
            assert!(holder.as_str().contains("sha256-"), "{holder}");
            assert!(!holders[..number].contains(holder), "{holder}");
        }
    }

    #[test]
    fn a_fleetlock_group_is_its_name_or_a_hash_that_is_case_sensitive() {
        assert_eq!(fleetlock_group("default").as_str(), "default");
        let hashed = ["Default", "a.b", "remedy", "remedy-n1", &"a".repeat(64)];
        for (number, name) in hashed.iter().enumerate() {
            let group = fleetlock_group(name);
            assert!(group.as_str().starts_with("sha256-"), "{name}: {group}");
            let before = hashed[..number].iter().map(|name| fleetlock_group(name));
            assert!(before.into_iter().all(|other| other != group), "{name}");
        }
    }

    #[test]
    fn a_request_is_known_by_its_process_before_and_after_its_answer() {
        let run = request_run("7f3a", 12);
        assert_eq!(run.as_str(), "api/7f3a/12");
        assert_eq!(answered(&run).as_str(), "answered/7f3a/12");
        assert_eq!(answered(&answered(&run)), answered(&run));
        assert!(is_answered(&answered(&run)) && !is_answered(&run));
        for form in [&run, &answered(&run)] {
            assert_eq!(request_process(form), Some("7f3a"));
        }
        assert_eq!(
            request_process(&RunId::new("coordinator/7f3a").unwrap()),
            None
        );
    }
}
