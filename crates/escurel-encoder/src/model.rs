//! The pass over a ragged batch: all tokens of all texts in one matrix, no padding.

use pulp::Arch;

use crate::pointwise::{self, Norm};
use crate::product::{self, Linear, PANEL, Panels, Product, Rows, Scratch, sized};

/// Width of an attention head; that of a panel, so a head's values are a panel as they lie.
pub(crate) const HEAD: usize = PANEL;

pub(crate) struct Model {
    pub(crate) arch: Arch,
    pub(crate) hidden: usize,
    /// One row a token of the vocabulary.
    pub(crate) words: Vec<f32>,
    /// One row a position, the type of the only segment added.
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: Norm,
    pub(crate) layers: Vec<Layer>,
}

pub(crate) struct Layer {
    /// Queries, keys and values side by side; the scale of the scores is in the queries.
    pub(crate) heads: Linear,
    pub(crate) joined: Linear,
    pub(crate) joined_norm: Norm,
    pub(crate) wide: Linear,
    pub(crate) narrow: Linear,
    pub(crate) narrow_norm: Norm,
}

impl Model {
    /// One unit vector a text. Token ids must be below the vocabulary's size, texts no
    /// longer than there are positions and not empty.
    pub(crate) fn encode(&self, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        let mut rows = self.embed(texts);
        let tokens = rows.len() / self.hidden;
        let mut buffers = Buffers::default();
        for layer in &self.layers {
            self.layer(layer, texts, tokens, &mut rows, &mut buffers);
        }
        let mut rest = rows.as_slice();
        let pooled = texts.iter().map(|text| {
            let (own, after) = rest.split_at(text.len() * self.hidden);
            rest = after;
            pointwise::pool(own, self.hidden)
        });
        pooled.collect()
    }

    fn embed(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        let mut words = Vec::new();
        let mut positions = Vec::new();
        for text in texts {
            for token in text {
                let from = *token as usize * self.hidden;
                words.extend_from_slice(&self.words[from..from + self.hidden]);
            }
            positions.extend_from_slice(&self.positions[..text.len() * self.hidden]);
        }
        self.norm.add(self.arch, &mut words, &positions);
        words
    }

    fn layer(
        &self,
        layer: &Layer,
        texts: &[Vec<u32>],
        tokens: usize,
        rows: &mut [f32],
        buffers: &mut Buffers,
    ) {
        let arch = self.arch;
        let narrow = tokens * self.hidden;
        let wide = tokens * layer.wide.outputs();
        let heads = sized(&mut buffers.heads, 3 * narrow);
        layer.heads.apply(arch, rows, heads, &mut buffers.scratch);

        let met = sized(&mut buffers.met, narrow);
        let mut at = 0;
        for text in texts {
            let heads = &heads[at * 3..][..text.len() * 3 * self.hidden];
            let met = &mut met[at..][..text.len() * self.hidden];
            attend(
                arch,
                heads,
                self.hidden,
                met,
                &mut buffers.attention,
                &mut buffers.scratch,
            );
            at += text.len() * self.hidden;
        }
        let added = sized(&mut buffers.added, narrow);
        layer.joined.apply(arch, met, added, &mut buffers.scratch);
        layer.joined_norm.add(arch, rows, added);

        let inner = sized(&mut buffers.inner, wide);
        layer.wide.apply(arch, rows, inner, &mut buffers.scratch);
        pointwise::gelu(arch, inner);
        layer.narrow.apply(arch, inner, added, &mut buffers.scratch);
        layer.narrow_norm.add(arch, rows, added);
    }
}

/// Attention within one text. `heads` has rows of queries, keys and values.
fn attend(
    arch: Arch,
    heads: &[f32],
    hidden: usize,
    out: &mut [f32],
    buffers: &mut Attention,
    scratch: &mut Scratch,
) {
    let stride = 3 * hidden;
    let tokens = heads.len() / stride;
    let padded = tokens.next_multiple_of(PANEL);
    for head in (0..hidden).step_by(HEAD) {
        let column = |from: usize| {
            heads
                .chunks_exact(stride)
                .map(move |row| &row[from..][..HEAD])
        };
        product::pack(column(hidden + head), tokens, HEAD, &mut buffers.keys);
        buffers.values.clear();
        for row in column(2 * hidden + head) {
            buffers.values.extend_from_slice(row);
        }
        let scores = sized(&mut buffers.scores, tokens * padded);
        arch.dispatch(Product {
            rows: Rows {
                values: &heads[head..],
                stride,
            },
            panels: Panels::Plain(&buffers.keys),
            inputs: HEAD,
            bias: None,
            stride: padded,
            out: scores,
            scratch: &mut *scratch,
        });
        pointwise::softmax(arch, scores, padded, tokens);
        arch.dispatch(Product {
            rows: Rows {
                values: scores,
                stride: padded,
            },
            panels: Panels::Plain(&buffers.values),
            inputs: tokens,
            bias: None,
            stride: hidden,
            out: &mut out[head..],
            scratch: &mut *scratch,
        });
    }
}

#[derive(Default)]
struct Buffers {
    heads: Vec<f32>,
    met: Vec<f32>,
    added: Vec<f32>,
    inner: Vec<f32>,
    attention: Attention,
    scratch: Scratch,
}

#[derive(Default)]
struct Attention {
    keys: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
}

#[cfg(test)]
mod tests;
