//! The folder that is measured, and what to ask about it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::rng::Rng;
use crate::words::Vocabulary;

/// Pages kept in mind to ask about.
const SAMPLE: usize = 400;
const SKILLS: &[&str] = &[
    "customer", "project", "meeting", "person", "product", "decision", "incident", "dataset",
    "analysis", "result",
];
const STATUS: &[&str] = &["open", "active", "waiting", "done", "dropped"];
const TIER: &[&str] = &["anchor", "standard", "trial", "partner"];

/// One page to ask about.
pub struct Sample {
    /// As the server names it: the path in the folder.
    pub page_id: String,
    pub wikilink: String,
    /// Words of the page in their order, long enough to be worth a search.
    pub words: Vec<String>,
}

pub struct Corpus {
    pub kind: String,
    pub pages: usize,
    pub bytes: u64,
    pub samples: Vec<Sample>,
    pub skills: Vec<String>,
    /// Two frontmatter keys with values that occur, if the corpus has any.
    pub filters: Vec<[(String, String); 2]>,
}

/// Reads `1k`, `10k`, `100k` or a number.
pub fn count(text: &str) -> Result<usize, String> {
    let (digits, times) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    match digits.parse::<usize>() {
        Ok(n) if (1..=1_000_000 / times).contains(&n) => Ok(n * times),
        _ => Err("a number of pages from 1 to 1000k".to_owned()),
    }
}

/// Writes pages of about five blocks and three typed links each.
pub fn generate(folder: &Path, pages: usize, seed: u64) -> Result<Corpus> {
    let mut rng = Rng::new(seed);
    let words = Vocabulary::new(20_000, &mut rng);
    for skill in SKILLS {
        let dir = folder.join("instances").join(skill);
        fs::create_dir_all(dir)?;
        write_skill(folder, skill)?;
    }
    let mut text = String::new();
    for n in 0..pages {
        text.clear();
        page(n, pages, &words, &mut rng, &mut text);
        fs::write(
            folder
                .join("instances")
                .join(skill_of(n))
                .join(format!("{}.md", id(n))),
            &text,
        )?;
    }
    survey(folder, format!("generated {pages}"), &mut rng)
}

/// Copies the markdown files of a folder, so that the original stays as it is.
pub fn copy(source: &Path, folder: &Path, seed: u64) -> Result<Corpus> {
    ensure!(source.is_dir(), "no such folder: {}", source.display());
    let mut files = Vec::new();
    walk(source, &mut files)?;
    for file in &files {
        let target = folder.join(file.strip_prefix(source)?);
        fs::create_dir_all(target.parent().unwrap_or(folder))?;
        fs::copy(file, target)?;
    }
    survey(folder, source.display().to_string(), &mut Rng::new(seed))
}

fn skill_of(n: usize) -> &'static str {
    SKILLS[n % SKILLS.len()]
}

fn id(n: usize) -> String {
    format!("{}-{n:06}", skill_of(n))
}

fn write_skill(folder: &Path, skill: &str) -> Result<()> {
    let dir = folder.join("skills");
    fs::create_dir_all(&dir)?;
    let text = format!(
        "---\ntype: skill\nid: {skill}\ndescription: Everything known about one {skill}.\n\
         required_frontmatter: [status, tier]\n---\n\n# {skill}\n\nOne page per {skill}.\n"
    );
    Ok(fs::write(dir.join(format!("{skill}.md")), text)?)
}

fn link(n: usize) -> String {
    format!("[[{}::{}]]", skill_of(n), id(n))
}

fn page(n: usize, pages: usize, words: &Vocabulary, rng: &mut Rng, text: &mut String) {
    let title: Vec<&str> = (0..3).map(|_| words.draw(rng)).collect();
    let title = title.join(" ");
    let status = rng.pick(STATUS).copied().unwrap_or("open");
    let tier = rng.pick(TIER).copied().unwrap_or("trial");
    let (year, month, day) = (2019 + rng.below(8), 1 + rng.below(12), 1 + rng.below(28));
    let owner = link((3 + 10 * rng.below(pages.div_ceil(10))).min(pages - 1));
    // Towards older pages only, so that walks along it end.
    let older = link(rng.below(n));
    let (skill, id) = (skill_of(n), id(n));
    text.push_str(&format!(
        "---\ntype: instance\nskill: {skill}\nid: {id}\ntitle: \"{title} {n}\"\nstatus: {status}\n\
         tier: {tier}\nat: {year}-{month:02}-{day:02}\nowner: \"{owner}\"\n\
         derived_from: [\"{older}\"]\n---\n\n# {title} {n}\n\n",
    ));
    for block in 0..5 {
        if block == 2 {
            text.push_str("## Details\n\n");
        }
        for _ in 0..3 {
            let length = 6 + rng.below(10);
            words.sentence(length, rng, text);
        }
        if block == 1 || block == 3 {
            let other = link(rng.below(pages));
            text.push_str(&format!("See {other}."));
        }
        text.push_str("\n\n");
    }
}

