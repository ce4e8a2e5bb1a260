//! The bytes of a store file: the offset of everything and how each word is packed.
//!
//! This crate knows no memory, no process and no clock: it turns words into meanings and back.
//! `docs/internals/format.md` draws what is said here; a change of anything in this crate that moves a byte changes
//! [`header::FORMAT`].

pub mod cell;
pub mod checksum;
pub mod crc32c;
pub mod feed;
pub mod hash;
pub mod header;
pub mod layout;
pub mod leaf;
pub mod member;
pub mod record;
pub mod region;
pub mod root;
pub mod row;
pub mod sample;
pub mod segment;
pub mod snapshot;
pub mod sync;
pub mod uid;
