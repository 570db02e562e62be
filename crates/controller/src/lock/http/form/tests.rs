use super::*;

const URLENCODED: &str = "application/x-www-form-urlencoded";

async fn read(kind: &str, body: &str) -> Result<LockForm, LockReply> {
    parse_lock_form(Some(kind), Bytes::from(body.to_owned())).await
}

fn multipart_of(fields: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts: String = fields.iter().map(part).collect();
    format!("{parts}--b--\r\n")
}

#[tokio::test]
async fn both_encodings_say_the_same() {
    for (fields, host, wait) in [
        (vec![("hostname", "n1")], "n1", WaitMode::Soon),
        (
            vec![("hostname", "N1.Example.ORG"), ("wait", "false")],
            "n1.example.org",
            WaitMode::No,
        ),
        (
            vec![("wait", "true"), ("hostname", "n1")],
            "n1",
            WaitMode::Always,
        ),
    ] {
        let pairs: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let form = LockForm {
            host: host.to_owned(),
            wait,
        };
        assert_eq!(read(URLENCODED, &pairs.join("&")).await, Ok(form.clone()));
        let parts = multipart_of(&fields);
        assert_eq!(
            read("Multipart/Form-Data; boundary=b", &parts).await,
            Ok(form)
        );
    }
}

#[tokio::test]
async fn a_type_may_say_its_character_set() {
    for kind in [
        "application/x-www-form-urlencoded; charset=UTF-8",
        "APPLICATION/X-WWW-FORM-URLENCODED",
    ] {
        assert!(read(kind, "hostname=n1").await.is_ok(), "{kind}");
    }
}

#[tokio::test]
async fn a_broken_multipart_form_is_refused() {
    let twice = multipart_of(&[("hostname", "n1"), ("hostname", "n1")]);
    let unknown = multipart_of(&[("hostname", "n1"), ("Wait", "false")]);
    let nameless = "--b\r\nContent-Disposition: form-data\r\n\r\nn1\r\n--b--\r\n";
    let endless = "--b\r\nContent-Disposition: form-data; name=\"hostname\"\r\n\r\nn1";
    for body in [twice.as_str(), &unknown, nameless, endless, "", "--b--\r\n"] {
        let refusal = read("multipart/form-data; boundary=b", body)
            .await
            .unwrap_err();
        assert_eq!(refusal.verdict, RequestOutcome::Malformed, "{body:?}");
    }
}

#[tokio::test]
async fn what_somebody_sent_comes_back_short_and_on_one_line() {
    let body = format!("hostname=n1&wait=%0a%1b{}", "x".repeat(500));
    let refusal = read(URLENCODED, &body).await.unwrap_err();
    let line = format!("{refusal:?}");
    assert!(line.len() < 250 && !line.contains('\u{1b}'), "{line}");
}
