#![no_main]

mod whole;

libfuzzer_sys::fuzz_target!(|input: &[u8]| whole::run(hashmere_server::Protocol::Resp, input));
