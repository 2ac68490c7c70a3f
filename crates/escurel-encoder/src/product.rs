//! Matrix products against weights that were packed once.
//!
//! Weights lie in panels of [`PANEL`] outputs, one input after the other, so a
//! product streams them and packs nothing. Those of a layer are kept in 16 bits,
//! because a short text is through as soon as all weights were read once.
//! Invariant: each output is its bias plus the products in the order of the
//! inputs, fused one by one; so neither the vector width nor the other rows
//! change a bit of it.

use pulp::{Arch, Simd, WithSimd};

/// Outputs of a panel; also the width of an attention head.
pub(crate) const PANEL: usize = 32;

/// A panel's row of weights in 16 bits.
const PAIRS: usize = PANEL / 2;

/// Makes a signed number of 16 bits one without sign.
const MIDDLE: i32 = 1 << 15;

/// Inputs of a panel that are used for all rows before the next ones: 16 KiB, half of a first-level cache.
const CHUNK: usize = 128;

/// Rows that meet all panels before the next rows do; with 1536 inputs some 600 KiB.
const BLOCK: usize = 96;

/// Vectors of one row that a tile holds in registers.
const WIDE: usize = 2;

/// A linear layer.
pub(crate) struct Linear {
    inputs: usize,
    /// See [`pair`].
    pairs: Vec<u32>,
    /// One an output, missing ones zero.
    scales: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// From `weights` as they are stored: the inputs of the first output, of the second, and so on.
    pub(crate) fn pack(weights: &[f32], bias: Vec<f32>) -> Self {
        let inputs = weights.len() / bias.len();
        let vectors = weights.chunks_exact(inputs);
        let mut scales: Vec<f32> = vectors.clone().map(scale).collect();
        scales.resize(bias.len().next_multiple_of(PANEL), 0.0);
        let multiples = vectors.zip(&scales).map(|(vector, scale)| {
            let multiples = vector.iter().map(|value| value / scale);
            multiples.collect::<Vec<_>>()
        });
        let mut panels = Vec::new();
        pack(multiples, bias.len(), inputs, &mut panels);
        let pairs = panels.chunks_exact(PANEL).flat_map(|row| {
            let (low, high) = row.split_at(PAIRS);
            low.iter().zip(high).map(|(low, high)| pair(*low, *high))
        });
        Self {
            inputs,
            pairs: pairs.collect(),
            scales,
            bias,
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    fn panels(&self) -> Panels<'_> {
        Panels::Scaled {
            pairs: &self.pairs,
            scales: &self.scales,
        }
    }

    /// Fills `out` with this layer's outputs for all `rows`.
    pub(crate) fn apply(&self, arch: Arch, rows: &[f32], out: &mut [f32], scratch: &mut Scratch) {
        arch.dispatch(Product {
            rows: Rows {
                values: rows,
                stride: self.inputs,
            },
            panels: self.panels(),
            inputs: self.inputs,
            bias: Some(&self.bias),
            stride: self.bias.len(),
            out,
            scratch,
        });
    }
}

/// What makes the greatest of an output's weights `i16::MAX`; never zero.
fn scale(weights: &[f32]) -> f32 {
    let most = weights
        .iter()
        .fold(0f32, |most, value| most.max(value.abs()));
    (most / f32::from(i16::MAX)).max(f32::MIN_POSITIVE)
}

/// Lays vectors of `inputs` numbers into panels; missing outputs of the last panel are zero.
pub(crate) fn pack(
    vectors: impl Iterator<Item = impl AsRef<[f32]>>,
    count: usize,
    inputs: usize,
    panels: &mut Vec<f32>,
) {
    panels.clear();
    panels.resize(count.next_multiple_of(PANEL) * inputs, 0.0);
    for (output, vector) in vectors.enumerate() {
        let panel = &mut panels[output / PANEL * PANEL * inputs..][..PANEL * inputs];
        for (row, value) in panel.chunks_exact_mut(PANEL).zip(vector.as_ref()) {
            row[output % PANEL] = *value;
        }
    }
}

/// Rows of a matrix, `stride` numbers from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) stride: usize,
}

