//! Says which Python the module is built for: `Py_GIL_DISABLED` is looked at in `handle`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    // Not for each file of the package, tests and stubs among them.
    println!("cargo:rerun-if-changed=build.rs");
}
