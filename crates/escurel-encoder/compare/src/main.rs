//! Prints documents/s at 128 tokens and ms per query of 16 tokens for the encoder
//! and for candle's `BertModel`, taken in turns, and the largest difference of a component.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use escurel_encoder::Encoder;
use tokenizers::Tokenizer;

const ROUNDS: usize = 7;

fn main() -> Result<()> {
    let named = std::env::args_os().nth(1);
    let dir = named.or_else(|| std::env::var_os("ESCUREL_EMBEDDING_MODEL_DIR"));
    let dir = PathBuf::from(dir.context("usage: encoder-compare DIR")?);
    // candle would use all cores; the encoder uses one.
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        eprintln!("set RAYON_NUM_THREADS=1 to compare on one core");
    }
    let ours = Encoder::open(&dir)?;
    let candle = Candle::open(&dir)?;

    let document = "water ".repeat(126);
    let documents = vec![document.as_str(); 16];
    let query = "water ".repeat(14);
    let difference = difference(&ours.encode(&documents[..1]), &candle.encode(&documents[..1])?);
    println!("largest difference: {difference:e}");
    ensure!(difference < 1e-4, "the vectors differ");

    let rate = turns(|| drop(ours.encode(&documents)), || drop(candle.encode(&documents)));
    let rate = rate.map(|seconds| documents.len() as f64 / seconds);
    println!("128 tokens: ours {:.1}/s, candle {:.1}/s, {:.2} times", rate[0], rate[1], rate[0] / rate[1]);
    let few = |work: &dyn Fn()| (0..10).for_each(|_| work());
    let time = turns(
        || few(&|| drop(ours.encode(&[&query]))),
        || few(&|| drop(candle.encode(&[&query]))),
    );
    let time = time.map(|seconds| seconds * 1e3 / 10.0);
    println!("16 tokens: ours {:.2} ms, candle {:.2} ms, {:.2} times", time[0], time[1], time[1] / time[0]);
    Ok(())
}

/// Median seconds of both, in turns, so that other jobs hit them alike.
fn turns(one: impl Fn(), other: impl Fn()) -> [f64; 2] {
    one();
    other();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        first.push(timed(&one));
        second.push(timed(&other));
    }
    [first, second].map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

fn timed(work: &impl Fn()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

struct Candle {
    model: BertModel,
    tokenizer: Tokenizer,
}

impl Candle {
    fn open(dir: &std::path::Path) -> Result<Self> {
        let config: Config = serde_json::from_str(CONFIG)?;
        let bytes = std::fs::read(dir.join("model.safetensors"))?;
        let weights = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)?;
        let mut tokenizer = Tokenizer::from_file(dir.join("tokenizer.json")).map_err(anyhow::Error::msg)?;
        tokenizer.with_padding(None);
        let _ = tokenizer.with_truncation(None);
        Ok(Self { model: BertModel::load(weights, &config)?, tokenizer })
    }

    /// Texts of one length.
    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut ids = Vec::new();
        for text in texts {
            let encoding = self.tokenizer.encode(*text, true).map_err(anyhow::Error::msg)?;
            ids.push(encoding.get_ids().to_vec());
        }
        let ids = Tensor::new(ids, &Device::Cpu)?;
        let types = ids.zeros_like()?;
        let mean = self.model.forward(&ids, &types, None)?.mean(1)?;
        Ok(mean.broadcast_div(&mean.sqr()?.sum_keepdim(1)?.sqrt()?)?.to_vec2()?)
    }
}

fn difference(one: &[Vec<f32>], other: &[Vec<f32>]) -> f32 {
    let pairs = one.iter().flatten().zip(other.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

const CONFIG: &str = r#"{
    "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
    "intermediate_size": 1536, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
    "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02,
    "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute",
    "use_cache": true, "classifier_dropout": null, "model_type": "bert"
}"#;
