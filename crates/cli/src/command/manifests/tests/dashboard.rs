//! Component `web` of the controller: a program of its own.

use super::*;

#[test]
fn the_dashboard_is_a_program_of_its_own_with_the_controllers_image_and_only_looks() {
    use clap::Parser as _;
    let with_web = ManifestsArgs {
        with_web: true,
        ..args()
    };
    let objects = objects("kube-dogs", &with_web);
    let own = |kind: &str| -> Vec<&Value> {
        let mut all = of(&objects, kind);
        all.retain(|it| it["metadata"]["name"] == WEB_ACCOUNT);
        all
    };
    let pod = &own("Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], WEB_ACCOUNT);
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry/dogwatch:1");
    let flags = container["args"].as_array().unwrap().iter();
    let words = flags.map(|flag| flag.as_str().unwrap());
    let parsed = crate::args::Args::try_parse_from(["dogwatch"].into_iter().chain(words)).unwrap();
    let crate::command::DogwatchCommand::Controller(args) = parsed.command else {
        panic!("another command")
    };
    let parts = args.components.iter().copied();
    let parts: Vec<ControllerComponent> = parts.map(ControllerComponent::from).collect();
    assert_eq!(parts, [ControllerComponent::Web]);
    for binding in [own("ClusterRoleBinding"), own("RoleBinding")] {
        assert_eq!(binding[0]["roleRef"]["name"], "dogwatch-viewer");
        assert_eq!(binding[0]["subjects"][0]["namespace"], "kube-dogs");
    }
    assert_eq!(own("NetworkPolicy").len(), 1);
    let without = self::objects("kube-dogs", &self::args());
    assert!(
        !without
            .iter()
            .any(|it| it["metadata"]["name"] == WEB_ACCOUNT)
    );
}

#[test]
fn an_installed_dashboard_is_kept() {
    let mut installed = installed();
    let mut web = installed.workloads[1].clone();
    web.name = WEB_ACCOUNT.into();
    web.program = WEB_ACCOUNT.into();
    web.containers[0].args = vec!["controller".into(), "--web-hosts=dogs.example".into()];
    installed.workloads.push(web);
    let objects = update(&ManifestsArgs::default(), &installed).unwrap();
    let mut deployments = of(&objects, "Deployment").into_iter();
    let web = deployments.find(|it| it["metadata"]["name"] == WEB_ACCOUNT);
    let container = &web.unwrap()["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "here/d:7");
    let args = container["args"].as_array().unwrap();
    assert!(
        args.contains(&json!("--web-hosts=dogs.example")),
        "{args:?}"
    );
    assert!(args.contains(&json!("--components=web")), "{args:?}");
}
