use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::provenance::NOW;
use super::*;
use crate::directory::history;
use crate::testing::Corpus;
use crate::{Bitmap, Hop, PageNo, Scope, Walk, path_to};

fn open(dir: &Path) -> (Duck, DuckState) {
    Duck::open(dir, 1).expect("open")
}

fn fill(duck: &Duck, c: &Corpus) {
    duck.apply(&c.changes, &c.relink, &c.dir, c.seq)
        .expect("apply");
}

fn filled(c: &Corpus) -> (tempfile::TempDir, Duck) {
    let folder = tempfile::tempdir().expect("temp");
    let (duck, state) = open(folder.path());
    assert_eq!(state, DuckState::Created);
    fill(&duck, c);
    assert_eq!(duck.differences(&c.dir).expect("verify"), []);
    (folder, duck)
}

#[test]
fn a_plan_made_over_other_rows_still_answers_rightly() {
    let folder = tempfile::tempdir().expect("temp");
    let (duck, _) = open(folder.path());
    let mut c = Corpus::vault(&[]);
    assert_eq!(duck.differences(&c.dir).expect("verify"), []);
    for text in ["one [[a]]\n", "two\n", "three [[b]]\n"] {
        c.put("a.md", text);
        fill(&duck, &c);
        assert_eq!(duck.differences(&c.dir).expect("verify"), []);
    }
}

#[test]
fn a_link_is_resolved_anew_when_its_target_gets_a_twin() {
    let mut c = Corpus::vault(&[
        ("a.md", "[[target]]\n"),
        ("target.md", "---\nid: same\n---\n"),
    ]);
    let (_folder, duck) = filled(&c);
    c.put("other.md", "---\nid: same\n---\n");
    fill(&duck, &c);
    assert_eq!(duck.differences(&c.dir).expect("verify"), []);
}

