//! Bytes of stream sockets by `io_uring`: what an event loop needs, and no more.
//!
//! A [`Ring`] receives from many sockets into memory that it provides itself, and sends what it is given. Both go on
//! in the kernel while the program does other things; [`Ring::wait`] hands over all that was asked for since the last
//! call, waits, and [`Ring::next_completion`] returns the results: one system call for the requests of many sockets.
//!
//! No memory of the caller is lent to the kernel: bytes to send are moved into the ring, and come back as an empty
//! buffer; bytes that came lie in a [`Buffer`] until that is given back. So nothing here is unsafe to use. What a ring
//! has provided is not freed when it is dropped: the kernel may still write to it for a moment. A ring lives as long as
//! an event loop, so that is a few megabytes at the end of a process.
//!
//! Needs Linux 6.1 ([`Ring::new`] says what is missing).

mod buffers;
mod completion;
mod probe;
mod ring;

pub use buffers::{Buffer, BUFFERS, BUFFER_BYTES};
pub use completion::{Completion, Input, Tag};
pub use probe::probe;
pub use ring::Ring;
