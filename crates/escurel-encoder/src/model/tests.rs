//! A model of two layers with random weights, against the definition in f64.

use super::*;
use crate::weights::{self, Shape};
use safetensors::tensor::{Dtype, TensorView, serialize};
use std::path::Path;

const SHAPE: Shape = Shape {
    hidden: 64,
    inner: 96,
    layers: 2,
    positions: 40,
};
const VOCABULARY: usize = 50;

struct File(Vec<(String, Vec<usize>, Vec<f32>)>);

impl File {
    fn random() -> Self {
        let Shape {
            hidden,
            inner,
            layers,
            positions,
        } = SHAPE;
        let mut file = Self(Vec::new());
        file.add("embeddings.word_embeddings.weight", &[VOCABULARY, hidden]);
        file.add(
            "embeddings.position_embeddings.weight",
            &[positions + 3, hidden],
        );
        file.add("embeddings.token_type_embeddings.weight", &[2, hidden]);
        file.both("embeddings.LayerNorm", &[hidden]);
        for layer in 0..layers {
            let name = |part: &str| format!("encoder.layer.{layer}.{part}");
            for part in ["query", "key", "value"] {
                file.both(&name(&format!("attention.self.{part}")), &[hidden, hidden]);
            }
            file.both(&name("attention.output.dense"), &[hidden, hidden]);
            file.both(&name("attention.output.LayerNorm"), &[hidden]);
            file.both(&name("intermediate.dense"), &[inner, hidden]);
            file.both(&name("output.dense"), &[hidden, inner]);
            file.both(&name("output.LayerNorm"), &[hidden]);
        }
        file
    }

    fn both(&mut self, name: &str, shape: &[usize]) {
        self.add(&format!("{name}.weight"), shape);
        self.add(&format!("{name}.bias"), &shape[..1]);
    }

    fn add(&mut self, name: &str, shape: &[usize]) {
        let mut state = self.0.len() as u64 + 1;
        let draw = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // A multiple of 2^-6 is the same in f16 and bf16.
            ((state >> 58) as f32 - 31.5) / 64.0
        };
        let values = std::iter::repeat_with(draw).take(shape.iter().product());
        self.0.push((name.into(), shape.to_vec(), values.collect()));
    }

    fn bytes(&self, dtype: Dtype, convert: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
        let data: Vec<Vec<u8>> = self
            .0
            .iter()
            .map(|(_, _, values)| values.iter().flat_map(|value| convert(*value)).collect())
            .collect();
        let views = self.0.iter().zip(&data).map(|((name, shape, _), data)| {
            let view = TensorView::new(dtype, shape.clone(), data).expect("sizes fit");
            (name.clone(), view)
        });
        serialize(views, None).expect("serializes")
    }

    fn f32(&self) -> Vec<u8> {
        self.bytes(Dtype::F32, |value| value.to_le_bytes().to_vec())
    }

    fn get(&self, name: &str) -> &[f32] {
        &self.0.iter().find(|(own, _, _)| own == name).expect(name).2
    }
}

/// The definition, one text after the other, in f64 and without any cleverness.
struct Naive(File);

impl Naive {
    fn encode(&self, text: &[u32]) -> Vec<f64> {
        let hidden = SHAPE.hidden;
        let row = |name: &str, at: usize, i: usize| {
            f64::from(self.0.get(&format!("embeddings.{name}_embeddings.weight"))[at * hidden + i])
        };
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for (at, token) in text.iter().enumerate() {
            let sum = (0..hidden).map(|i| {
                row("word", *token as usize, i) + row("position", at, i) + row("token_type", 0, i)
            });
            rows.push(self.norm("embeddings.LayerNorm", sum.collect()));
        }
        for layer in 0..SHAPE.layers {
            rows = self.layer(&format!("encoder.layer.{layer}"), &rows);
        }
        let sums: Vec<f64> = (0..hidden)
            .map(|i| rows.iter().map(|row| row[i]).sum())
            .collect();
        let length = sums.iter().map(|v| v * v).sum::<f64>().sqrt();
        sums.iter().map(|v| v / length).collect()
    }

    fn layer(&self, name: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let each = |part: &str| -> Vec<Vec<f64>> {
            let part = format!("{name}.attention.self.{part}");
            rows.iter().map(|row| self.linear(&part, row)).collect()
        };
        let (queries, keys, values) = (each("query"), each("key"), each("value"));
        let after = |at: usize, row: &Vec<f64>| {
            let mut met = vec![0.0; SHAPE.hidden];
            for head in (0..SHAPE.hidden).step_by(HEAD) {
                let score = |key: &Vec<f64>| {
                    let dot: f64 = (head..head + HEAD).map(|i| queries[at][i] * key[i]).sum();
                    (dot / (HEAD as f64).sqrt()).exp()
                };
                let total: f64 = keys.iter().map(score).sum();
                for (key, value) in keys.iter().zip(&values) {
                    for i in head..head + HEAD {
                        met[i] += score(key) / total * value[i];
                    }
                }
            }
            let joined = self.linear(&format!("{name}.attention.output.dense"), &met);
            let sum = row.iter().zip(joined).map(|(a, b)| a + b).collect();
            let row = self.norm(&format!("{name}.attention.output.LayerNorm"), sum);
            let mut inner = self.linear(&format!("{name}.intermediate.dense"), &row);
            for value in &mut inner {
                *value *= 0.5 * (1.0 + erf(*value / 2f64.sqrt()));
            }
            let narrow = self.linear(&format!("{name}.output.dense"), &inner);
            let sum = row.iter().zip(narrow).map(|(a, b)| a + b).collect();
            self.norm(&format!("{name}.output.LayerNorm"), sum)
        };
        rows.iter()
            .enumerate()
            .map(|(at, row)| after(at, row))
            .collect()
    }

