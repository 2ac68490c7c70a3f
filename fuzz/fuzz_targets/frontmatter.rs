#![no_main]
//! Headers: reading and setting single keys.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if data.starts_with(b"---") {
        escurel_fuzz::check_page(data);
        escurel_fuzz::check_edit(data);
    } else {
        let page = [b"---\n".as_slice(), data, b"\n---\nbody\n"].concat();
        escurel_fuzz::check_page(&page);
        escurel_fuzz::check_edit(&page);
    }
});
