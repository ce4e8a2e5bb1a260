//! What must hold of a store at rest beyond what `check` says: segments without an owner, lost ones, counts that are
//! too high.

use super::fixture::TestEngine;
use crate::engine::index::Tree;
use hashmere_format::header::{at, RootWord};
use hashmere_format::leaf;
use hashmere_format::record::Head;
use hashmere_format::root;
use hashmere_format::row;
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::{Host, Mem};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// What the segments of a store are used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Audit {
    pub(super) total: u64,
    pub(super) free: u64,
    /// Of records, without an owner.
    pub(super) log: u64,
    /// Of records, owned by a live client.
    pub(super) held: u64,
    pub(super) large: u64,
    pub(super) index: u64,
    pub(super) pending_free: u64,
    pub(super) table: u64,
    pub(super) region: u64,
    pub(super) offline: u64,
    /// Bytes of index segments that are no leaf, no directory and not in the arena any more.
    pub(super) lost_index: u64,
}

/// Looks at every segment. `Err`: what is wrong.
pub(super) fn audit(engine: &TestEngine) -> Result<Audit, String> {
    let live = live_records(engine)?;
    let mut audit = Audit { total: engine.segments(), ..Audit::default() };
    for number in 0..engine.segments() {
        let word = engine.state(number);
        let held = word.owner != 0;
        for tail in number + 1..number + u64::from(word.length) {
            if engine.state(tail) != Word::new(State::Tail) {
                return Err(format!("segment {tail} is {:?}, although it is the rest of {number}", engine.state(tail)));
            }
        }
        if held && !engine.host.is_claimed(word.owner - 1).unwrap() {
            return Err(format!(
                "segment {number} is {:?} and belongs to client {}, who is dead",
                word.state,
                word.owner - 1
            ));
        }
        match word.state {
            State::Free | State::Hole => {
                audit.free += 1;
                if word.state == State::Free && !engine.mem.has_memory(engine.segment_offset(number)) {
                    return Err(format!("segment {number} is free, and no memory is behind it"));
                }
                if engine.field(number, segment::at::DEAD) != 0 {
                    return Err("a free segment counts dead bytes".into());
                }
            }
            State::Open | State::Cleaning | State::Claimed | State::LargeNew if !held => {
                return Err(format!("segment {number} is {:?} and has no owner", word.state));
            }
            State::Open => {
                audit.held += 1;
                let head = engine.mem.load(row::offset(word.owner - 1) + row::at::HEAD, Ordering::Acquire);
                audit_log(engine, number, head - engine.segment_offset(number), &live)?;
            }
            State::Cleaning | State::Claimed => audit.held += u64::from(word.length),
            State::Sealed | State::Partial => {
                audit.log += 1;
                audit_log(engine, number, engine.field(number, segment::at::USED), &live)?;
            }
            State::PendingFree => audit.pending_free += 1,
            State::Index if !engine.is_stale(number) => audit.index += u64::from(word.length),
            State::Index => audit.log += u64::from(word.length),
            State::Large | State::LargeNew => {
                audit.large += u64::from(word.length);
                audit_large(engine, number, &live)?;
            }
            State::Table => audit.table += u64::from(word.length),
            State::Region => audit.region += u64::from(word.length),
            State::Offline => audit.offline += 1,
            State::Tail => {}
        }
    }
    audit_offline(engine, audit.offline)?;
    if engine.layout.is_durable() {
        audit_sums(engine, &live)?;
    }
    audit.lost_index = lost_index(engine, audit.index)?;
    Ok(audit)
}

/// The count of segments that are offline is exact, and no more of them are than the maximum asks for.
fn audit_offline(engine: &TestEngine, offline: u64) -> Result<(), String> {
    let said = engine.mem.load(at::OFFLINE, Ordering::Acquire);
    if said != offline {
        return Err(format!("{offline} segments are offline, the header says {said}"));
    }
    if offline > engine.segments().saturating_sub(engine.segments_max()) {
        return Err(format!("{offline} segments are offline, more than the maximum asks for"));
    }
    Ok(())
}

/// Offsets of the records that the index leads to.
fn live_records(engine: &TestEngine) -> Result<HashSet<u64>, String> {
    let root = engine.root();
    let mut live = HashSet::new();
    for tree in [Tree::First, Tree::Overflow] {
        for leaf in engine.leaves(root, tree) {
            for slot in engine.leaf_slots(leaf).map(|s| engine.slot(s)).filter(|s| !s.is_empty()) {
                let state = engine.state(engine.segment_of(slot.offset())).state;
                if !matches!(state, State::Open | State::Partial | State::Sealed | State::Large) {
                    return Err(format!("a slot leads to {}, in a segment that is {state:?}", slot.offset()));
                }
                live.insert(slot.offset());
            }
        }
    }
    Ok(live)
}

