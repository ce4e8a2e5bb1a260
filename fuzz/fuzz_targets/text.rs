#![no_main]

mod session;

libfuzzer_sys::fuzz_target!(|input: &[u8]| session::run(hashmere_server::Dialects::Text, input));
