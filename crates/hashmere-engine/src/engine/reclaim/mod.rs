//! Getting segments back: what is alive moves out of a segment ([`clean`]), in a cache what was not used is dropped
//! ([`evict`]), what expired is dropped key by key ([`expire`]), and when there is nothing left [`emergency`] uses the
//! reserve. [`window`] makes neighbours free, and [`large`] drops what has segments of its own. [`clear`] drops all
//! records at once, [`resize`] gives the store another maximum.

pub(super) mod clean;
pub(super) mod clear;
pub(super) mod emergency;
pub(super) mod evict;
pub(super) mod eviction_log;
pub(super) mod expire;
pub(super) mod large;
mod protect;
pub(super) mod resize;
pub(super) mod window;