/// A count of dead bytes may be too low, never too high: by it segments are freed without a look.
fn audit_log(engine: &TestEngine, number: u64, used: u64, live: &HashSet<u64>) -> Result<(), String> {
    let dead = engine.field(number, segment::at::DEAD);
    let mut garbage = 0;
    for record in engine.records(number, used) {
        garbage += if live.contains(&record.offset) { 0 } else { record.bytes() };
    }
    // One whose recycling was cut short has nothing in it that counts.
    if dead > garbage && used != 0 && !engine.is_stale(number) {
        return Err("a segment counts more dead bytes than it has".into());
    }
    Ok(())
}

/// What the disk would need of a durable store: every record is whole, and says that it lives exactly if it does.
fn audit_sums(engine: &TestEngine, live: &HashSet<u64>) -> Result<(), String> {
    let floor = engine.mem.load(engine.root_block(engine.root()) + root::at::FLOOR, Ordering::Acquire);
    for number in 0..engine.segments() {
        let (word, used) = (engine.state(number), engine.field(number, segment::at::USED));
        let used = match word.state {
            State::Open => {
                let head = engine.mem.load(row::offset(word.owner - 1) + row::at::HEAD, Ordering::Acquire);
                head - engine.segment_offset(number)
            }
            State::Sealed | State::Partial | State::Large => used,
            _ => continue,
        };
        let (mut end, mut wrong) = (0, None);
        let mut look = |record: u64, head: &Head| {
            end += head.record_bytes(engine.layout.lengths);
            let says = engine.checksum_word(record).stamp() == hashmere_format::checksum::ALIVE;
            if !engine.is_whole(record, head) {
                wrong = wrong.take().or(Some(format!("the record at {record} has a wrong checksum")));
            } else if says != live.contains(&record) && !engine.is_stale(number) && head.version > floor {
                wrong = wrong.take().or(Some(format!("the record at {record} says of its life: {says}")));
            }
        };
        for record in engine.records_with_large(number, used) {
            look(record.offset, &engine.head_at(record.offset, record.header));
        }
        match wrong {
            Some(wrong) => return Err(wrong),
            None if end != used => return Err(format!("the records of segment {number} end at {end}, not {used}")),
            None => {}
        }
    }
    Ok(())
}

/// A large record is led to, or known to be dead.
fn audit_large(engine: &TestEngine, number: u64, live: &HashSet<u64>) -> Result<(), String> {
    let dead = engine.field(number, segment::at::DEAD) != 0 || engine.is_stale(number);
    let is_live = live.contains(&engine.segment_offset(number));
    if engine.state(number).state == State::Large && is_live == dead {
        return Err(format!("the large record in segment {number} is {}", if dead { "live and dead" } else { "lost" }));
    }
    Ok(())
}

fn lost_index(engine: &TestEngine, segments: u64) -> Result<u64, String> {
    let word = engine.root();
    let block = engine.root_block(word);
    let get = |offset: u64| engine.mem.load(offset, Ordering::Acquire);
    let mut bytes = root::BYTES.next_multiple_of(engine.leaf_bytes());
    for tree in [Tree::First, Tree::Overflow] {
        bytes += engine.leaves(word, tree).count() as u64 * engine.leaf_bytes();
        let chunks = (1..root::CHUNKS).filter(|c| get(block + tree.pointers() + 8 * c) != 0);
        bytes += chunks.map(|c| 8 * root::chunk_start(c)).sum::<u64>();
    }
    let mut spare = get(block + root::at::SPARE);
    let mut spares = HashSet::new();
    while spare != 0 {
        if !spares.insert(spare) || engine.leaves(word, Tree::First).any(|leaf| leaf == spare) {
            return Err(format!("the spare leaf {spare} is twice in the list, or in use"));
        }
        spare = get(spare + leaf::at::NEXT);
    }
    bytes += spares.len() as u64 * engine.leaf_bytes();
    bytes += get(block + root::at::ARENA_END).saturating_sub(get(block + root::at::ARENA));
    let all = segments * engine.segment_bytes();
    if bytes > all {
        return Err(format!("the index uses {bytes} bytes, more than the {all} of its segments"));
    }
    let used = RootWord::unpack(word).segment;
    if engine.state(used).state != State::Index {
        return Err(format!("the root is in segment {used}, which is {:?}", engine.state(used).state));
    }
    Ok(all - bytes)
}
