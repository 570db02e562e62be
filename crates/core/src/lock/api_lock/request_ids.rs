//! Identities of holders and groups, and run ids of requests.

use super::super::{FIELD_MANAGER_LIMIT, HolderId, name_digest};
use crate::name::{GroupName, RunId};

/// The prefix of a request's run id while no client was told that the lock is held.
const UNANSWERED_PREFIX: &str = "api/";
/// The prefix once a client may have been told.
const ANSWERED_PREFIX: &str = "answered/";

impl HolderId {
    /// `api/HOST`; the name is replaced by its hash if the identity would be too long.
    pub fn for_api_host(host: &str) -> Self {
        plain_or_hashed(&format!("api/{host}"), || {
            format!("api/sha256-{}", name_digest(host))
        })
    }

    /// `fleetlock/GROUP/ID`; parts are replaced by hashes if the identity would be too long, or if
    /// it has characters that a field manager or `dogwatch.dev/next` cannot carry.
    pub fn for_fleetlock_client(group: &str, id: &str) -> Self {
        let hash = name_digest(&format!("{group}/{id}"));
        let with_group = || {
            plain_or_hashed(&format!("fleetlock/{group}/sha256-{hash}"), || {
                format!("fleetlock/sha256-{hash}")
            })
        };
        plain_or_hashed(&format!("fleetlock/{group}/{id}"), || {
            with_group().to_string()
        })
    }
}

/// A comma separates the names in `dogwatch.dev/next`, and the API server refuses field managers
/// that are not printable.
fn plain_or_hashed(text: &str, hashed: impl FnOnce() -> String) -> HolderId {
    let printable = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b',');
    let fits = printable && text.len() <= FIELD_MANAGER_LIMIT;
    let text = if fits { text.to_owned() } else { hashed() };
    HolderId::new(text).expect("a hash fits, and is not empty")
}

/// The group for a FleetLock group's name, which is case-sensitive: the name itself if it is a DNS
/// label that names no Lease of another kind, otherwise its hash.
pub fn fleetlock_group(name: &str) -> GroupName {
    let remedy = name == "remedy" || name.starts_with("remedy-");
    match GroupName::new(name) {
        Ok(group) if !remedy => group,
        Ok(_) | Err(_) => GroupName::new(format!("sha256-{}", name_digest(name)))
            .expect("a hash with its prefix is a DNS label"),
    }
}

/// The run id of a process' n-th request: `api/PROCESS/N`.
pub fn request_run_id(process: &str, number: u64) -> RunId {
    RunId::new(format!("{UNANSWERED_PREFIX}{process}/{number}"))
        .expect("a process' name is short and has letters and digits only")
}

/// The id of the same request once its client may have been told that it holds:
/// `answered/PROCESS/N`. An id that is not a request's stays as it is.
pub fn answered_run_id(run: &RunId) -> RunId {
    match run.as_str().strip_prefix(UNANSWERED_PREFIX) {
        Some(rest) => {
            RunId::new(format!("{ANSWERED_PREFIX}{rest}")).unwrap_or_else(|_| run.clone())
        }
        None => run.clone(),
    }
}

/// Whether a client may have been told that this run holds.
pub fn is_run_answered(run: &RunId) -> bool {
    run.as_str().starts_with(ANSWERED_PREFIX)
}

/// The process that serves this request, in either form of the id; `None` for a coordinator's run.
pub fn process_of_request(run: &RunId) -> Option<&str> {
    let text = run.as_str();
    let rest = text
        .strip_prefix(UNANSWERED_PREFIX)
        .or_else(|| text.strip_prefix(ANSWERED_PREFIX))?;
    Some(rest.split_once('/').map_or(rest, |(process, _)| process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_plainly_where_it_fits() {
        assert_eq!(
            HolderId::for_api_host("web-1.example").as_str(),
            "api/web-1.example"
        );
        let id = HolderId::for_fleetlock_client("Workers.EU", "978a225b");
        assert_eq!(id.as_str(), "fleetlock/Workers.EU/978a225b");
    }

    #[test]
    fn what_no_field_manager_can_be_is_hashed_and_stays_apart() {
        let long = "h".repeat(250);
        let holders = [
            HolderId::for_api_host(&long),
            HolderId::for_api_host(&format!("{long}2")),
            HolderId::for_fleetlock_client("g", &long),
            HolderId::for_fleetlock_client(&long, "i"),
            HolderId::for_fleetlock_client("g", "a,b"),
            HolderId::for_fleetlock_client("g", "a b"),
            HolderId::for_fleetlock_client("g", "ä"),
            HolderId::for_fleetlock_client("g", "a\nb"),
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
        let run = request_run_id("7f3a", 12);
        assert_eq!(run.as_str(), "api/7f3a/12");
        assert_eq!(answered_run_id(&run).as_str(), "answered/7f3a/12");
        assert_eq!(
            answered_run_id(&answered_run_id(&run)),
            answered_run_id(&run)
        );
        assert!(is_run_answered(&answered_run_id(&run)) && !is_run_answered(&run));
        for form in [&run, &answered_run_id(&run)] {
            assert_eq!(process_of_request(form), Some("7f3a"));
        }
        assert_eq!(
            process_of_request(&RunId::new("coordinator/7f3a").unwrap()),
            None
        );
    }
}
