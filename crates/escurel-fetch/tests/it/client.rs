//! The client that every request goes through.

use std::time::Duration;

use escurel_fetch::Client;
use escurel_test_http::{Reply, TestServer};
use serde_json::json;

const SOON: Duration = Duration::from_secs(10);

#[test]
fn every_status_is_an_answer() {
    let server = TestServer::start(|request| {
        Reply::json(&request.json())
            .with_status(429)
            .header("retry-after", "7")
    });
    let url = server.url("/v1").parse().unwrap();
    let secret = Some(("authorization", "Bearer k"));
    let answer = Client::default()
        .post(&url, secret, &json!({"a": [1]}), SOON)
        .unwrap();
    assert_eq!((answer.status, answer.body), (429, b"{\"a\":[1]}".to_vec()));
    assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
    let asked = &server.requests()[0];
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", "/v1")
    );
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("authorization"), Some("Bearer k"));
    assert!(asked.header("user-agent").unwrap().starts_with("escurel/"));
}

#[test]
fn why_there_is_no_answer_is_said_without_the_secret() {
    let slow = TestServer::start(|_| Reply::status(200).after(Duration::from_millis(1500)));
    let gone = TestServer::start(|_| Reply::status(200)).url("/");
    let check = |url: &str, key: &str, part: &str| {
        let (url, secret) = (url.parse().unwrap(), Some(("x-key", key)));
        let asked = Client::default().post(&url, secret, &json!({}), Duration::from_millis(200));
        let reason = asked.unwrap_err().to_string();
        assert!(
            reason.contains(part) && !reason.contains("s3cret"),
            "{reason}"
        );
    };
    check(&slow.url("/"), "s3cret", "no answer in time");
    check(&gone, "s3cret", "refused");
    check(&slow.url("/"), "s3cret\n", "x-key");
}
