//! What the directory and the DuckDB file cost. `index_perf [pages]`, default 100000.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use escurel_index::{
    BlockRow, Directory, Duck, EntryDraft, Facts, LinkFact, Order, Scope, VersionChange, Walk,
};
use escurel_md::{BlockKind, Layout, LinkKind, Wikilink, parse};
use escurel_store::{ObjectId, Uid};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pages: u64 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    let folder = std::env::temp_dir().join(format!("escurel-index-perf-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let dir = directory(pages, &folder)?;
    duck(&dir, pages.min(40_000), &folder)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn directory(
    pages: u64,
    folder: &std::path::Path,
) -> Result<Directory, Box<dyn std::error::Error>> {
    let texts: Vec<(String, String)> = (0..pages).map(|i| page(i, pages, 0)).collect();
    let start = Instant::now();
    for (path, text) in &texts {
        black_box(Facts::of(&parse(path, text.as_bytes(), Layout::Tenant)));
    }
    say("parse, per page", start, pages);
    drop(texts);
    let before = resident();
    let mut dir = Directory::new();
    let mut spent = std::time::Duration::ZERO;
    for i in 0..pages {
        let draft = draft(i, pages, 0);
        let start = Instant::now();
        dir.upsert(draft);
        spent += start.elapsed();
    }
    println!(
        "{:<42}{:>12.2} us",
        "first upsert, per page",
        spent.as_secs_f64() * 1e6 / pages as f64
    );
    println!(
        "{:<42}{:>12.1} MB (before: {before:.1})",
        "resident memory of the directory",
        resident() - before
    );
    writes(&mut dir, pages);
    reads(&dir, pages);
    let file = folder.join("directory.bin");
    let start = Instant::now();
    dir.save(&file, 1, 1)?;
    say("save", start, 1);
    println!(
        "{:<42}{:>12.1} MB",
        "its file",
        std::fs::metadata(&file)?.len() as f64 / 1e6
    );
    for _ in 0..3 {
        let start = Instant::now();
        let loaded = Directory::load(&file)?;
        say("load", start, 1);
        drop(loaded);
    }
    Ok(dir)
}

fn writes(dir: &mut Directory, pages: u64) {
    let n = 200.min(pages);
    let start = Instant::now();
    for _ in 0..10_000 {
        black_box(dir.clone());
    }
    say("clone", start, 10_000);
    for (what, round) in [
        ("upsert after a published clone, same names", 1),
        ("upsert after a published clone, new names", 2),
    ] {
        let mut kept = Vec::new();
        let mut spent = Vec::new();
        for k in 0..n {
            let draft = draft(k * (pages / n), pages, round);
            kept.push(dir.clone());
            let start = Instant::now();
            dir.upsert(draft);
            spent.push(start.elapsed());
        }
        spent.sort();
        let us = |i: u64| spent[(i * n / 100).min(n - 1) as usize].as_secs_f64() * 1e6;
        println!("{what:<42}{:>12.2} us p50, {:.2} p95", us(50), us(95));
    }
}

fn reads(dir: &Directory, pages: u64) {
    let scope = Scope::ALL;
    let entries: Vec<_> = dir.iter().cloned().collect();
    let links: Vec<(&LinkFact, usize)> = entries
        .iter()
        .enumerate()
        .step_by(7)
        .flat_map(|(i, e)| e.facts.links.iter().map(move |l| (l, i)))
        .collect();
    let asked: Vec<(Wikilink, LinkKind, usize)> = links
        .iter()
        .take(100_000)
        .map(|(l, i)| (l.wikilink(), l.kind, *i))
        .collect();
    let start = Instant::now();
    let found = asked
        .iter()
        .filter(|(l, k, i)| {
            dir.resolve(l, *k, Some(&entries[*i]), &scope)
                .found()
                .is_some()
        })
        .count();
    say("resolve", start, asked.len() as u64);
    println!("{:<42}{:>12} of {}", "  found", found, asked.len());
    let start = Instant::now();
    let edges: usize = entries
        .iter()
        .step_by(10)
        .map(|e| dir.incoming(e, &scope).len())
        .sum();
    say("incoming", start, pages / 10);
    println!("{:<42}{:>12}", "  edges", edges);
    let hub = entries
        .iter()
        .find(|e| &*e.facts.id == "hub")
        .map(|e| dir.incoming(e, &scope));
    let start = Instant::now();
    let hub_edges = entries
        .iter()
        .find(|e| &*e.facts.id == "hub")
        .map_or(0, |e| dir.incoming(e, &scope).len());
    say("incoming of a hub", start, 1);
    println!(
        "{:<42}{:>12} {}",
        "  edges",
        hub_edges,
        hub.map_or(0, |h| h.len())
    );
    let start = Instant::now();
    let counts = dir.link_counts();
    say("link counts", start, 1);
    println!("  {counts:?}");
    for filter in [
        json!({"status": "open", "tier": {">=": 3}}),
        json!({"at": {">=": "2026-06-01"}, "status": {"not": "open"}}),
    ] {
        let filter = dir
            .compile_filter(filter.as_object().expect("object"))
            .expect("filter");
        let start = Instant::now();
        let hits = (0..50)
            .map(|_| dir.filter_pages(&filter).len())
            .sum::<usize>()
            / 50;
        say("filter on two keys", start, 50);
        println!("{:<42}{:>12}", "  hits", hits);
    }
    for order in [Order::Path, Order::AtDesc] {
        let start = Instant::now();
        for _ in 0..1000 {
            let mut rows = 0;
            dir.instances("customer", order, None, &mut |e| {
                black_box(e);
                rows += 1;
                if rows == 50 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        }
        say("instances(50)", start, 1000);
    }
}

fn duck(
    dir: &Directory,
    pages: u64,
    folder: &std::path::Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let (duck, _) = Duck::open(folder, 1)?;
    let changes: Vec<VersionChange> = dir
        .iter()
        .take(pages as usize)
        .enumerate()
        .map(|(i, e)| change(e, i as u64 + 1))
        .collect();
    let start = Instant::now();
    for part in changes.chunks(4096) {
        duck.apply(part, &[], dir, part.last().map_or(0, |c| c.seq))?;
    }
    say("DuckDB bulk, all pages", start, 1);
    println!(
        "{:<42}{:>12.0} pages/s, {:.0} links per page",
        "  rate",
        pages as f64 / start.elapsed().as_secs_f64(),
        changes[0].content.as_ref().map_or(0, |f| f.links.len()) as f64
    );
    let start = Instant::now();
    duck.checkpoint()?;
    say("checkpoint", start, 1);
    let mut seq = pages;
    for batch in [1, 32] {
        let start = Instant::now();
        for k in 0..20 {
            let list: Vec<_> = (0..batch)
                .map(|j| {
                    seq += 1;
                    VersionChange {
                        version: 2 + k,
                        seq,
                        ..changes[(k * 977 + j) as usize % changes.len()].clone()
                    }
                })
                .collect();
            duck.apply(&list, &[list[0].no], dir, seq)?;
        }
        say(&format!("apply of {batch} replaced"), start, 20);
    }
    let hidden = Default::default();
    let mid = changes[changes.len() / 2].no;
    for _ in 0..2 {
        let start = Instant::now();
        let walk = Walk {
            start: mid,
            up: true,
            relations: &[],
            max_hops: 5,
        };
        let hops = duck.walk(&walk, i64::MAX - 1, &hidden)?;
        say("walk in the past, 5 hops", start, 1);
        let start = Instant::now();
        black_box(dir.walk(&walk, &Scope::ALL));
        say("walk now, 5 hops", start, 1);
        println!("{:<42}{:>12}", "  hops", hops.len());
    }
    let start = Instant::now();
    duck.drift(None, &hidden)?;
    say("drift", start, 1);
    let start = Instant::now();
    for c in changes.iter().step_by(changes.len() / 20) {
        black_box(duck.versions(c.uid)?);
    }
    say("versions of a page", start, 20);
    println!("{:<42}{:>12.1} MB resident", "at the end", resident());
    Ok(())
}

fn change(e: &escurel_index::Entry, seq: u64) -> VersionChange {
    let blocks = (0..8)
        .map(|i| BlockRow {
            anchor: format!("b-{:08x}", seq * 8 + i),
            kind: BlockKind::Paragraph,
            line: i as u32,
        })
        .collect();
    VersionChange {
        no: e.no,
        uid: e.uid,
        version: 1,
        seq,
        path: e.path.clone(),
        from: e.from,
        at: e.written_at,
        actor: e.author.clone(),
        origin: "adopted".into(),
        object: e.object.to_string(),
        bytes: 4000,
        content: Some(e.facts.clone()),
        blocks,
    }
}

fn page(i: u64, pages: u64, round: u64) -> (String, String) {
    let skill = ["customer", "meeting", "decision", "project"][(i % 4) as usize];
    let target = |k: u64| rapidhash::v3::rapidhash_v3(&(i * 3 + k).to_le_bytes()) % pages;
    let id = if i == 0 {
        "hub".to_owned()
    } else {
        format!("page-{i}")
    };
    let path = format!("markdown/instances/{skill}/{id}.md");
    let link = |t: u64| {
        format!(
            "[[{}::page-{t}]]",
            ["customer", "meeting", "decision", "project"][(t % 4) as usize]
        )
    };
    let status = ["open", "closed", "in_review"][((i + round) % 3) as usize];
    let title = if round == 2 {
        format!("Renamed page number {i}")
    } else {
        format!("Page number {i}")
    };
    let third = if i.is_multiple_of(10) {
        "[[customer::hub]]".to_owned()
    } else {
        link(target(2))
    };
    let text = format!(
        "---\nskill: {skill}\nid: {id}\nat: 2026-{:02}-{:02}T{:02}:{:02}:00Z\nstatus: {status}\ntier: {}\nderived_from: \"{}\"\n---\n# {title}\n\nSee {} and [[page-{}]].\n\n## Details\n\nText {third}.\n",
        i % 12 + 1,
        i % 28 + 1,
        i % 24,
        i % 60,
        i % 5,
        link(target(0)),
        link(target(1)),
        target(3),
    );
    (path, text)
}

fn draft(i: u64, pages: u64, round: u64) -> EntryDraft {
    let (path, text) = page(i, pages, round);
    let page = parse(&path, text.as_bytes(), Layout::Tenant);
    EntryDraft {
        uid: Uid((1 << 100) + u128::from(i)),
        path: path.into(),
        version: 1 + round,
        seq: i + 1,
        from: i as i64,
        written_at: i as i64,
        author: "ann".into(),
        stat: Some(Default::default()),
        object: ObjectId([i as u8; 32]),
        digest: i,
        bytes: text.len() as u32,
        missing: false,
        facts: Arc::new(Facts::of(&page)),
    }
}

fn say(what: &str, start: Instant, n: u64) {
    let us = start.elapsed().as_secs_f64() * 1e6 / n as f64;
    if us > 10_000.0 {
        println!("{what:<42}{:>12.2} ms", us / 1e3)
    } else {
        println!("{what:<42}{us:>12.2} us")
    }
}

fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status.lines().find_map(|l| {
        l.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<f64>()
            .ok()
    });
    kb.unwrap_or(0.0) / 1e3
}