#[test]
fn history_of_a_page() {
    let mut c = Corpus::vault(&[
        ("a.md", "---\nat: 2026-01-01\nrel: '[[b]]'\n---\none\n"),
        ("b.md", ""),
    ]);
    c.put("a.md", "two\n");
    c.delete("a.md");
    c.put("a.md", "three [[b]]\n");
    let (_folder, duck) = filled(&c);
    let page = c.dir.by_path("a.md").expect("a").clone();
    let versions = duck.versions(page.uid).expect("versions");
    let told: Vec<_> = versions
        .iter()
        .map(|v| {
            (
                v.version,
                v.seq,
                v.from / 1_000_000,
                v.to.map(|t| t / 1_000_000),
                v.deleted,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, 1, 1, Some(3), false),
            (2, 3, 3, Some(4), false),
            (3, 4, 4, Some(5), true),
            (1, 5, 5, None, false)
        ]
    );
    let at = |t: i64| {
        duck.version_at(page.uid, t * 1_000_000)
            .expect("at")
            .map(|v| v.seq)
    };
    assert_eq!(
        [at(0), at(1), at(2), at(3), at(4), at(9)],
        [None, Some(1), Some(1), Some(3), Some(4), Some(5)]
    );
    let text = |t: i64| {
        duck.page_at(page.no, t * 1_000_000)
            .expect("page")
            .map(|p| p.at.is_some())
    };
    assert_eq!(
        [text(0), text(1), text(3), text(4), text(5)],
        [None, Some(true), Some(false), None, Some(false)]
    );
    assert_eq!(duck.uid_at_path("a.md").expect("uid"), Some(page.uid));
    assert_eq!(duck.uid_at_path("nope.md").expect("uid"), None);
    let edges = |t: i64, d| {
        duck.edges_at(page.no, d, t * 1_000_000)
            .expect("edges")
            .iter()
            .map(|e| (e.dst, e.relation.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        edges(1, Direction::Out),
        [(None, Some("rel".into()))],
        "b did not exist yet"
    );
    assert_eq!(
        edges(2, Direction::Out),
        [(Some(c.no("b.md")), Some("rel".into()))]
    );
    assert_eq!(edges(3, Direction::Both), []);
    assert_eq!(edges(5, Direction::Out), [(Some(c.no("b.md")), None)]);
    assert_eq!(
        duck.edges_at(c.no("b.md"), Direction::In, 2_000_000)
            .expect("edges")
            .len(),
        1
    );
    let at = |t: i64| {
        duck.instances_at("note", t * 1_000_000)
            .expect("list")
            .iter()
            .map(|(_, v)| format!("{} {}", v.path, v.seq))
            .collect::<Vec<_>>()
    };
    assert_eq!(at(1), ["a.md 1"]);
    assert_eq!(at(4), ["b.md 2"]);
    assert_eq!(at(5), ["a.md 5", "b.md 2"]);
    assert_eq!(duck.heads().expect("heads").len(), 2);
}

#[test]
fn batches_come_once_and_survive_reopening() {
    let folder = tempfile::tempdir().expect("temp");
    let mut c = Corpus::vault(&[("a.md", "[[b]] [[c]]"), ("b.md", "")]);
    let (duck, _) = open(folder.path());
    fill(&duck, &c);
    fill(&duck, &c);
    c.put("c.md", "");
    c.put("b.md", "---\nid: other\n---\n");
    // Overlaps with what is in already.
    fill(&duck, &c);
    assert_eq!(duck.differences(&c.dir).expect("verify"), []);
    assert!(duck.wait_for(4, Duration::ZERO) && !duck.wait_for(5, Duration::from_millis(5)));
    drop(duck);
    let (duck, state) = open(folder.path());
    assert_eq!((state, duck.seq()), (DuckState::Intact, 4));
    c.delete("c.md");
    fill(&duck, &c);
    assert_eq!(duck.differences(&c.dir).expect("verify"), []);
    duck.checkpoint().expect("checkpoint");
    c.dir.remove(c.dir.by_path("b.md").expect("b").uid);
    assert_eq!(
        duck.differences(&c.dir).expect("verify").len(),
        2,
        "an extra page and a link to it"
    );
    drop(duck);
    let (_, state) = Duck::open(folder.path(), 2).expect("open");
    assert!(
        matches!(&state, DuckState::MovedAside { reason, .. } if reason == "belongs to another store"),
        "{state:?}"
    );
}

#[test]
fn waiting_ends_when_the_batch_is_in() {
    let folder = tempfile::tempdir().expect("temp");
    let c = Corpus::vault(&[("a.md", "")]);
    let (duck, _) = open(folder.path());
    std::thread::scope(|s| {
        let waiter = s.spawn(|| duck.wait_for(1, Duration::from_secs(20)));
        fill(&duck, &c);
        assert!(waiter.join().expect("thread"));
    });
}

#[test]
fn cut_files_are_moved_aside() {
    let source = tempfile::tempdir().expect("temp");
    let c = Corpus::vault(&[("a.md", "[[b]]"), ("b.md", "text\n")]);
    {
        let (duck, _) = open(source.path());
        fill(&duck, &c);
        duck.checkpoint().expect("checkpoint");
    }
    let good = fs::read(source.path().join("escurel.duckdb")).expect("read");
    let mut state = 11u64;
    for round in 0..24 {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let at = (state >> 16) as usize % good.len();
        let folder = tempfile::tempdir().expect("temp");
        let mut bytes = good[..at].to_vec();
        if round % 3 == 1 {
            // Full length, but the rest was never written.
            bytes.resize(good.len(), 0);
        }
        fs::write(folder.path().join("escurel.duckdb"), &bytes).expect("write");
        if round % 4 == 0 {
            fs::write(
                folder.path().join("escurel.duckdb.wal"),
                &good[..at.min(3000)],
            )
            .expect("write");
        }
        let (duck, state) = open(folder.path());
        if let DuckState::MovedAside { to, .. } = &state {
            assert!(to.exists());
            assert_eq!(duck.seq(), 0);
            fill(&duck, &c);
        }
        // A cut that hit nothing in use, or an honest error, but no abort.
        if let Ok(differences) = duck.differences(&c.dir) {
            assert!(
                differences.is_empty() || state == DuckState::Intact,
                "cut at {at}: {differences:?}"
            );
        }
    }
}

#[test]
fn only_the_newest_damaged_file_is_kept() {
    let folder = tempfile::tempdir().expect("temp");
    for n in 1..4 {
        fs::write(folder.path().join("escurel.duckdb"), "rubbish").expect("write");
        let (_, state) = open(folder.path());
        assert!(
            matches!(state, DuckState::MovedAside { to, .. } if to.ends_with(format!("escurel.duckdb.damaged-{n}")))
        );
    }
    let kept = fs::read_dir(folder.path())
        .expect("list")
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().contains("damaged"))
        .count();
    assert_eq!(kept, 1);
}

/// `name: relation target, relation target` per page, all of skill `note`.
#[allow(clippy::type_complexity, reason = "a table of (page, at, links)")]
fn graph(pages: &[(&str, &str, &[(&str, &str)])]) -> Corpus {
    let mut c = Corpus::new(escurel_md::Layout::Tenant);
    for (path, head, links) in pages {
        let links: String = links
            .iter()
            .map(|(relation, to)| format!("{relation}: '{to}'\n"))
            .collect();
        c.put(
            &format!("{path}.md"),
            &format!("---\n{head}\n{links}---\nSee [[dataset]].\n"),
        );
    }
    c
}

fn sample() -> Corpus {
    graph(&[
        (
            "result",
            "at: 2026-01-05",
            &[("produced_by", "[[run]]"), ("cites", "[[paper]]")],
        ),
        (
            "run",
            "at: 2026-01-04",
            &[("uses", "[[dataset]]"), ("derived_from", "[[paper]]")],
        ),
        ("paper", "at: 2026-01-03", &[("cites", "[[result]]")]),
        ("dataset", "at: 2026-01-02", &[("derived_from", "[[raw]]")]),
        ("raw", "at: 2026-01-01", &[]),
        ("island", "status: abandoned", &[]),
    ])
}

/// The same from both halves.
fn walked(c: &Corpus, duck: &Duck, walk: &Walk<'_>, hidden: &Bitmap) -> Vec<Hop> {
    let scope = Scope {
        scenario: None,
        visible: &|e| !hidden.contains(e.no),
    };
    let hops = duck.walk(walk, NOW, hidden).expect("walk");
    assert_eq!(c.dir.walk(walk, &scope), hops, "{walk:?}");
    hops
}

#[allow(clippy::too_many_arguments, reason = "the arguments of a walk")]
fn hops(
    c: &Corpus,
    duck: &Duck,
    from: &str,
    up: bool,
    relations: &[&str],
    max: u32,
    as_of: Option<i64>,
    hidden: &[&str],
) -> String {
    let hidden: Bitmap = hidden.iter().map(|p| c.no(&format!("{p}.md"))).collect();
    let relations: Vec<String> = relations.iter().map(|r| (*r).to_owned()).collect();
    let walk = Walk {
        start: c.no(&format!("{from}.md")),
        up,
        relations: &relations,
        max_hops: max,
    };
    let hops = match as_of {
        Some(time) => duck.walk(&walk, time, &hidden).expect("walk"),
        None => walked(c, duck, &walk, &hidden),
    };
    hops.iter()
        .map(|h| {
            format!(
                "{}{}:{}",
                c.path(h.page).trim_end_matches(".md"),
                h.depth,
                h.relation
            )
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn ancestry() {
    let c = sample();
    let (_folder, duck) = filled(&c);
    let up = |relations: &[&str], max, hidden: &[&str]| {
        hops(&c, &duck, "result", true, relations, max, None, hidden)
    };
    assert_eq!(
        up(&[], 12, &[]),
        "paper1:cites run1:produced_by dataset2:uses raw3:derived_from"
    );
    assert_eq!(
        up(&[], 2, &[]),
        "paper1:cites run1:produced_by dataset2:uses"
    );
    assert_eq!(up(&[], 0, &[]), "");
    assert_eq!(
        up(&["produced_by", "derived_from"], 5, &[]),
        "run1:produced_by paper2:derived_from"
    );
    assert_eq!(up(&[], 12, &["run"]), "paper1:cites");
    assert_eq!(up(&[], 12, &["result"]), "");
    assert_eq!(
        hops(&c, &duck, "raw", false, &[], 12, None, &[]),
        "dataset1:derived_from run2:uses result3:produced_by paper4:cites"
    );
    let long_ago = Some(3_000_000);
    assert_eq!(
        hops(&c, &duck, "result", true, &[], 12, long_ago, &[]),
        "paper1:cites run1:produced_by"
    );
    assert_eq!(hops(&c, &duck, "result", true, &[], 12, Some(0), &[]), "");
    assert_eq!(
        hops(&c, &duck, "result", true, &["x' OR 1=1 --"], 12, None, &[]),
        ""
    );
}

#[test]
fn shortest_paths() {
    let c = sample();
    let (_folder, duck) = filled(&c);
    let path = |from: &str, to: &str, up, max, hidden: &[&str]| {
        let no = |p: &str| c.no(&format!("{p}.md"));
        let hidden: Bitmap = hidden.iter().map(|p| no(p)).collect();
        let walk = Walk {
            start: no(from),
            up,
            relations: &[],
            max_hops: max,
        };
        let path = path_to(&walked(&c, &duck, &walk, &hidden), no(from), no(to));
        path.map(|p| {
            p.iter()
                .map(|n| c.path(*n).trim_end_matches(".md").to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        })
    };
    assert_eq!(
        path("result", "raw", true, 5, &[]).as_deref(),
        Some("result run dataset raw")
    );
    assert_eq!(path("result", "raw", true, 2, &[]), None);
    assert_eq!(path("result", "raw", false, 5, &[]), None);
    assert_eq!(
        path("raw", "paper", false, 5, &[]).as_deref(),
        Some("raw dataset run result paper")
    );
    assert_eq!(path("result", "raw", true, 5, &["run"]), None);
    assert_eq!(path("result", "raw", true, 5, &["raw"]), None);
    assert_eq!(
        path("result", "result", true, 5, &[]).as_deref(),
        Some("result")
    );
    assert_eq!(path("result", "island", true, 12, &[]), None);
}

#[test]
fn drift_and_abandoned() {
    let c = graph(&[
        ("churn-v1", "skill: expectation\nat: 2026-01-01", &[]),
        (
            "churn-v2",
            "skill: expectation\nat: 2026-03-02T10:00:00Z",
            &[("supersedes", "[[churn-v1]]")],
        ),
        (
            "ship",
            "skill: decision\nat: 2026-02-06T09:00:00Z",
            &[("motivated_by", "[[churn-v1]]")],
        ),
        (
            "late",
            "skill: decision\nat: 2026-04-01",
            &[("addresses", "[[churn-v1]]")],
        ),
        (
            "plan",
            "skill: project\nat: 2026-01-02",
            &[("addresses", "[[churn-v1]]")],
        ),
        ("given-up", "skill: decision\nstatus: abandoned", &[]),
        (
            "what-if",
            "skill: expectation\nscenario: s\nat: 2026-05-05",
            &[("supersedes", "[[churn-v2]]")],
        ),
    ]);
    let (_folder, duck) = filled(&c);
    let drift = |skill, hidden: &[&str]| {
        let hidden: Bitmap = hidden.iter().map(|p| c.no(&format!("{p}.md"))).collect();
        let rows = duck.drift(skill, &hidden).expect("drift");
        rows.iter()
            .map(|r| {
                format!(
                    "{} {} {} {} {}",
                    c.path(r.decision),
                    c.path(r.expectation),
                    c.path(r.superseding),
                    r.decided_at,
                    r.superseded_at
                )
            })
            .collect::<Vec<_>>()
    };
    let ship = "ship.md churn-v1.md churn-v2.md 2026-02-06T09:00:00Z 2026-03-02T10:00:00Z";
    let plan = "plan.md churn-v1.md churn-v2.md 2026-01-02T00:00:00Z 2026-03-02T10:00:00Z";
    assert_eq!(drift(None, &[]), [plan, ship]);
    assert_eq!(drift(Some("decision"), &[]), [ship]);
    for hidden in ["ship", "churn-v1", "churn-v2"] {
        assert_eq!(drift(Some("decision"), &[hidden]), [""; 0]);
    }
    let abandoned = |skill, hidden: &[&str]| {
        let hidden: Bitmap = hidden.iter().map(|p| c.no(&format!("{p}.md"))).collect();
        duck.abandoned(skill, &hidden)
            .expect("abandoned")
            .iter()
            .map(|r| format!("{} {} {}", c.path(r.page), r.skill, r.via))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        abandoned(None, &[]),
        [
            "churn-v1.md expectation supersedes",
            "given-up.md decision status"
        ]
    );
    assert_eq!(
        abandoned(Some("expectation"), &[]),
        ["churn-v1.md expectation supersedes"]
    );
    assert_eq!(
        abandoned(None, &["churn-v2"]),
        ["given-up.md decision status"]
    );
}

#[test]
fn hidden_pages_do_not_make_a_link_ambiguous() {
    let mut c = Corpus::new(escurel_md::Layout::Vault);
    c.put("src.md", "---\nuses: '[[plan]]'\nthen: '[[gone]]'\n---\n");
    c.put("a/plan.md", "");
    c.put("b/plan.md", "");
    c.put("b/gone.md", "");
    c.put("b/other.md", "---\ntitle: gone\n---\n");
    let (_folder, duck) = filled(&c);
    assert_eq!(
        hops(&c, &duck, "src", true, &[], 5, None, &[]),
        "b/gone1:then"
    );
    assert_eq!(
        hops(&c, &duck, "src", true, &[], 5, None, &["b/plan"]),
        "a/plan1:uses b/gone1:then"
    );
    assert_eq!(
        hops(&c, &duck, "src", true, &[], 5, None, &["b/gone"]),
        "b/other1:then"
    );
    c.delete("a/plan.md");
    c.delete("b/gone.md");
    fill(&duck, &c);
    assert_eq!(
        hops(&c, &duck, "src", true, &[], 5, None, &[]),
        "b/other1:then b/plan1:uses"
    );
}

/// One hop along every link with a relation, as the directory sees it.
fn one_hop(c: &Corpus, hidden: &Bitmap) -> Vec<(PageNo, PageNo)> {
    let visible = |e: &crate::Entry| !hidden.contains(e.no);
    let scope = Scope {
        scenario: None,
        visible: &visible,
    };
    let mut out = Vec::new();
    for e in c.dir.iter().filter(|e| visible(e)) {
        for edge in c
            .dir
            .outgoing(e, &scope)
            .iter()
            .filter(|edge| edge.link.relation.is_some())
        {
            out.extend(
                edge.to
                    .found()
                    .filter(|to| to.no != e.no)
                    .map(|to| (e.no, to.no)),
            );
        }
    }
    out.sort();
    out.dedup();
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn both_halves_agree(steps in history(), cut in 0..40usize, hide in any::<u64>()) {
        let mut c = Corpus::new(escurel_md::Layout::Vault);
        let folder = tempfile::tempdir().expect("temp");
        let (duck, _) = open(folder.path());
        for (i, (keep, path, text)) in steps.iter().enumerate() {
            if *keep { drop(c.put(path, text)) } else { c.delete(path) }
            if i == cut {
                fill(&duck, &c);
                c.changes.clear();
                c.relink.clear();
            }
        }
        fill(&duck, &c);
        prop_assert_eq!(duck.differences(&c.dir).expect("verify"), []);
        let heads: Vec<_> = duck.heads().expect("heads").into_iter().map(|h| (h.no, h.path, h.version, h.seq)).collect();
        let live: Vec<_> = c.dir.iter().map(|e| (e.no, e.path.to_string(), e.version, e.seq)).collect();
        prop_assert_eq!(heads, live);
        for hidden in [Bitmap::new(), c.dir.iter().map(|e| e.no).filter(|n| hide >> (n.0 % 64) & 1 == 1).collect()] {
            let mut steps = Vec::new();
            for e in c.dir.iter() {
                let walk = |up, max_hops| Walk { start: e.no, up, relations: &[], max_hops };
                let hops = walked(&c, &duck, &walk(true, 1), &hidden);
                steps.extend(hops.iter().map(|h| (e.no, h.page)));
                walked(&c, &duck, &walk(true, 3), &hidden);
                walked(&c, &duck, &walk(false, 3), &hidden);
            }
            steps.sort();
            prop_assert_eq!(steps, one_hop(&c, &hidden));
        }
    }
}

const CRASH_FOLDER: &str = "ESCUREL_INDEX_CRASH_FOLDER";

fn crash_step(c: &mut Corpus, i: u64) {
    let text = format!(
        "---\nn: {i}\nrel: '[[p{}]]'\n---\n{}\n",
        i * 7 % 60,
        "text ".repeat(200)
    );
    c.put(&format!("p{}.md", i % 50), &text);
}

/// Not a test of its own: writes until it is killed.
#[test]
#[ignore = "run by `a_killed_writer_leaves_a_whole_batch`"]
fn crash_child() {
    let Ok(folder) = std::env::var(CRASH_FOLDER) else {
        return;
    };
    let (duck, state) = open(Path::new(&folder));
    let mut c = Corpus::new(escurel_md::Layout::Vault);
    (0..duck.seq()).for_each(|i| crash_step(&mut c, i));
    assert!(duck.seq() == 0 || state == DuckState::Intact);
    c.changes.clear();
    for i in duck.seq().. {
        crash_step(&mut c, i);
        if i % 20 == 0 {
            fill(&duck, &c);
            c.changes.clear();
            c.relink.clear();
        }
        if i % 400 == 0 {
            duck.checkpoint().expect("checkpoint");
        }
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_batch() {
    let folder = tempfile::tempdir().expect("temp");
    let mut before = 0;
    for round in 0..4 {
        let mut child = std::process::Command::new(std::env::current_exe().expect("exe"))
            .args([
                "--exact",
                "duck::tests::crash_child",
                "--ignored",
                "--nocapture",
            ])
            .env(CRASH_FOLDER, folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("child");
        std::thread::sleep(Duration::from_millis(900 + round * 137));
        child.kill().expect("kill");
        child.wait().expect("wait");
        let (duck, state) = open(folder.path());
        assert!(
            matches!(state, DuckState::Intact | DuckState::Created),
            "{state:?}"
        );
        let mut c = Corpus::new(escurel_md::Layout::Vault);
        (0..duck.seq()).for_each(|i| crash_step(&mut c, i));
        assert_eq!(
            duck.differences(&c.dir).expect("verify"),
            [],
            "after {}",
            duck.seq()
        );
        assert!(duck.seq() >= before);
        before = duck.seq();
    }
    assert!(before > 0, "the child never got to write");
}
