//! Lines of 36 bytes logged by the Rust calls, as they are and formatted: prints nanoseconds of processor time for
//! each. Its twin is `bench/c/line.c`. Bursts go into a ring that has room for them; it is drained in between. Usage:
//! line STORE BURSTS

use hashmere::Store;
use hashmere_log::{Format, Level, Log, LogFile, LogOptions, OnNoDrainer, Sink};
use std::error::Error;

const BURST: u32 = 8000;
const TEXT: &str = "request of user 1234567 is now done.";

/// Nanoseconds that this thread had of a processor.
fn now() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn drain(log: &Log) -> Result<(), Box<dyn Error>> {
    let lines = log.drain(Sink::file(LogFile::new("/dev/null"), Format::Text))?.stop()?;
    if lines != u64::from(BURST) {
        return Err(format!("{lines} lines instead of {BURST}").into());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(name), Some(bursts)) = (args.next(), args.next()) else { return Err("usage: line STORE BURSTS".into()) };
    let bursts: i32 = bursts.parse()?;
    let store = Store::open(name)?;
    let log = Log::open(&store, "line", LogOptions::new().ring_bytes(1 << 20).on_no_drainer(OnNoDrainer::Keep))?;
    let (mut plain, mut formatted) = (0.0, 0.0);
    // The first warm up.
    for burst in -4..bursts {
        let begin = now();
        for _ in 0..BURST {
            log.line(Level::Info, TEXT)?;
        }
        plain += if burst >= 0 { now() - begin } else { 0.0 };
        drain(&log)?;
        let begin = now();
        for i in 0..BURST {
            log.format(Level::Info, format_args!("request of user {} is now done.", 1_234_567 + i))?;
        }
        formatted += if burst >= 0 { now() - begin } else { 0.0 };
        drain(&log)?;
    }
    let each = f64::from(bursts) * f64::from(BURST);
    println!("{:.2} {:.2}", plain / each, formatted / each);
    Ok(())
}
