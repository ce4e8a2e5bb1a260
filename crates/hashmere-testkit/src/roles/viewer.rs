//! Holds views: `viewer STORE KEYS` takes one of each of these keys, says `holding`, and holds them until standard
//! input is closed; then checks that they are still what they were.

use super::Arguments;
use crate::payload;

pub(super) fn run(arguments: &mut Arguments) {
    let store = arguments.store();
    let keys: u64 = arguments.next();
    let views: Vec<_> = (0..keys).map(|key| store.view(&payload::key(key)).expect("view").expect("present")).collect();
    let copies: Vec<Vec<u8>> = views.iter().map(|view| view.to_vec()).collect();
    println!("holding");
    let _ = std::io::read_to_string(std::io::stdin());
    for (view, copy) in views.iter().zip(&copies) {
        assert_eq!(**view, copy[..], "a view has changed");
    }
    println!("intact");
}
