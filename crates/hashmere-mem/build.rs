//! Says which copy routines to compile: `hashmere_words` selects the portable ones.
//!
//! Sanitizers see through words but not through assembly, and a stable compiler does not let the
//! code itself ask for them. `RUSTFLAGS="--cfg hashmere_words"` selects them by hand.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(hashmere_words)");
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    let x86_64 = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    if !x86_64 || set("CARGO_CFG_SANITIZE") || set("CARGO_CFG_MIRI") {
        println!("cargo::rustc-cfg=hashmere_words");
    }
}
