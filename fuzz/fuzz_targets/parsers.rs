#![no_main]

use hashmere_server::protocol::{binary, classic, meta, number, words};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let line = words::chomp(input);
    if let Ok(classic::Request::Retrieve(request)) = classic::parse(line) {
        assert!(words::Words::new(request.keys).all(|key| key.len() <= 250));
    }
    for allowed in [meta::GET, meta::SET, meta::DELETE, meta::COUNT, meta::DEBUG] {
        let mut words = words::Words::new(line);
        if let Some(word) = words.next() {
            for base64 in [false, true] {
                if let Some(key) = meta::Key::read(word, base64) {
                    assert!(!key.bytes().is_empty() && key.bytes().len() <= 250);
                }
            }
            let _ = meta::Flags::read(words, allowed, meta::BAD_TOKEN);
        }
    }
    if let Some(header) = input.first_chunk().and_then(binary::Header::read) {
        if let Some((extras, key, value)) = header.split(&input[binary::HEADER..]) {
            assert!(extras.len() == header.extras && key.len() == header.key);
            let _ = (binary::word(extras, 0), binary::wide(extras, 8), value.len());
        }
    }
    if let Some(value) = number::unsigned(input) {
        let mut text = Vec::new();
        number::write(value, &mut text);
        assert_eq!(number::unsigned(&text), Some(value));
    }
});
