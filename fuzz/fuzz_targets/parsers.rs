#![no_main]

use hashmere_server::protocol::{binary, classic, meta, number, words};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let line = words::chomp(input);
    match classic::parse(line) {
        Ok(classic::Request::Retrieve(request)) => {
            assert!(words::Words::new(request.keys).all(|key| key.len() <= 250));
        }
        Ok(classic::Request::Put(put)) => assert!(put.key.len() <= 250 && put.len <= classic::LEN_MAX),
        Ok(_) => {}
        Err(refusal) => assert!(refusal.value.is_none_or(|len| len <= classic::LEN_MAX)),
    }
    let _ = classic::is_http(line);
    let mut words = words::Words::new(line);
    if let Some(word) = words.next() {
        for base64 in [false, true] {
            if let Some(key) = meta::Key::read(word, base64) {
                assert!(!key.bytes().is_empty() && key.bytes().len() <= 250);
            }
        }
        let read = meta::Flags::read(word, words, meta::FLAGS_MAX);
        assert!(read.is_err() || words.len() <= meta::FLAGS_MAX);
        let _ = meta::are_flags(words);
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