/// Counts what is there and picks what to ask about.
fn survey(folder: &Path, kind: String, rng: &mut Rng) -> Result<Corpus> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    files.sort();
    ensure!(!files.is_empty(), "no markdown files in {kind}");
    let mut bytes = 0;
    for file in &files {
        bytes += fs::metadata(file)?.len();
    }
    let mut corpus = Corpus {
        kind,
        pages: files.len(),
        bytes,
        samples: vec![],
        skills: vec![],
        filters: vec![],
    };
    for _ in 0..SAMPLE {
        let file = rng.pick(&files).context("no page")?;
        // Files in other encodings are measured, but not asked about.
        let Ok(text) = fs::read_to_string(file) else {
            continue;
        };
        sample(folder, file, &text, &mut corpus)?;
    }
    ensure!(
        !corpus.samples.is_empty(),
        "no page has enough words to search for"
    );
    Ok(corpus)
}

fn sample(folder: &Path, file: &Path, text: &str, corpus: &mut Corpus) -> Result<()> {
    let relative = file
        .strip_prefix(folder)?
        .to_string_lossy()
        .replace('\\', "/");
    let (head, body) = frontmatter(text);
    if head.get("type").is_some_and(|kind| kind == "skill") {
        return Ok(());
    }
    let words: Vec<String> = body
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 3)
        .map(str::to_lowercase)
        .collect();
    if words.len() < 12 {
        return Ok(());
    }
    let skill = head
        .get("skill")
        .cloned()
        .unwrap_or_else(|| "note".to_owned());
    let stem = relative.strip_suffix(".md").unwrap_or(&relative).to_owned();
    let id = head.get("id").cloned().unwrap_or(stem);
    if !corpus.skills.contains(&skill) {
        corpus.skills.push(skill.clone());
    }
    if let (Some(status), Some(tier)) = (head.get("status"), head.get("tier")) {
        let pair = |key: &str, value: &String| (key.to_owned(), value.clone());
        corpus
            .filters
            .push([pair("status", status), pair("tier", tier)]);
    }
    corpus.samples.push(Sample {
        page_id: relative,
        wikilink: format!("[[{skill}::{id}]]"),
        words,
    });
    Ok(())
}

/// The plain `key: value` lines of the frontmatter, and the rest.
fn frontmatter(text: &str) -> (BTreeMap<String, String>, &str) {
    let Some(rest) = text.strip_prefix("---\n") else {
        return (BTreeMap::new(), text);
    };
    let Some((head, body)) = rest.split_once("\n---") else {
        return (BTreeMap::new(), text);
    };
    let pairs = head.lines().filter_map(|line| {
        let (key, value) = line.split_once(": ")?;
        let value = value.trim().trim_matches('"');
        (!value.is_empty() && !key.starts_with(' ')).then(|| (key.to_owned(), value.to_owned()))
    });
    (pairs.collect(), body)
}

/// All markdown files below a folder, but those in hidden ones.
pub fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with('.');
        let kind = entry.file_type()?;
        if kind.is_dir() && !hidden {
            walk(&entry.path(), files)?;
        } else if kind.is_file() && !hidden && name.to_string_lossy().ends_with(".md") {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        assert_eq!(count("10k"), Ok(10_000));
        assert_eq!(count("250"), Ok(250));
        assert!(count("0").is_err());
        assert!(count("2000k").is_err());
        assert!(count("many").is_err());
    }

    #[test]
    fn a_generated_corpus_is_the_same_again() -> Result<()> {
        let (a, b) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let (one, two) = (generate(a.path(), 30, 3)?, generate(b.path(), 30, 3)?);
        assert_eq!((one.pages, one.bytes), (40, two.bytes));
        assert_eq!(one.samples.len(), two.samples.len());
        assert!(
            one.samples
                .iter()
                .zip(&two.samples)
                .all(|(x, y)| x.words == y.words)
        );
        assert!(!one.filters.is_empty());
        Ok(())
    }

    #[test]
    fn frontmatter_is_split_off() {
        let (head, body) = frontmatter("---\nstatus: open\nowner: \"x\"\n---\nText\n");
        assert_eq!(head.get("owner").map(String::as_str), Some("x"));
        assert_eq!(body, "\nText\n");
        assert_eq!(frontmatter("no head").1, "no head");
    }
}
