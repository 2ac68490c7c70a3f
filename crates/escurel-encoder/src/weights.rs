//! Reads `model.safetensors` into a [`Model`], or says what about it is wrong.

use std::path::Path;

use pulp::Arch;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::error::EncoderError;
use crate::model::{HEAD, Layer, Model};
use crate::pointwise::Norm;
use crate::product::Linear;

/// The sizes that the files must have.
pub(crate) struct Shape {
    pub(crate) hidden: usize,
    pub(crate) inner: usize,
    pub(crate) layers: usize,
    /// At least so many positions.
    pub(crate) positions: usize,
}

/// `bytes` are those of `file`, which is only named in errors.
pub(crate) fn read(file: &Path, bytes: &[u8], shape: &Shape) -> Result<Model, EncoderError> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| EncoderError::Damaged {
        file: file.to_path_buf(),
        reason: error.to_string(),
    })?;
    let source = Source { file, tensors };
    let Shape { hidden, layers, .. } = *shape;
    Ok(Model {
        arch: Arch::new(),
        hidden,
        words: source.table("embeddings.word_embeddings.weight", 1, hidden)?,
        positions: source.positions(shape)?,
        norm: source.norm("embeddings.LayerNorm", hidden)?,
        layers: (0..layers)
            .map(|number| source.layer(number, shape))
            .collect::<Result<_, _>>()?,
    })
}

struct Source<'a> {
    file: &'a Path,
    tensors: SafeTensors<'a>,
}

impl Source<'_> {
    fn layer(&self, number: usize, shape: &Shape) -> Result<Layer, EncoderError> {
        let Shape { hidden, inner, .. } = *shape;
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let mut weights = Vec::new();
        let mut biases = Vec::new();
        for part in ["query", "key", "value"] {
            let scale = match part {
                "query" => 1.0 / (HEAD as f32).sqrt(),
                _ => 1.0,
            };
            let part = name(&format!("attention.self.{part}"));
            let weight = self.exactly(&format!("{part}.weight"), &[hidden, hidden])?;
            let bias = self.exactly(&format!("{part}.bias"), &[hidden])?;
            weights.extend(weight.iter().map(|value| value * scale));
            biases.extend(bias.iter().map(|value| value * scale));
        }
        Ok(Layer {
            heads: Linear::pack(&weights, biases),
            joined: self.linear(&name("attention.output.dense"), hidden, hidden)?,
            joined_norm: self.norm(&name("attention.output.LayerNorm"), hidden)?,
            wide: self.linear(&name("intermediate.dense"), hidden, inner)?,
            narrow: self.linear(&name("output.dense"), inner, hidden)?,
            narrow_norm: self.norm(&name("output.LayerNorm"), hidden)?,
        })
    }

    /// Positions with the type of the first segment, the only one there is, added.
    fn positions(&self, shape: &Shape) -> Result<Vec<f32>, EncoderError> {
        let Shape {
            hidden, positions, ..
        } = *shape;
        let name = "embeddings.position_embeddings.weight";
        let mut rows = self.table(name, positions, hidden)?;
        let types = self.table("embeddings.token_type_embeddings.weight", 1, hidden)?;
        rows.truncate(positions * hidden);
        for row in rows.chunks_exact_mut(hidden) {
            for (value, kind) in row.iter_mut().zip(&types) {
                *value += kind;
            }
        }
        Ok(rows)
    }

    fn linear(&self, name: &str, inputs: usize, outputs: usize) -> Result<Linear, EncoderError> {
        let weights = self.exactly(&format!("{name}.weight"), &[outputs, inputs])?;
        let bias = self.exactly(&format!("{name}.bias"), &[outputs])?;
        Ok(Linear::pack(&weights, bias))
    }

    fn norm(&self, name: &str, width: usize) -> Result<Norm, EncoderError> {
        Ok(Norm {
            scale: self.exactly(&format!("{name}.weight"), &[width])?,
            shift: self.exactly(&format!("{name}.bias"), &[width])?,
        })
    }

    /// A tensor of at least `rows` rows of `width`.
    fn table(&self, name: &str, rows: usize, width: usize) -> Result<Vec<f32>, EncoderError> {
        let tensor = self.find(name)?;
        match tensor.shape() {
            [found, wide] if *wide == width && *found >= rows => self.numbers(name, &tensor),
            found => Err(self.unsuitable(format!(
                "{name} has shape {found:?}, not at least {:?}",
                [rows, width]
            ))),
        }
    }

    fn exactly(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
        let tensor = self.find(name)?;
        if tensor.shape() != shape {
            let found = tensor.shape();
            return Err(self.unsuitable(format!("{name} has shape {found:?}, not {shape:?}")));
        }
        self.numbers(name, &tensor)
    }

    /// Some exporters put the whole encoder under one name.
    fn find(&self, name: &str) -> Result<TensorView<'_>, EncoderError> {
        self.tensors
            .tensor(name)
            .or_else(|_| self.tensors.tensor(&format!("bert.{name}")))
            .map_err(|_| self.unsuitable(format!("it has no {name}")))
    }

    fn numbers(&self, name: &str, tensor: &TensorView) -> Result<Vec<f32>, EncoderError> {
        let bytes = tensor.data();
        let numbers: Vec<f32> = match tensor.dtype() {
            Dtype::F32 => each(bytes, f32::from_le_bytes),
            Dtype::F16 => each(bytes, |two| half::f16::from_le_bytes(two).to_f32()),
            Dtype::BF16 => each(bytes, |two| half::bf16::from_le_bytes(two).to_f32()),
            other => {
                return Err(self.unsuitable(format!("{name} is {other:?}, not F32, F16 or BF16")));
            }
        };
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(EncoderError::Damaged {
                file: self.file.to_path_buf(),
                reason: format!("{name} holds what is not a finite number"),
            });
        }
        Ok(numbers)
    }

    fn unsuitable(&self, reason: String) -> EncoderError {
        EncoderError::Unsuitable {
            file: self.file.to_path_buf(),
            reason,
        }
    }
}

fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|one| number(*one)).collect()
}
