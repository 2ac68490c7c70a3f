//! Times the index on a generated corpus: `text_perf [pages]`. Words follow Zipf's
//! law; one thread searches.

use std::time::{Duration, Instant};

use escurel_search::{AdmitAll, Doc, DocUnit, Generation, Query, TextIndex, UnitBlock};

const UNITS: usize = 5;
const WORDS_PER_UNIT: usize = 60;
const VOCABULARY: usize = 60_000;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A rank with probability about 1/rank.
    fn zipf(&mut self) -> usize {
        ((VOCABULARY as f64).powf(self.next()) as usize).min(VOCABULARY - 1)
    }
}

fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "lo", "mi", "ter", "san", "dor", "vel", "pu", "ren", "go", "bax", "ni", "qua", "sto",
        "fe", "zu",
    ];
    let mut rest = rank + 16;
    let mut out = String::new();
    while rest > 0 {
        out.push_str(SYLLABLES[rest % 16]);
        rest /= 16;
    }
    out
}

fn page(rng: &mut Rng, number: u32, seq: u64) -> Doc {
    let mut text = |count: usize| {
        (0..count)
            .map(|_| word(rng.zipf()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let title = text(4);
    let units = (0..UNITS).map(|_| {
        let (first, second) = (text(WORDS_PER_UNIT / 2), text(WORDS_PER_UNIT / 2));
        let start = first.len() as u32 + 2;
        let block = |anchor: &str, start| UnitBlock {
            anchor: anchor.into(),
            start,
        };
        DocUnit {
            headings: text(3),
            text: format!("{first}\n\n{second}"),
            blocks: vec![block("a", 0), block("b", start)],
        }
    });
    let units = units.collect();
    Doc {
        page: number,
        seq,
        skill: "note".into(),
        title,
        tags: vec!["generated".into()],
        fields_text: text(5),
        units,
        ..Doc::default()
    }
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    println!("{name:<44} p50 {:>8.3} ms   p95 {:>8.3} ms", at(50), at(95));
}

fn search(index: &TextIndex, name: &str, queries: &[String], k: usize, by_page: bool) {
    let snapshot = index.snapshot();
    let times = queries.iter().map(|text| {
        let texts = [text.clone()];
        let query = Query {
            texts: &texts,
            k,
            by_page,
            candidates: &AdmitAll,
            audience: None,
            only_page: None,
            vectors: None,
            reranker: None,
        };
        let start = Instant::now();
        let answer = snapshot.search(&query).expect("search");
        assert!(answer.hits.len() <= k);
        start.elapsed()
    });
    report(name, times.collect());
}

/// Queries of a length; `common` takes words as frequent as in the text.
fn queries(rng: &mut Rng, words: usize, common: bool) -> Vec<String> {
    let pick = |rng: &mut Rng| {
        if common {
            rng.zipf()
        } else {
            (rng.next() * 5_000.0) as usize + 20
        }
    };
    (0..300)
        .map(|_| {
            (0..words)
                .map(|_| word(pick(rng)))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

fn main() {
    let pages: u32 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("text");
    let index = TextIndex::open(&path, Generation::current(1))
        .expect("open")
        .index;
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let mut spent = Duration::ZERO;
    for from in (0..pages).step_by(2000) {
        let docs: Vec<Doc> = (from..pages.min(from + 2000))
            .map(|n| page(&mut rng, n, 1))
            .collect();
        let start = Instant::now();
        index.add_bulk(docs).expect("add");
        spent += start.elapsed();
    }
    let start = Instant::now();
    index.commit(1).expect("commit");
    spent += start.elapsed();
    let units = pages as f64 * UNITS as f64;
    println!(
        "bulk: {:.1} s, {:.0} units/s, {:?}",
        spent.as_secs_f64(),
        units / spent.as_secs_f64(),
        index.stats()
    );
    memory("indexed");
    let start = Instant::now();
    index.settle();
    println!(
        "merges: {:.1} s, {:?}",
        start.elapsed().as_secs_f64(),
        index.stats()
    );

    memory("merged");
    for (words, name) in [
        (1, "1 word"),
        (2, "2 words"),
        (4, "4 words"),
        (10, "10 words (sentence)"),
    ] {
        for (common, kind) in [
            (false, "of the 5,000 most frequent"),
            (true, "as in the text"),
        ] {
            let queries = queries(&mut rng, words, common);
            search(&index, &format!("{name} {kind}"), &queries, 10, false);
        }
    }
    let two = queries(&mut rng, 2, false);
    search(&index, "2 words, by page", &two, 10, true);
    search(&index, "2 words, k = 200", &two, 200, false);
    let quoted: Vec<String> = two.iter().map(|text| format!("\"{text}\"")).collect();
    search(&index, "quoted pair", &quoted, 10, false);

    memory("searched");
    let mut adds = Vec::new();
    for number in 0..500u32 {
        let doc = page(&mut rng, number, 2);
        let start = Instant::now();
        index.add(vec![doc]);
        adds.push(start.elapsed());
    }
    report("add one page", adds);
    search(&index, "2 words with 500 pages in memory", &two, 10, false);
    let start = Instant::now();
    index.commit(2).expect("commit");
    println!(
        "commit of 500 pages: {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    index.add(vec![page(&mut rng, 1, 3)]);
    let start = Instant::now();
    index.commit(3).expect("commit");
    println!(
        "commit of 1 page: {:.1} ms, {:?}",
        start.elapsed().as_secs_f64() * 1e3,
        index.stats()
    );
    memory("added");
    drop(index);
    let start = Instant::now();
    let opened = TextIndex::open(&path, Generation::current(1)).expect("open");
    println!(
        "open: {:.1} ms, {:?}",
        start.elapsed().as_secs_f64() * 1e3,
        opened.state
    );
    memory("reopened");
}

fn memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
    };
    println!("{when}: {} {}", line("RssAnon"), line("VmHWM"));
}
