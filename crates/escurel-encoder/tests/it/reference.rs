//! `reference.json` holds vectors of a pass in f64 that shares no code with this crate. What
//! differs is due to weights in 16 bits; a component is .05 as a rule.

use std::path::PathBuf;

use escurel_encoder::{DIMENSIONS, Encoder};

fn encoder() -> Option<Encoder> {
    let Some(dir) = std::env::var_os("ESCUREL_EMBEDDING_MODEL_DIR") else {
        eprintln!("skipped: no model (ESCUREL_EMBEDDING_MODEL_DIR is not set)");
        return None;
    };
    Some(Encoder::open(&PathBuf::from(dir)).expect("the model opens"))
}

fn references() -> Vec<(String, Vec<f32>)> {
    let json: serde_json::Value =
        serde_json::from_str(include_str!("reference.json")).expect("is JSON");
    let one = |entry: &serde_json::Value| {
        let text = entry["text"].as_str().expect("text");
        let times = entry["times"].as_u64().expect("times") as usize;
        let vector = entry["vector"].as_array().expect("vector");
        let vector = vector.iter().map(|v| v.as_f64().expect("number") as f32);
        (text.repeat(times), vector.collect())
    };
    json.as_array().expect("list").iter().map(one).collect()
}

#[test]
fn vectors_equal_those_of_the_reference() {
    let Some(encoder) = encoder() else { return };
    let references = references();
    let texts: Vec<&str> = references.iter().map(|(text, _)| text.as_str()).collect();
    let mut most = 0f32;
    for (vector, (text, expected)) in encoder.encode(&texts).iter().zip(&references) {
        assert_eq!((vector.len(), expected.len()), (DIMENSIONS, DIMENSIONS));
        let difference = vector.iter().zip(expected).map(|(a, b)| (a - b).abs());
        let difference = difference.fold(0.0, f32::max);
        assert!(difference <= 1e-4, "{text:?}: {difference}");
        most = most.max(difference);
    }
    eprintln!("largest difference of a component: {most:e}");
}

#[test]
fn vectors_do_not_depend_on_the_batch() {
    let Some(encoder) = encoder() else { return };
    let references = references();
    let texts: Vec<&str> = references.iter().map(|(text, _)| text.as_str()).collect();
    let texts = [texts.as_slice(); 3].concat();
    for (text, vector) in texts.iter().zip(encoder.encode(&texts)) {
        assert_eq!(encoder.encode(&[text])[0], vector, "{text:?}");
    }
}

#[test]
fn many_threads_share_one_encoder() {
    let Some(encoder) = encoder() else { return };
    let alone = encoder.encode(&["shared by many"]);
    std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(|| encoder.encode(&["shared by many"])));
        for thread in threads {
            assert_eq!(thread.join().expect("ends"), alone);
        }
    });
}

#[test]
fn words_of_other_scripts_are_unknown() {
    let Some(encoder) = encoder() else { return };
    let check = |text: &str, low: f32, high: f32| {
        let share = encoder.unknown_share(text);
        eprintln!("{share:.2}  {text}");
        assert!((low..=high).contains(&share), "{text}: {share}");
    };
    for text in [
        "โรคหัวใจในผู้สูงอายุ",
        "如何降低心脏病的风险",
        "心臓病のリスクを下げる方法",
        "심장병 위험을 낮추는 방법",
        "كيف نقلل من خطر الإصابة بأمراض القلب",
        "हृदय रोग का जोखिम कैसे कम करें",
        "как снизить риск сердечных заболеваний",
        "πώς μειώνεται ο κίνδυνος καρδιοπάθειας",
        "איך להפחית את הסיכון למחלות לב",
        "როგორ შევამციროთ რისკი",
    ] {
        check(text, 0.5, 1.0);
    }
    for text in [
        "",
        "how to lower the risk of heart disease",
        "hwo to lwoer teh rsik of haert diseaes",
        "foo_bar C++ 2.4.11 x86_64 kqzx7",
        "λ calculus",
        "Wie senkt man das Risiko für Herzkrankheiten in großen Städten?",
        "Comment réduire le risque de maladie cardiaque chez l'aîné ?",
        "¿Cómo reducir el riesgo de enfermedades del corazón en niños?",
        "Jak zmniejszyć ryzyko chorób serca u osób w Łodzi?",
    ] {
        check(text, 0.0, 0.0);
    }
    check("Python 安装 guide", 0.5, 0.5);
    check("release party 🎉", 0.3, 0.4);
}
