//! Files kept from fuzzing and from real collections.

use std::path::{Path, PathBuf};

use escurel_md::{Layout, Wikilink, parse, set_frontmatter_key, units};
use serde_json::json;

fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut out: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    out.sort();
    out
}

#[test]
fn every_kept_input_is_a_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut seen = 0;
    for kind in ["frontmatter", "wikilink", "page"] {
        for file in files(&root.join(kind)) {
            let bytes = std::fs::read(&file).unwrap_or_default();
            let page = parse("corpus/file.md", &bytes, Layout::Vault);
            assert!(
                page.links
                    .iter()
                    .all(|l| page.text.get(l.span.clone()) == Some(l.raw.as_str())),
                "{}",
                file.display()
            );
            assert!(!units(&page).is_empty());
            let _ = set_frontmatter_key(&bytes, "id", Some(&json!("x")));
            if let Ok(link) = Wikilink::parse(&String::from_utf8_lossy(&bytes)) {
                assert_eq!(Wikilink::parse(&link.render()), Ok(link));
            }
            seen += 1;
        }
    }
    assert!(seen >= 30, "only {seen} inputs were found");
}

/// `ESCUREL_CORPUS=/path/to/folder cargo test … throughput -- --ignored --nocapture`
#[test]
#[ignore = "prints figures for a folder named in the environment"]
fn throughput() {
    let Some(root) = std::env::var_os("ESCUREL_CORPUS") else {
        return;
    };
    let mut folders = vec![PathBuf::from(root)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for file in files(&folder) {
            if file.is_dir() {
                folders.push(file);
            } else if file.extension().is_some_and(|e| e == "md") {
                sources.push((
                    file.display().to_string(),
                    std::fs::read(&file).unwrap_or_default(),
                ));
            }
        }
    }
    let bytes: usize = sources.iter().map(|(_, b)| b.len()).sum();
    for _ in 0..3 {
        let start = crate::hostile::clock();
        let (mut links, mut issues, mut blocks) = (0, 0, 0);
        for (path, bytes) in &sources {
            let page = parse(path, bytes, Layout::Vault);
            links += page.links.len();
            blocks += page.blocks.len();
            issues += page.issues.len();
        }
        let seconds = (crate::hostile::clock() - start).as_secs_f64();
        println!(
            "{} pages, {bytes} bytes: {:.0} pages/s, {:.1} MB/s; {links} links, {blocks} blocks, {issues} issues",
            sources.len(),
            sources.len() as f64 / seconds,
            bytes as f64 / seconds / 1e6
        );
    }
    for (path, bytes) in &sources {
        for issue in parse(path, bytes, Layout::Vault).issues.iter().take(3) {
            println!(
                "{path}: {} {} {}",
                issue.code, issue.location, issue.message
            );
        }
    }
}
