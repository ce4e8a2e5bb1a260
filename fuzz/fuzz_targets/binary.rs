#![no_main]

mod whole;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // Every packet begins with the same byte; the fuzzer need not find that out.
    let mut packet = vec![0x80];
    packet.extend_from_slice(input);
    whole::run(hashmere_server::Protocol::Binary, &packet);
});
