//! Tests of the engine on heap memory: in one process, deterministic, and most of them under Miri as well.

mod audit;
mod crash;
mod crash_cases;
mod durable_cases;
mod history;
mod meanwhile;
mod medium;
#[cfg(feature = "shuttle")]
mod models;
mod ops;
mod power;
mod power_between;
mod power_faults;
mod probe;
mod quick;
mod refused;
mod world;

fn show(c: &world::Client, what: &str) {
    use hashmere_format::segment::at;
    eprintln!("--- {what}");
    for n in 0..c.segments() {
        eprintln!(
            "{n}: {:?} used {} dead {} born {}",
            c.state(n),
            c.field(n, at::USED),
            c.field(n, at::DEAD),
            c.field(n, at::BORN)
        );
    }
}

impl world::TestEngine {
    fn mem_epoch(&self) -> u64 {
        use hashmere_mem::Mem;
        self.mem.load(hashmere_format::header::at::EPOCH, std::sync::atomic::Ordering::Relaxed)
    }
}
