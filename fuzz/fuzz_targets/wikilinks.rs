#![no_main]
//! Links: alone, and in running text.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    escurel_fuzz::check_wikilink(text);
    escurel_fuzz::check_page(
        format!("# A\n\n{text}\n\n| a | b |\n|---|---|\n| {text} | [[x]] |\n").as_bytes(),
    );
    let page = escurel_md::parse("a.md", data, escurel_md::Layout::Vault);
    for link in &page.links {
        escurel_fuzz::check_wikilink(&link.target.render());
    }
});
