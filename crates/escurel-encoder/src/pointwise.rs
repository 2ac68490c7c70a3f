//! The loops over single numbers: GELU, softmax, layer norm, pooling.
//!
//! Written plainly and compiled for each vector width at run time. Sums run in
//! [`LANES`] lanes whatever the width is, so that the width changes no bit.

use pulp::{Arch, Simd, WithSimd};

const LANES: usize = 16;

/// x · Φ(x) for each number.
pub(crate) fn gelu(arch: Arch, values: &mut [f32]) {
    struct Gelu<'a>(&'a mut [f32]);
    impl WithSimd for Gelu<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            for value in self.0 {
                let half = 0.5 * *value;
                *value = half.mul_add(erf(*value * std::f32::consts::FRAC_1_SQRT_2), half);
            }
        }
    }
    arch.dispatch(Gelu(values));
}

/// Makes the first `width` numbers of each row, `stride` apart, a distribution.
pub(crate) fn softmax(arch: Arch, rows: &mut [f32], stride: usize, width: usize) {
    struct Softmax<'a>(&'a mut [f32], usize, usize);
    impl WithSimd for Softmax<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            for row in self.0.chunks_mut(self.1) {
                let row = &mut row[..self.2];
                let most = fold(row, f32::NEG_INFINITY, |a, b| if a > b { a } else { b });
                for value in &mut *row {
                    *value = exp(*value - most);
                }
                let scale = 1.0 / fold(row, 0.0, |a, b| a + b);
                for value in row {
                    *value *= scale;
                }
            }
        }
    }
    arch.dispatch(Softmax(rows, stride, width));
}

/// Layer normalisation with a learnt scale and shift.
pub(crate) struct Norm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
}

impl Norm {
    const EPSILON: f32 = 1e-12;

    /// Replaces each of `rows` by the norm of its sum with the same row of `added`.
    pub(crate) fn add(&self, arch: Arch, rows: &mut [f32], added: &[f32]) {
        struct Add<'a>(&'a Norm, &'a mut [f32], &'a [f32]);
        impl WithSimd for Add<'_> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) {
                let width = self.0.scale.len();
                let rows = self.1.chunks_exact_mut(width);
                for (row, added) in rows.zip(self.2.chunks_exact(width)) {
                    for (value, added) in row.iter_mut().zip(added) {
                        *value += added;
                    }
                    self.0.row(row);
                }
            }
        }
        arch.dispatch(Add(self, rows, added));
    }

    #[inline(always)]
    fn row(&self, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = fold(row, 0.0, |a, b| a + b) / count;
        for value in &mut *row {
            *value -= mean;
        }
        let variance = sum_of_squares(row) / count;
        let factor = 1.0 / (variance + Self::EPSILON).sqrt();
        for ((value, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
            *value = (*value * factor).mul_add(*scale, *shift);
        }
    }
}

/// The mean of the rows, at unit length.
pub(crate) fn pool(rows: &[f32], width: usize) -> Vec<f32> {
    let mut mean = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for (sum, value) in mean.iter_mut().zip(row) {
            *sum += value;
        }
    }
    // The length makes the number of rows fall out.
    let length = sum_of_squares(&mean).sqrt().max(f32::MIN_POSITIVE);
    for value in &mut mean {
        *value /= length;
    }
    mean
}

#[inline(always)]
fn sum_of_squares(row: &[f32]) -> f32 {
    fold_with(
        row,
        0.0,
        |sum, value| value.mul_add(value, sum),
        |a, b| a + b,
    )
}

#[inline(always)]
fn fold(row: &[f32], start: f32, op: impl Fn(f32, f32) -> f32 + Copy) -> f32 {
    fold_with(row, start, op, op)
}

#[inline(always)]
fn fold_with(
    row: &[f32],
    start: f32,
    add: impl Fn(f32, f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [start; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = add(lanes[lane], chunk[lane]);
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        lanes[lane] = add(lanes[lane], *value);
    }
    lanes.into_iter().fold(start, join)
}

/// e^x for x ≤ 0, to about one unit in the last place.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding 1.5 · 2^23 rounds to an integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > -87.0 { x } else { -87.0 };
    let rounded = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let power = rounded - ROUND;
    let r = power.mul_add(-LN_2_LOW, power.mul_add(-LN_2_HIGH, x));
    let mut p = 1.987_569_1e-4_f32;
    for c in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        5e-1,
    ] {
        p = p.mul_add(r, c);
    }
    let p = p.mul_add(r * r, r) + 1.0;
    p * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()))
}

/// The error function as a quotient of two polynomials, within 5e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let mut above = -2.726_142_3e-10_f32;
    for c in [
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_5e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ] {
        above = above.mul_add(square, c);
    }
    let mut below = -1.456_607_2e-5_f32;
    for c in [
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329e-3,
        -1.426_473_9e-2,
    ] {
        below = below.mul_add(square, c);
    }
    x * above / below
}

#[cfg(test)]
mod tests;
