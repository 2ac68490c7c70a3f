//! Matrix products against weights that were packed once.
//!
//! Weights lie in panels of [`PANEL`] outputs, one input after the other, so a
//! product streams them and packs nothing. Invariant: each output is its bias
//! plus the products in the order of the inputs, fused one by one; so neither
//! the vector width nor the other rows change a bit of it.

use pulp::{Arch, Simd, WithSimd};

/// Outputs of a panel; also the width of an attention head.
pub(crate) const PANEL: usize = 32;

/// Inputs of a panel that are used for all rows before the next ones: 16 KiB, half of a first-level cache.
const CHUNK: usize = 128;

/// Rows that meet all panels before the next rows do; with 1536 inputs some 600 KiB.
const BLOCK: usize = 96;

/// Vectors of one row that a tile holds in registers.
const WIDE: usize = 2;

/// A linear layer.
pub(crate) struct Linear {
    inputs: usize,
    panels: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// From `weights` as they are stored: the inputs of the first output, of the second, and so on.
    pub(crate) fn pack(weights: &[f32], bias: Vec<f32>) -> Self {
        let inputs = weights.len() / bias.len();
        let mut panels = Vec::new();
        pack(
            weights.chunks_exact(inputs),
            bias.len(),
            inputs,
            &mut panels,
        );
        Self {
            inputs,
            panels,
            bias,
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Fills `out` with this layer's outputs for all `rows`.
    pub(crate) fn apply(&self, arch: Arch, rows: &[f32], out: &mut [f32]) {
        arch.dispatch(Product {
            rows: Rows {
                values: rows,
                stride: self.inputs,
            },
            panels: &self.panels,
            inputs: self.inputs,
            bias: Some(&self.bias),
            stride: self.bias.len(),
            out,
        });
    }
}

/// Lays vectors of `inputs` numbers into panels; missing outputs of the last panel are zero.
pub(crate) fn pack<'a>(
    vectors: impl Iterator<Item = &'a [f32]>,
    count: usize,
    inputs: usize,
    panels: &mut Vec<f32>,
) {
    panels.clear();
    panels.resize(count.next_multiple_of(PANEL) * inputs, 0.0);
    for (output, vector) in vectors.enumerate() {
        let panel = &mut panels[output / PANEL * PANEL * inputs..][..PANEL * inputs];
        for (row, value) in panel.chunks_exact_mut(PANEL).zip(vector) {
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

/// `out = bias + rows · panels`. There are as many rows as `out` has; its rows are `stride`
/// apart and take all panels' outputs.
pub(crate) struct Product<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) panels: &'a [f32],
    pub(crate) inputs: usize,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) stride: usize,
    pub(crate) out: &'a mut [f32],
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
        for block in (0..count).step_by(BLOCK) {
            let end = count.min(block + BLOCK);
            for input in (0..self.inputs).step_by(CHUNK) {
                let some = PANEL * CHUNK.min(self.inputs - input);
                for (column, panel) in self.panels.chunks_exact(PANEL * self.inputs).enumerate() {
                    let mut tile = Tile {
                        rows: self.rows,
                        chunk: &panel[PANEL * input..][..some],
                        input,
                        bias: self.bias.filter(|_| input == 0),
                        fresh: input == 0,
                        stride: self.stride,
                        column: column * PANEL,
                        out: &mut *self.out,
                    };
                    let mut row = block;
                    while row + TALL <= end {
                        tile.run::<S, TALL>(simd, row);
                        row += TALL;
                    }
                    if row + 8 <= end {
                        tile.run::<S, 8>(simd, row);
                        row += 8;
                    }
                    if row + 4 <= end {
                        tile.run::<S, 4>(simd, row);
                        row += 4;
                    }
                    if row + 2 <= end {
                        tile.run::<S, 2>(simd, row);
                        row += 2;
                    }
                    if row < end {
                        tile.run::<S, 1>(simd, row);
                    }
                }
            }
        }
    }
}

/// What some rows add to the outputs of one panel, over one chunk of the inputs.
struct Tile<'a> {
    rows: Rows<'a>,
    chunk: &'a [f32],
    input: usize,
    bias: Option<&'a [f32]>,
    fresh: bool,
    stride: usize,
    column: usize,
    out: &'a mut [f32],
}

impl Tile<'_> {
    #[inline(always)]
    fn run<S: Simd, const TALL: usize>(&mut self, simd: S, row: usize) {
        let (panel, _) = S::as_simd_f32s(self.chunk);
        let step = PANEL / S::F32_LANES;
        let inputs = panel.len() / step;
        let rows: [&[f32]; TALL] = std::array::from_fn(|r| {
            &self.rows.values[(row + r) * self.rows.stride + self.input..][..inputs]
        });
        for half in (0..step).step_by(WIDE) {
            let mut sums = self.begin::<S, TALL>(simd, row, half);
            for (input, vectors) in panel.chunks_exact(step).enumerate().take(inputs) {
                let vectors = &vectors[half..half + WIDE];
                for r in 0..TALL {
                    let value = simd.splat_f32s(rows[r][input]);
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
        let zero = [simd.splat_f32s(0.0); WIDE];
        if let Some(bias) = self.bias {
            let (bias, _) = S::as_simd_f32s(&bias[self.column..][..PANEL]);
            return [std::array::from_fn(|v| bias[half + v]); TALL];
        }
        if self.fresh {
            return [zero; TALL];
        }
        std::array::from_fn(|r| {
            let out = &self.out[(row + r) * self.stride + self.column..][..PANEL];
            let (out, _) = S::as_simd_f32s(out);
            std::array::from_fn(|v| out[half + v])
        })
    }
}

#[cfg(test)]
mod tests;
