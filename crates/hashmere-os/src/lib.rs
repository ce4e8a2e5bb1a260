//! The system calls under Hashmere, and nothing else.
//!
//! Each module wraps one service of Linux in a safe call with a documented outcome: a shared
//! mapping ([`map`]) and its addresses ([`addresses`]), space in a file ([`space`]), creation and guarded opening of
//! files ([`mod@file`]), locks that die with their process ([`bytelock`]), what a fork must not inherit ([`fork`]),
//! sleeping on a word ([`futex`]), clocks ([`clock`]), the identity of this boot ([`boot`]) and of other processes
//! ([`process`]), random numbers ([`random`]), bytes sent with a note of how many ([`send`]).
//!
//! It is not a portability layer, and it knows nothing of the format of a Hashmere file.

#[cfg(not(all(target_os = "linux", target_endian = "little", target_pointer_width = "64")))]
compile_error!("Hashmere runs on 64-bit little-endian Linux only");

pub mod addresses;
pub mod backoff;
pub mod boot;
pub mod bytelock;
pub mod clock;
pub mod eventfd;
pub mod file;
pub mod fork;
pub mod futex;
pub mod map;
pub mod page;
pub mod process;
pub mod random;
pub mod send;
pub mod space;

mod sys;
#[cfg(test)]
mod test_util;

pub use addresses::AddressLimit;
pub use bytelock::ByteLocks;
pub use map::Map;
