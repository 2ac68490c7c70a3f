//! Gives a folder's pages vectors without embedding all of them: `prime FOLDER
//! MODEL`. For measuring folders that would take hours to embed.
//!
//! Some pages are embedded for real; every text gets one of their vectors with
//! noise that its own bytes seed. What is kept is kept as the model's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use escurel_access::Caller;
use escurel_core::api::SearchRequest;
use escurel_core::{Kb, OpenOptions, Vectors};
use escurel_search::{EmbedError, Embedder, Local, Purpose};

type Failure = Box<dyn std::error::Error>;

/// Pages that are embedded for real.
const REAL: usize = 500;
/// How long the noise is, beside vectors of length 1.
const NOISE: f32 = 0.5;

struct Noisy {
    model: Local,
    real: Vec<Vec<f32>>,
}

impl Embedder for Noisy {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.real.is_empty() || purpose == Purpose::Query {
            return self.model.embed(texts, purpose);
        }
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

impl Noisy {
    fn embed_files(&self, folder: &Path) -> Result<Vec<Vec<f32>>, Failure> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        files.sort();
        let step = (files.len() / REAL).max(1);
        let mut real = Vec::new();
        for file in files.iter().step_by(step).take(REAL) {
            let text = String::from_utf8_lossy(&std::fs::read(file)?).into_owned();
            real.extend(self.model.embed(&[&text], Purpose::Document)?);
        }
        Ok(real)
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut state = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let base = &self.real[(next(&mut state) % self.real.len() as u64) as usize];
        // Uniform from -a to a in each of n dimensions has the length a √(n / 3).
        let most = NOISE / (base.len() as f32 / 3.0).sqrt();
        let noisy: Vec<f32> = base
            .iter()
            .map(|x| x + most * (next(&mut state) as f32 / u64::MAX as f32 * 2.0 - 1.0))
            .collect();
        let length = noisy.iter().map(|x| x * x).sum::<f32>().sqrt();
        noisy.iter().map(|x| x / length).collect()
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(model)) = (args.next(), args.next()) else {
        return Err("usage: prime FOLDER MODEL".into());
    };
    let mut embedder = Noisy {
        model: Local::open(&model)?,
        real: Vec::new(),
    };
    embedder.real = embedder.embed_files(&folder)?;
    let options = OpenOptions {
        vectors: Vectors::By(Arc::new(embedder)),
        ..OpenOptions::default()
    };
    let kb = Kb::open(&folder, options)?;
    kb.wait_ready(&mut |_| {});
    while lagging(&kb)? {
        std::thread::sleep(Duration::from_millis(100));
    }
    kb.close();
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.is_dir() && !hidden {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "md") {
            files.push(path);
        }
    }
    Ok(())
}

fn lagging(kb: &Kb) -> Result<bool, Failure> {
    let request = SearchRequest {
        queries: vec!["what is this about".to_owned()],
        k: 1,
        ..SearchRequest::default()
    };
    let answer = kb.search(&Caller::local(), &request)?;
    let vector = answer.lanes.iter().find(|lane| lane.lane == "vector");
    match vector.map(|lane| lane.state) {
        Some("lagging") => Ok(true),
        Some("fresh") => Ok(false),
        _ => Err(format!("no vectors: {vector:?}").into()),
    }
}
