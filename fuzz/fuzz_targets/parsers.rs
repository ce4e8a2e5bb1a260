#![no_main]

use hashmere_server::protocol::tokens::{chomp, Tokens};
use hashmere_server::protocol::{binary, meta, number, text, KEY_MAX, LEN_MAX};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let line = chomp(input);
    match text::parse::parse(line) {
        Ok(text::parse::Request::Retrieve(request)) => {
            assert!(Tokens::new(request.keys).all(|key| key.len() <= KEY_MAX));
            assert!(request.kind == text::parse::Kind::Value || !request.cas && request.touch.is_none());
        }
        Ok(text::parse::Request::Put(put)) => assert!(put.key.len() <= KEY_MAX && put.len <= LEN_MAX),
        Ok(_) => {}
        Err(refusal) => assert!(refusal.value.is_none_or(|len| len <= LEN_MAX)),
    }
    let _ = text::parse::is_http(line);
    let mut tokens = Tokens::new(line);
    if let Some(token) = tokens.next() {
        for base64 in [false, true] {
            if let Some(key) = meta::parse::Key::read(token, base64) {
                assert!(!key.bytes().is_empty() && key.bytes().len() <= KEY_MAX);
            }
        }
        let read = meta::parse::Flags::read(token, tokens, meta::parse::FLAGS_MAX);
        assert!(read.is_err() || tokens.len() <= meta::parse::FLAGS_MAX);
        let _ = meta::parse::are_flags(tokens);
    }
    if let Some(header) = input.first_chunk().and_then(binary::parse::Header::read) {
        if let Some((extras, key, value)) = header.split(&input[binary::parse::HEADER..]) {
            assert!(extras.len() == header.extras && key.len() == header.key);
            let _ = (binary::parse::word(extras, 0), binary::parse::wide(extras, 8), value.len());
        }
    }
    if let Some(value) = number::unsigned(input) {
        let mut text = Vec::new();
        number::write(value, &mut text);
        assert_eq!(number::unsigned(&text), Some(value));
    }
});
