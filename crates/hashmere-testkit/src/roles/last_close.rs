//! Has a store open that is to go with its last user, and goes: `last-exit STORE HOW`.

use super::Arguments;
use hashmere::Options;

pub(super) fn run(arguments: &mut Arguments) {
    let (path, how) = (arguments.next::<String>(), arguments.next::<String>());
    let options = if how == "plain" { Options::new() } else { Options::new().remove_on_last_close(true) };
    let store = options.open(&path).expect("a store");
    store.set(b"key", b"value").expect("room for a key");
    if how == "plain" {
        return;
    }
    println!("open");
    std::io::stdin().lines().for_each(drop);
    match how.as_str() {
        "close" => drop(store),
        "return" => std::mem::forget(store),
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        // SAFETY: ends the process; nothing of it is used any more.
        "_exit" => unsafe { nix::libc::_exit(0) },
        other => panic!("ending {other:?}"),
    }
}
