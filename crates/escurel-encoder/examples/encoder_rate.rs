//! Prints documents/s at 128 tokens and ms for a query of 16 tokens, on one thread.
//! The argument is the folder with the model's files.

use std::path::PathBuf;
use std::time::Instant;

use escurel_encoder::{Encoder, EncoderError};

fn main() -> Result<(), EncoderError> {
    let named = std::env::args_os().nth(1);
    let Some(dir) = named.or_else(|| std::env::var_os("ESCUREL_EMBEDDING_MODEL_DIR")) else {
        eprintln!("usage: encoder_rate DIR, or set ESCUREL_EMBEDDING_MODEL_DIR");
        std::process::exit(2);
    };
    let start = Instant::now();
    let encoder = Encoder::open(&PathBuf::from(dir))?;
    let open = start.elapsed().as_secs_f64() * 1e3;
    println!("open: {open:.0} ms ({})", encoder.id());

    // Such a word is one token; two special ones come with each text.
    let document = "water ".repeat(126);
    let documents = vec![document.as_str(); 16];
    let query = "water ".repeat(14);
    let all = measure(8, 2 * documents.len(), || {
        encoder.encode(&documents);
        encoder.encode(&documents);
    });
    let one = measure(8, 40, || {
        (0..40).for_each(|_| drop(encoder.encode(&[&query])))
    });
    println!(
        "documents of 128 tokens: {:.1}/s, best {:.1}/s, {:.1}/s of processor time",
        1.0 / all.wall,
        1.0 / all.best,
        1.0 / all.processor
    );
    println!(
        "query of 16 tokens: {:.2} ms, best {:.2} ms, {:.2} ms of processor time",
        one.wall * 1e3,
        one.best * 1e3,
        one.processor * 1e3
    );
    Ok(())
}

/// Seconds for one of the things that were done.
struct Spent {
    /// Median.
    wall: f64,
    best: f64,
    /// Median of what other jobs did not take; as `wall` where the system does not tell.
    processor: f64,
}

fn measure(times: usize, things: usize, work: impl Fn()) -> Spent {
    work();
    let one = |_| {
        let (wall, before) = (Instant::now(), processor_seconds());
        work();
        let wall = wall.elapsed().as_secs_f64() / things as f64;
        let processor = before.zip(processor_seconds()).map(|(from, to)| to - from);
        (wall, processor.map_or(wall, |all| all / things as f64))
    };
    let (wall, processor): (Vec<f64>, Vec<f64>) = (0..times).map(one).unzip();
    let best = wall.iter().copied().fold(f64::INFINITY, f64::min);
    Spent {
        wall: median(wall),
        best,
        processor: median(processor),
    }
}

fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
