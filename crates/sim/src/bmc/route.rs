//! Which request asks for what.

use http::Method;

use super::fault::Scope;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// The service root: open to everybody.
    Root,
    /// The systems.
    Systems,
    /// One system, by its name.
    System(String),
    /// What its reset takes.
    ActionInfo(String),
    /// A command.
    Reset(String),
    /// The session service.
    SessionService,
    /// A login: open to everybody.
    Login,
    /// A logout, by the session's name.
    Logout(String),
    /// A task's document.
    Task(u64),
    /// A task monitor.
    Monitor(u64),
    /// Nothing that is here.
    Nothing,
    /// Something that is here, and not with this method.
    NotAllowed,
}

impl Route {
    /// Of a request.
    pub fn of(method: &Method, path: &str) -> Self {
        let Some(rest) = path.trim_end_matches('/').strip_prefix("/redfish") else {
            return Route::Nothing;
        };
        let words: Vec<_> = rest.split('/').skip(1).collect();
        let route = known(method, &words);
        let reads = || known(&Method::GET, &words).or(known(&Method::POST, &words));
        match route {
            Some(route) => route,
            None if reads().is_some() => Route::NotAllowed,
            None => Route::Nothing,
        }
    }

    /// What faults call it.
    pub fn scope(&self) -> Scope {
        match self {
            Route::System(_) => Scope::Reads,
            Route::Reset(_) => Scope::Commands,
            Route::Login => Scope::Logins,
            Route::Root
            | Route::Systems
            | Route::ActionInfo(_)
            | Route::SessionService
            | Route::Logout(_)
            | Route::Task(_)
            | Route::Monitor(_)
            | Route::Nothing
            | Route::NotAllowed => Scope::Anything,
        }
    }

    /// Whether nobody has to say who they are.
    pub fn is_open(&self) -> bool {
        matches!(self, Route::Root | Route::Login)
    }
}

fn known(method: &Method, words: &[&str]) -> Option<Route> {
    let named = |id: &&str| (*id).to_owned();
    let route = match (method.as_str(), words) {
        ("GET", [] | ["v1"]) => Route::Root,
        ("GET", ["v1", "Systems"]) => Route::Systems,
        ("GET", ["v1", "Systems", id]) => Route::System(named(id)),
        ("GET", ["v1", "Systems", id, "ResetActionInfo"]) => Route::ActionInfo(named(id)),
        ("POST", ["v1", "Systems", id, "Actions", "ComputerSystem.Reset"]) => {
            Route::Reset(named(id))
        }
        ("GET", ["v1", "SessionService"]) => Route::SessionService,
        ("POST", ["v1", "SessionService", "Sessions"]) => Route::Login,
        ("DELETE", ["v1", "SessionService", "Sessions", id]) => Route::Logout(named(id)),
        ("GET", ["v1", "TaskService", "Tasks", id]) => Route::Task(id.parse().ok()?),
        ("GET", ["v1", "TaskService", "TaskMonitors", id]) => Route::Monitor(id.parse().ok()?),
        _ => return None,
    };
    Some(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_one_thing_with_or_without_a_slash_behind_it() {
        let get = |path| Route::of(&Method::GET, path);
        assert_eq!(get("/redfish/v1"), Route::Root);
        assert_eq!(get("/redfish/v1/"), Route::Root);
        assert_eq!(get("/redfish/v1/Systems/1/"), Route::System("1".into()));
        assert_eq!(get("/redfish/v1/Chassis"), Route::Nothing);
        assert_eq!(get("/"), Route::Nothing);
        let reset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
        assert_eq!(get(reset), Route::NotAllowed);
        assert_eq!(Route::of(&Method::POST, reset), Route::Reset("1".into()));
    }
}
