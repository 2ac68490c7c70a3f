use super::*;
use pulp::{Scalar128b, Scalar256b, Scalar512b};

fn number(seed: usize) -> f32 {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

struct Case {
    rows: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
}

fn case(count: usize, inputs: usize, outputs: usize) -> Case {
    Case {
        rows: (0..count * inputs).map(number).collect(),
        weights: (0..outputs * inputs).map(|i| number(i + 77)).collect(),
        bias: (0..outputs).map(|i| number(i + 999)).collect(),
        inputs,
    }
}

impl Case {
    fn run(&self, with: impl FnOnce(Product)) -> Vec<f32> {
        let layer = Linear::pack(&self.weights, self.bias.clone());
        let mut out = vec![f32::NAN; self.rows.len() / self.inputs * self.bias.len()];
        with(Product {
            rows: Rows {
                values: &self.rows,
                stride: self.inputs,
            },
            panels: layer.panels(),
            inputs: self.inputs,
            bias: Some(&layer.bias),
            stride: self.bias.len(),
            out: &mut out,
            scratch: &mut Scratch::default(),
        });
        out
    }

    /// With the weights as they are kept: 65,535 steps between the greatest and its negative.
    fn exact(&self, row: usize, output: usize) -> f64 {
        let row = &self.rows[row * self.inputs..];
        let weights = &self.weights[output * self.inputs..][..self.inputs];
        let most = weights
            .iter()
            .fold(0f32, |most, weight| most.max(weight.abs()));
        let step = most / 32767.0;
        let kept = |weight: f32| f64::from((weight / step).round()) * f64::from(step);
        let products = (0..self.inputs).map(|i| f64::from(row[i]) * kept(weights[i]));
        f64::from(self.bias[output]) + products.sum::<f64>()
    }
}

#[test]
fn products_are_those_of_the_definition_for_any_number_of_rows() {
    for (count, inputs, outputs) in [(1, 1, 32), (2, 32, 64), (23, 129, 32), (97, 300, 96)] {
        let case = case(count, inputs, outputs);
        let out = case.run(|product| Arch::new().dispatch(product));
        for (at, value) in out.iter().enumerate() {
            let exact = case.exact(at / outputs, at % outputs);
            assert!(
                (f64::from(*value) - exact).abs() < 2e-6 * exact.abs().max(5.0),
                "{value}, not {exact}"
            );
        }
    }
}

#[test]
fn no_vector_width_changes_a_bit() {
    let case = case(31, 260, 64);
    let here = case.run(|product| Arch::new().dispatch(product));
    assert_eq!(here, case.run(|product| product.with_simd(Scalar128b)));
    assert_eq!(here, case.run(|product| product.with_simd(Scalar256b)));
    assert_eq!(here, case.run(|product| product.with_simd(Scalar512b)));
}

#[test]
fn a_row_alone_is_what_it_is_among_others() {
    let many = case(40, 260, 64);
    let all = many.run(|product| Arch::new().dispatch(product));
    for (row, expected) in all.chunks(64).enumerate() {
        let one = Case {
            rows: many.rows[row * 260..][..260].to_vec(),
            ..case(1, 260, 64)
        };
        assert_eq!(one.run(|product| Arch::new().dispatch(product)), expected);
    }
}

#[test]
fn weights_are_kept_within_half_a_step_of_the_greatest_of_their_output() {
    let mut case = case(1, 129, 40);
    case.weights[..129].fill(0.0);
    case.weights[129..258]
        .iter_mut()
        .for_each(|weight| *weight *= 1e-3);
    let layer = Linear::pack(&case.weights, case.bias.clone());
    let mut rows = vec![f32::NAN; 2 * layer.pairs.len()];
    for column in [0, PANEL] {
        let from = column * case.inputs;
        let rows = &mut rows[from..][..PANEL * case.inputs];
        layer.panels().chunk(Scalar128b, column, from, rows);
    }
    for (output, weights) in case.weights.chunks_exact(case.inputs).enumerate() {
        let most = weights
            .iter()
            .fold(0f32, |most, weight| most.max(weight.abs()));
        for (input, weight) in weights.iter().enumerate() {
            let panel = &rows[output / PANEL * PANEL * case.inputs..];
            let kept = panel[input * PANEL + output % PANEL];
            assert!(
                (kept - weight).abs() <= most * 0.501 / 32767.0,
                "{kept}, not {weight}"
            );
        }
    }
}
