#![no_main]

use hashmere_feed::{Event, Token};
use hashmere_sinks::{Position, Target};

// The texts of a change feed: what is taken is written and read back as the same.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(event) = Event::from_json(input) {
        let mut line = Vec::new();
        event.write_json(&mut line);
        assert!(!line.contains(&b'\n'));
        assert_eq!(Event::from_json(&line).as_ref(), Ok(&event), "{}", line.escape_ascii());
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
    if let Ok(position) = text.parse::<Position>() {
        assert_eq!(position.to_string().parse(), Ok(position));
    }
    // Not asked for its sink: that may make folders, and connect.
    if let Ok(target) = text.parse::<Target>() {
        let _ = target.needs_values();
    }
});
