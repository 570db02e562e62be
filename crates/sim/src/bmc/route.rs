//! Maps a request's method and path to what it asks for.

use http::Method;

use super::fault::FaultScope;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RedfishRoute {
    /// The service root; needs no authentication.
    Root,
    Systems,
    System(String),
    /// The `ActionInfo` document of a system's reset.
    ActionInfo(String),
    Reset(String),
    SessionService,
    /// A login; needs no authentication.
    Login,
    /// A logout, with the session's id.
    Logout(String),
    /// A task's document.
    Task(u64),
    /// A task monitor.
    Monitor(u64),
    /// There is no such resource (404).
    Nothing,
    /// The resource exists but does not accept this method (405).
    NotAllowed,
}

impl RedfishRoute {
    /// Finds the route of a request.
    pub fn of_request(method: &Method, path: &str) -> Self {
        let Some(rest) = path.trim_end_matches('/').strip_prefix("/redfish") else {
            return RedfishRoute::Nothing;
        };
        let words: Vec<_> = rest.split('/').skip(1).collect();
        let route = parse_route(method, &words);
        let reads = || parse_route(&Method::GET, &words).or(parse_route(&Method::POST, &words));
        match route {
            Some(route) => route,
            None if reads().is_some() => RedfishRoute::NotAllowed,
            None => RedfishRoute::Nothing,
        }
    }

    /// The scope under which faults affect this route.
    pub fn fault_scope(&self) -> FaultScope {
        match self {
            RedfishRoute::System(_) => FaultScope::Reads,
            RedfishRoute::Reset(_) => FaultScope::Commands,
            RedfishRoute::Login => FaultScope::Logins,
            RedfishRoute::Root
            | RedfishRoute::Systems
            | RedfishRoute::ActionInfo(_)
            | RedfishRoute::SessionService
            | RedfishRoute::Logout(_)
            | RedfishRoute::Task(_)
            | RedfishRoute::Monitor(_)
            | RedfishRoute::Nothing
            | RedfishRoute::NotAllowed => FaultScope::Anything,
        }
    }

    /// Returns whether the route needs no authentication.
    pub fn is_unauthenticated(&self) -> bool {
        matches!(self, RedfishRoute::Root | RedfishRoute::Login)
    }
}

fn parse_route(method: &Method, words: &[&str]) -> Option<RedfishRoute> {
    let named = |id: &&str| (*id).to_owned();
    let route = match (method.as_str(), words) {
        ("GET", [] | ["v1"]) => RedfishRoute::Root,
        ("GET", ["v1", "Systems"]) => RedfishRoute::Systems,
        ("GET", ["v1", "Systems", id]) => RedfishRoute::System(named(id)),
        ("GET", ["v1", "Systems", id, "ResetActionInfo"]) => RedfishRoute::ActionInfo(named(id)),
        ("POST", ["v1", "Systems", id, "Actions", "ComputerSystem.Reset"]) => {
            RedfishRoute::Reset(named(id))
        }
        ("GET", ["v1", "SessionService"]) => RedfishRoute::SessionService,
        ("POST", ["v1", "SessionService", "Sessions"]) => RedfishRoute::Login,
        ("DELETE", ["v1", "SessionService", "Sessions", id]) => RedfishRoute::Logout(named(id)),
        ("GET", ["v1", "TaskService", "Tasks", id]) => RedfishRoute::Task(id.parse().ok()?),
        ("GET", ["v1", "TaskService", "TaskMonitors", id]) => {
            RedfishRoute::Monitor(id.parse().ok()?)
        }
        _ => return None,
    };
    Some(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_one_thing_with_or_without_a_slash_behind_it() {
        let get = |path| RedfishRoute::of_request(&Method::GET, path);
        assert_eq!(get("/redfish/v1"), RedfishRoute::Root);
        assert_eq!(get("/redfish/v1/"), RedfishRoute::Root);
        assert_eq!(
            get("/redfish/v1/Systems/1/"),
            RedfishRoute::System("1".into())
        );
        assert_eq!(get("/redfish/v1/Chassis"), RedfishRoute::Nothing);
        assert_eq!(get("/"), RedfishRoute::Nothing);
        let reset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
        assert_eq!(get(reset), RedfishRoute::NotAllowed);
        assert_eq!(
            RedfishRoute::of_request(&Method::POST, reset),
            RedfishRoute::Reset("1".into())
        );
    }
}
