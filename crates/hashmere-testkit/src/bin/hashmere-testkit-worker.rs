//! The process that multi-process tests start, stop and kill: `hashmere-testkit-worker ROLE ARGUMENT...`.
//! It is of no use outside the tests.

fn main() {
    hashmere_testkit::procs::die_with_parent();
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().unwrap_or_default();
    hashmere_testkit::roles::run(&role, arguments.collect());
}
