//! Snapshots of small store files.

use crate::files::adopt;
use hashmere_format::header::at;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGE: usize = 4096;
/// Where the client rows are (see `docs/internals/format.md`).
const ROWS: std::ops::Range<usize> = 320 << 10..832 << 10;
const ROW: usize = 512;
/// Process id and time of the claim in a row: for messages only, and different in each process.
const LABELS: std::ops::Range<usize> = 8..24;

/// The bytes of a store file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Takes one of a file.
    pub fn of(path: &Path) -> Image {
        Image { bytes: std::fs::read(path).expect("read a store file") }
    }

    /// Makes a file that has these bytes; what is zero stays a hole.
    pub fn write(&self, path: &Path) {
        let file: File =
            OpenOptions::new().write(true).create(true).truncate(true).open(path).expect("create a copy of a store");
        for (page, bytes) in self.bytes.chunks(PAGE).enumerate() {
            if *bytes != [0; PAGE][..bytes.len()] {
                file.write_all_at(bytes, (page * PAGE) as u64).expect("write a copy of a store");
            }
        }
        file.set_len(self.bytes.len() as u64).expect("size a copy of a store");
        adopt(&file);
    }

    /// The same without what tells one run of a process from the next and decides nothing.
    pub fn without_labels(mut self) -> Image {
        let rows = self.bytes.get_mut(ROWS).expect("a store file has all its rows");
        rows.chunks_mut(ROW).for_each(|row| row[LABELS].fill(0));
        self.bytes[at::FILE as usize..][..8].fill(0);
        self
    }
}
