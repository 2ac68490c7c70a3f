use super::*;

fn numbers(count: usize, spread: f64) -> Vec<f32> {
    let mut state = 7u64;
    let draw = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (((state >> 33) as f64 / (1u64 << 30) as f64 - 1.0) * spread) as f32
    };
    std::iter::repeat_with(draw).take(count).collect()
}

/// The error function by its series, which converges everywhere.
fn exact_erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

#[test]
fn gelu_is_within_a_millionth() {
    let mut values: Vec<f32> = (-6000..=6000).map(|i| i as f32 / 1000.0).collect();
    let before = values.clone();
    gelu(Arch::new(), &mut values);
    for (x, y) in before.into_iter().zip(values) {
        let exact = 0.5 * f64::from(x) * (1.0 + exact_erf(f64::from(x) / 2f64.sqrt()));
        assert!((f64::from(y) - exact).abs() < 1e-6, "{x}: {y}, not {exact}");
    }
}

#[test]
fn exp_is_within_two_units_in_the_last_place() {
    for i in 0..87_000 {
        let x = -(i as f32) / 1000.0;
        let exact = f64::from(x).exp();
        assert!((f64::from(exp(x)) - exact).abs() < 2.4e-7 * exact, "{x}");
    }
    assert!(exp(-1e30) < 1e-37);
}

#[test]
fn softmax_is_a_distribution_of_the_width_and_leaves_the_padding() {
    for width in [1, 2, 15, 16, 17, 64, 100] {
        let stride = width + 3;
        let before = numbers(stride * 4, 20.0);
        let mut rows = before.clone();
        softmax(Arch::new(), &mut rows, stride, width);
        for (row, before) in rows.chunks(stride).zip(before.chunks(stride)) {
            let total: f64 = before[..width].iter().map(|x| f64::from(*x).exp()).sum();
            for (y, x) in row[..width].iter().zip(before) {
                assert!((f64::from(*y) - f64::from(*x).exp() / total).abs() < 1e-6);
            }
            assert_eq!(row[width..], before[width..]);
        }
    }
}

#[allow(
    clippy::needless_range_loop,
    reason = "several rows are walked at once"
)]
#[test]
fn the_norm_of_a_sum_has_the_learnt_scale_and_shift() {
    let width = 64;
    let norm = Norm {
        scale: numbers(width, 2.0),
        shift: numbers(width, 1.0),
    };
    let (before, added) = (numbers(width * 3, 5.0), numbers(width * 3, 3.0));
    let mut rows = before.clone();
    norm.add(Arch::new(), &mut rows, &added);
    for (at, row) in rows.chunks(width).enumerate() {
        let sum = |i: usize| f64::from(before[at * width + i]) + f64::from(added[at * width + i]);
        let mean = (0..width).map(sum).sum::<f64>() / width as f64;
        let variance = (0..width).map(|i| (sum(i) - mean).powi(2)).sum::<f64>() / width as f64;
        for i in 0..width {
            let exact = (sum(i) - mean) / variance.sqrt() * f64::from(norm.scale[i]);
            assert!((f64::from(row[i]) - exact - f64::from(norm.shift[i])).abs() < 3e-6);
        }
    }
}

#[test]
fn pooling_gives_the_direction_of_the_mean() {
    assert_eq!(pool(&[3.0, 0.0, 0.0, 4.0], 2), [0.6, 0.8]);
    assert_eq!(pool(&[0.0, 0.0], 2), [0.0, 0.0]);
}