    fn linear(&self, name: &str, row: &[f64]) -> Vec<f64> {
        let weights = self.0.get(&format!("{name}.weight")).chunks(row.len());
        let bias = self.0.get(&format!("{name}.bias"));
        weights
            .zip(bias)
            .map(|(w, b)| {
                f64::from(*b)
                    + w.iter()
                        .zip(row)
                        .map(|(w, x)| f64::from(*w) * x)
                        .sum::<f64>()
            })
            .collect()
    }

    fn norm(&self, name: &str, row: Vec<f64>) -> Vec<f64> {
        let count = row.len() as f64;
        let mean = row.iter().sum::<f64>() / count;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let scale = self.0.get(&format!("{name}.weight"));
        let shift = self.0.get(&format!("{name}.bias"));
        let learnt = scale.iter().zip(shift);
        row.iter()
            .zip(learnt)
            .map(|(v, (a, b))| {
                (v - mean) / (variance + 1e-12).sqrt() * f64::from(*a) + f64::from(*b)
            })
            .collect()
    }
}

fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn read(bytes: &[u8]) -> Result<Model, crate::EncoderError> {
    weights::read(Path::new("model.safetensors"), bytes, &SHAPE)
}

fn texts() -> Vec<Vec<u32>> {
    let lengths = [2, 1, 40, 7, 33, 32];
    let token = |n: usize, i: usize| ((n * 31 + i * 17) % VOCABULARY) as u32;
    lengths
        .iter()
        .map(|n| (0..*n).map(|i| token(*n, i)).collect())
        .collect()
}

#[test]
fn a_ragged_batch_equals_the_definition() {
    let file = File::random();
    let vectors = read(&file.f32()).expect("reads").encode(&texts());
    let naive = Naive(file);
    for (text, vector) in texts().iter().zip(&vectors) {
        for (value, exact) in vector.iter().zip(naive.encode(text)) {
            assert!(
                // What weights in 16 bits differ by.
                (f64::from(*value) - exact).abs() < 2e-5,
                "{value}, not {exact}"
            );
        }
    }
}

#[test]
fn a_text_has_the_same_bits_alone_and_in_a_batch() {
    let model = read(&File::random().f32()).expect("reads");
    let together = model.encode(&texts());
    for (text, vector) in texts().into_iter().zip(together) {
        assert_eq!(model.encode(&[text])[0], vector);
    }
    assert!(model.encode(&[]).is_empty());
}

#[test]
fn half_precision_weights_are_read() {
    let file = File::random();
    let expected = read(&file.f32()).expect("reads").encode(&texts());
    let f16 = file.bytes(Dtype::F16, |v| {
        half::f16::from_f32(v).to_le_bytes().to_vec()
    });
    let bf16 = file.bytes(Dtype::BF16, |v| {
        half::bf16::from_f32(v).to_le_bytes().to_vec()
    });
    assert_eq!(read(&f16).expect("reads").encode(&texts()), expected);
    assert_eq!(read(&bf16).expect("reads").encode(&texts()), expected);
}

fn refused(bytes: &[u8], code: &str, part: &str) {
    let error = read(bytes).err().expect("is refused");
    assert_eq!(error.code(), code);
    let text = error.to_string();
    assert!(
        text.starts_with("model.safetensors: ") && text.contains(part),
        "{text}"
    );
}

#[test]
fn wrong_weights_are_named() {
    let mut file = File::random();
    file.0[5].1 = vec![SHAPE.hidden * SHAPE.hidden];
    refused(
        &file.f32(),
        "encoder_model_unsuitable",
        "has shape [4096], not [64, 64]",
    );
    let mut file = File::random();
    file.0.remove(7);
    refused(
        &file.f32(),
        "encoder_model_unsuitable",
        "it has no encoder.layer.0.attention.self.key",
    );
    let mut file = File::random();
    file.0[0].2[3] = f32::NAN;
    refused(&file.f32(), "encoder_file_damaged", "not a finite number");
    let wide = File::random().bytes(Dtype::F64, |v| f64::from(v).to_le_bytes().to_vec());
    refused(
        &wide,
        "encoder_model_unsuitable",
        "is F64, not F32, F16 or BF16",
    );
}

#[test]
fn damaged_weights_are_refused_at_every_length() {
    let bytes = File::random().f32();
    for length in (0..3000).chain((3000..bytes.len()).step_by(4099)) {
        refused(
            &bytes[..length],
            "encoder_file_damaged",
            "fetch the model again",
        );
    }
    refused(
        &[0xff; 4000],
        "encoder_file_damaged",
        "fetch the model again",
    );
}
