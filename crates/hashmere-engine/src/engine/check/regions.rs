//! The regions: each is whole, and no two have one kind and name.

use crate::engine::check::CheckReport;
use crate::engine::log::region::HALF_DROPPED;
use crate::engine::Engine;
use hashmere_format::region;
use hashmere_mem::{Host, Mem};
use std::collections::HashSet;

impl<M: Mem, H: Host> Engine<M, H> {
    pub(super) fn check_regions(&self, report: &mut CheckReport) {
        let mut names = HashSet::new();
        for (spot, info) in self.each_region() {
            match info {
                Err(HALF_DROPPED) if self.is_being_dropped(spot.segment) => {}
                Err(what) => {
                    report.add("bad-region", spot.data - region::DATA, format!("the region {what}"));
                }
                Ok(info) => {
                    let name = info.name.escape_ascii().to_string();
                    if !names.insert((info.kind, info.name)) {
                        let text = format!("there are two regions of kind {} and name {name}", info.kind);
                        report.add("duplicate-region", spot.data - region::DATA, text);
                    }
                }
            }
        }
    }
}