impl Rows<'_> {
    /// Fills `tile` with the first input of all rows, the second of all, and so on: a tile
    /// then reads along one line.
    #[inline(always)]
    fn interleave(&self, from: usize, height: usize, input: usize, tile: &mut [f32]) {
        let inputs = tile.len() / height;
        for r in 0..height {
            let row = &self.values[(from + r) * self.stride + input..][..inputs];
            for (column, value) in tile.chunks_exact_mut(height).zip(row) {
                column[r] = *value;
            }
        }
    }
}

/// Room that products use one after the other.
#[derive(Default)]
pub(crate) struct Scratch {
    rows: Vec<f32>,
    panel: Vec<f32>,
}

/// What rows are multiplied with.
#[derive(Clone, Copy)]
pub(crate) enum Panels<'a> {
    Plain(&'a [f32]),
    /// See [`pair`].
    Scaled {
        pairs: &'a [u32],
        scales: &'a [f32],
    },
}

impl<'a> Panels<'a> {
    fn count(&self, inputs: usize) -> usize {
        let values = match self {
            Self::Plain(values) => values.len(),
            Self::Scaled { pairs, .. } => 2 * pairs.len(),
        };
        values / (PANEL * inputs)
    }

    /// The values `from` on of the panel that begins at output `column`, as many as `buffer`
    /// has room for. Those that are not plain are widened into it.
    #[inline(always)]
    fn chunk<'b, S: Simd>(
        &self,
        simd: S,
        column: usize,
        from: usize,
        buffer: &'b mut [f32],
    ) -> &'b [f32]
    where
        'a: 'b,
    {
        match self {
            Self::Plain(values) => &values[from..][..buffer.len()],
            Self::Scaled { pairs, scales } => {
                let pairs = &pairs[from / 2..][..buffer.len() / 2];
                widen(simd, pairs, &scales[column..][..PANEL], buffer);
                buffer
            }
        }
    }
}

/// Two weights of a panel's row: that of an output, and in the upper half that of the output
/// [`PAIRS`] further, each as multiple of its scale with [`MIDDLE`] added.
fn pair(low: f32, high: f32) -> u32 {
    let half = |multiple: f32| (multiple.round() as i32 + MIDDLE) as u32;
    half(low) | half(high) << 16
}

/// The inverse of [`pair`], row by row. A whole number in the lowest bits of a float that is
/// 2^23 is that float plus the number, which needs no conversion.
#[inline(always)]
fn widen<S: Simd>(simd: S, pairs: &[u32], scales: &[f32], rows: &mut [f32]) {
    let lanes = PAIRS / S::F32_LANES;
    let magic = simd.splat_u32s(0x4b00_0000);
    let none = simd.splat_f32s(((1 << 23) + MIDDLE) as f32);
    let low = simd.splat_u32s(0xffff);
    let by = simd.splat_u32s(16);
    let (pairs, _) = S::as_simd_u32s(pairs);
    let (scales, _) = S::as_simd_f32s(scales);
    let (rows, _) = S::as_mut_simd_f32s(rows);
    let number = |bits| {
        let bits = simd.or_u32s(bits, magic);
        simd.sub_f32s(simd.transmute_f32s_u32s(bits), none)
    };
    for (pairs, row) in pairs
        .chunks_exact(lanes)
        .zip(rows.chunks_exact_mut(2 * lanes))
    {
        for v in 0..lanes {
            let lower = number(simd.and_u32s(pairs[v], low));
            let upper = number(simd.wrapping_dyn_shr_u32s(pairs[v], by));
            row[v] = simd.mul_f32s(lower, scales[v]);
            row[lanes + v] = simd.mul_f32s(upper, scales[lanes + v]);
        }
    }
}

