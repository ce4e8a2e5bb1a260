//! Hostile files: bytes of valid stores are changed, blindly and with knowledge of the format, and a child process
//! opens the result and does everything that the public interface can do. Or the file is whole when it is opened, and
//! its bytes are changed while it is open. Errors and wrong values are fine; a signal, a panic, a hang or memory
//! without bound is not.

mod damage;
mod drive;
mod places;
mod pool;
mod run;
mod scribble;
mod shapes;
mod timed;

pub use drive::drive;
pub use run::{run, Manner, Summary};
