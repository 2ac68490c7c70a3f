use std::fs;

use escurel_encoder::{Encoder, EncoderError, MODEL_FILE, TOKENIZER_FILE};
use tempfile::TempDir;

fn open(model: &[u8], tokenizer: &[u8]) -> EncoderError {
    let dir = TempDir::new().expect("a folder");
    fs::write(dir.path().join(MODEL_FILE), model).expect("writes");
    fs::write(dir.path().join(TOKENIZER_FILE), tokenizer).expect("writes");
    Encoder::open(dir.path()).err().expect("is refused")
}

#[test]
fn a_folder_without_the_files_is_refused_by_name() {
    let dir = TempDir::new().expect("a folder");
    let error = Encoder::open(dir.path()).err().expect("is refused");
    assert_eq!(error.code(), "encoder_file_unreadable");
    assert!(error.to_string().contains(MODEL_FILE), "{error}");
}

#[test]
fn garbage_is_refused_by_name() {
    for garbage in [
        &b""[..],
        b"\0",
        b"{}",
        &[0xff; 100],
        b"<html>not found</html>",
    ] {
        let error = open(garbage, b"{}");
        assert_eq!(error.code(), "encoder_file_damaged");
        assert!(error.to_string().contains(MODEL_FILE), "{error}");
    }
}

#[test]
fn a_damaged_tokenizer_is_refused_by_name() {
    let Some(dir) = std::env::var_os("ESCUREL_EMBEDDING_MODEL_DIR").map(std::path::PathBuf::from)
    else {
        eprintln!("skipped: no model (ESCUREL_EMBEDDING_MODEL_DIR is not set)");
        return;
    };
    let model = fs::read(dir.join(MODEL_FILE)).expect("reads");
    let tokenizer = fs::read_to_string(dir.join(TOKENIZER_FILE)).expect("reads");
    let check = |tokenizer: &str, code: &str| {
        let error = open(&model, tokenizer.as_bytes());
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(TOKENIZER_FILE), "{error}");
    };
    check("", "encoder_file_damaged");
    check("{}", "encoder_file_damaged");
    check(&tokenizer[..tokenizer.len() / 2], "encoder_file_damaged");
    check(
        &tokenizer.replace("[UNK]", "[OTHER]"),
        "encoder_model_unsuitable",
    );
    check(
        &tokenizer
            .replace(":30521", ":99999")
            .replace(": 30521", ": 99999"),
        "encoder_model_unsuitable",
    );
    let error = open(&model[..model.len() / 2], tokenizer.as_bytes());
    assert_eq!(error.code(), "encoder_file_damaged");
}