/// `out = bias + rows · panels`. There are as many rows as `out` has; its rows are `stride`
/// apart and take all panels' outputs.
pub(crate) struct Product<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) panels: Panels<'a>,
    pub(crate) inputs: usize,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) stride: usize,
    pub(crate) out: &'a mut [f32],
    pub(crate) scratch: &'a mut Scratch,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Accumulators of a tile, the panel's two vectors and one of the row must fit the registers.
        match S::F32_LANES {
            16 => self.run::<S, 12>(simd),
            8 => self.run::<S, 6>(simd),
            _ => self.run::<S, 4>(simd),
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn run<S: Simd, const TALL: usize>(self, simd: S) {
        let count = self.out.len().div_ceil(self.stride);
        let Scratch { rows, panel } = self.scratch;
        for block in (0..count).step_by(BLOCK) {
            let end = count.min(block + BLOCK);
            for input in (0..self.inputs).step_by(CHUNK) {
                let some = CHUNK.min(self.inputs - input);
                let rows = sized(rows, (end - block) * some);
                for (row, height) in tiles::<TALL>(block, end) {
                    let tile = &mut rows[(row - block) * some..][..height * some];
                    self.rows.interleave(row, height, input, tile);
                }
                for number in 0..self.panels.count(self.inputs) {
                    let column = number * PANEL;
                    let from = PANEL * (number * self.inputs + input);
                    let panel = sized(panel, PANEL * some);
                    let mut tile = Tile {
                        chunk: self.panels.chunk(simd, column, from, panel),
                        bias: self.bias.filter(|_| input == 0),
                        fresh: input == 0,
                        stride: self.stride,
                        column,
                        out: &mut *self.out,
                    };
                    for (row, height) in tiles::<TALL>(block, end) {
                        let rows = &rows[(row - block) * some..][..height * some];
                        match height {
                            1 => tile.run::<S, 1>(simd, row, rows),
                            2 => tile.run::<S, 2>(simd, row, rows),
                            4 => tile.run::<S, 4>(simd, row, rows),
                            8 => tile.run::<S, 8>(simd, row, rows),
                            _ => tile.run::<S, TALL>(simd, row, rows),
                        }
                    }
                }
            }
        }
    }
}

/// First row and height of each tile: as many of `TALL` rows as there are, the rest in 8, 4, 2 and 1.
#[inline(always)]
fn tiles<const TALL: usize>(from: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut row = from;
    std::iter::from_fn(move || {
        let height = [TALL, 8, 4, 2, 1]
            .into_iter()
            .find(|height| row + height <= end)?;
        row += height;
        Some((row - height, height))
    })
}

/// What some rows add to the outputs of one panel, over one chunk of the inputs.
struct Tile<'a> {
    chunk: &'a [f32],
    bias: Option<&'a [f32]>,
    fresh: bool,
    stride: usize,
    column: usize,
    out: &'a mut [f32],
}

impl Tile<'_> {
    /// `rows` are interleaved.
    #[inline(always)]
    fn run<S: Simd, const TALL: usize>(&mut self, simd: S, row: usize, rows: &[f32]) {
        let (panel, _) = S::as_simd_f32s(self.chunk);
        let step = PANEL / S::F32_LANES;
        for half in (0..step).step_by(WIDE) {
            let mut sums = self.begin::<S, TALL>(simd, row, half);
            for (values, vectors) in rows
                .as_chunks::<TALL>()
                .0
                .iter()
                .zip(panel.chunks_exact(step))
            {
                let vectors = &vectors[half..half + WIDE];
                for r in 0..TALL {
                    let value = simd.splat_f32s(values[r]);
                    for v in 0..WIDE {
                        sums[r][v] = simd.mul_add_f32s(value, vectors[v], sums[r][v]);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                let out = &mut self.out[(row + r) * self.stride + self.column..][..PANEL];
                let (out, _) = S::as_mut_simd_f32s(out);
                out[half..half + WIDE].copy_from_slice(sums);
            }
        }
    }

    #[inline(always)]
    fn begin<S: Simd, const TALL: usize>(
        &self,
        simd: S,
        row: usize,
        half: usize,
    ) -> [[S::f32s; WIDE]; TALL] {
        let mut sums = [[simd.splat_f32s(0.0); WIDE]; TALL];
        if let Some(bias) = self.bias {
            let (bias, _) = S::as_simd_f32s(&bias[self.column..][..PANEL]);
            let bias = &bias[half..half + WIDE];
            for sums in &mut sums {
                sums.copy_from_slice(bias);
            }
        } else if !self.fresh {
            for (r, sums) in sums.iter_mut().enumerate() {
                let out = &self.out[(row + r) * self.stride + self.column..][..PANEL];
                let (out, _) = S::as_simd_f32s(out);
                sums.copy_from_slice(&out[half..half + WIDE]);
            }
        }
        sums
    }
}

/// The first `length` numbers of a buffer that grows as needed.
pub(crate) fn sized(buffer: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if buffer.len() < length {
        buffer.resize(length, 0.0);
    }
    &mut buffer[..length]
}

#[cfg(test)]
mod tests;
