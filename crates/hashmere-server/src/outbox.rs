//! Replies to be sent: copied bytes, with views of long values between them.

use hashmere::View;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

/// Pieces that one `writev` takes.
pub const PIECES: usize = 16;
/// A buffer that grew beyond this is shrunk when it is empty.
const KEEP: usize = 256 << 10;

/// Replies that were not sent yet, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Everything that was copied.
    pub bytes: Vec<u8>,
    /// Long values, each with the offset in `bytes` before which it is sent, and the part that is.
    views: VecDeque<(usize, View, Range<usize>)>,
    sent: usize,
    sent_of_view: usize,
    in_views: usize,
}

impl Outbox {
    /// Appends a long value.
    pub fn push_view(&mut self, view: View) {
        let all = 0..view.len();
        self.push_part(view, all);
    }

    /// Appends a part of a long value.
    pub fn push_part(&mut self, view: View, part: Range<usize>) {
        let part = part.start.min(view.len())..part.end.min(view.len());
        if !part.is_empty() {
            self.in_views += part.len();
            self.views.push_back((self.bytes.len(), view, part));
        }
    }

    /// Appends text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Appends a line of text and its ending.
    #[inline]
    pub fn line(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Bytes to send.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.in_views
    }

    /// Whether everything was sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next pieces to send; returns how many there are.
    pub fn pieces<'a>(&'a self, pieces: &mut [IoSlice<'a>; PIECES]) -> usize {
        let (mut count, mut at, mut skip) = (0, self.sent, self.sent_of_view);
        for (offset, view, part) in &self.views {
            if *offset > at {
                if count == PIECES {
                    return count;
                }
                pieces[count] = IoSlice::new(&self.bytes[at..*offset]);
                count += 1;
                at = *offset;
            }
            if count == PIECES {
                return count;
            }
            pieces[count] = IoSlice::new(&view[part.start + skip..part.end]);
            count += 1;
            skip = 0;
        }
        if at < self.bytes.len() && count < PIECES {
            pieces[count] = IoSlice::new(&self.bytes[at..]);
            count += 1;
        }
        count
    }

    /// The unsent bytes if they are in one piece (the usual case: no long values).
    #[inline]
    pub fn single(&self) -> Option<&[u8]> {
        self.views.is_empty().then(|| &self.bytes[self.sent..])
    }

    /// Removes what was sent.
    pub fn advance(&mut self, mut sent: usize) {
        while let Some((offset, _, part)) = self.views.front() {
            let before = (offset - self.sent).min(sent);
            self.sent += before;
            sent -= before;
            let left = part.len() - self.sent_of_view;
            let of_view = left.min(sent);
            if self.sent < *offset || of_view == 0 {
                return;
            }
            sent -= of_view;
            self.in_views -= of_view;
            self.sent_of_view += of_view;
            if of_view < left {
                return;
            }
            self.sent_of_view = 0;
            self.views.pop_front();
        }
        self.sent += sent;
        if self.sent == self.bytes.len() {
            self.reset();
        }
    }

    fn reset(&mut self) {
        self.sent = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEEP {
            self.bytes.shrink_to(KEEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere::Options;

    #[test]
    fn pieces_come_out_in_order_however_they_are_cut() {
        let folder = std::env::temp_dir().join(format!("hashmere-outbox-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let store = Options::new().open(folder.join("o.mere")).unwrap();
        let values: Vec<Vec<u8>> = (0..20u8).map(|i| vec![i; 1000 + usize::from(i)]).collect();
        let mut expected = Vec::new();
        for (i, value) in values.iter().enumerate() {
            store.set(&[i as u8], value).unwrap();
            if i % 3 == 0 {
                expected.extend_from_slice(b"between");
            }
            expected.extend_from_slice(value);
        }
        expected.extend_from_slice(b"end");
        for step in [1usize, 7, 1000, 1007, 100_000] {
            let mut out = Outbox::default();
            for (i, _) in values.iter().enumerate() {
                if i % 3 == 0 {
                    out.text("between");
                }
                out.push_view(store.view(&[i as u8]).unwrap().unwrap());
            }
            out.text("end");
            let mut sent = Vec::new();
            while !out.is_empty() {
                let mut pieces = [IoSlice::new(&[]); PIECES];
                let count = out.pieces(&mut pieces);
                let all: Vec<u8> = pieces[..count].iter().flat_map(|piece| piece.to_vec()).collect();
                let now = all.len().min(step);
                sent.extend_from_slice(&all[..now]);
                out.advance(now);
            }
            assert!(sent == expected, "step {step}");
            assert!(out.single() == Some(&[]));
        }
        drop(store);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
