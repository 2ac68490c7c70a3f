#![no_main]
//! Whole files, any bytes.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    escurel_fuzz::check_page(data);
    let _ = escurel_md::check_page_path(&String::from_utf8_lossy(data));
    let page = escurel_md::parse("a.md", data, escurel_md::Layout::Vault);
    for anchor in page.anchors().take(50) {
        assert!(
            page.find_anchor(anchor).is_some() || page.find_anchor(&format!("^{anchor}")).is_some(),
            "{anchor}"
        );
    }
});
