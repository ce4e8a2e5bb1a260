//! Reads that are interrupted: what another client does during them is seen whole or not at all, and nothing else.

use super::{churn, clear_and_refill, filled, filled_more, many, set, wide, Case};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{strict, Client, Fixture};
use crate::engine::Showing;
use crate::error::WriteError;
use crate::types::{Attributes, Item, Ttl};

fn churn_all(c: &Client, state: &mut State) -> Result<(), String> {
    set(c, state, "a0", wide("second"))?;
    churn(c, state)?;
    set(c, state, "a0", wide("third"))
}

fn get_first(c: &Client, _: &mut State) -> Result<(), String> {
    let got = c.t_get(b"a0").map_err(|e| format!("get: {e}"))?.ok_or("a present key was missed")?;
    let good = [wide("first"), wide("second"), wide("third")].contains(&got);
    good.then_some(()).ok_or_else(|| format!("got {}", got[..got.len().min(30)].escape_ascii()))
}

/// Catches a reader that takes bytes of a recycled segment for its value, or misses a record that moves.
#[test]
fn get_while_everything_is_recycled() {
    Case { name: "get/churn", geometry: strict(12), setup: filled, act: get_first, concurrent: churn_all, exact: true }
        .run();
}

fn get_many(c: &Client, state: &mut State) -> Result<(), String> {
    let got = c.t_get_many(&[b"a0", b"never there", b"other"]).map_err(|e| format!("get: {e}"))?;
    let [Some(first), None, Some(second)] = &got[..] else { return Err("a present key was missed".into()) };
    let good = [wide("first"), wide("second"), wide("third")].contains(first) && second == &state[&b"other"[..]];
    good.then_some(()).ok_or_else(|| format!("got {}", first[..first.len().min(30)].escape_ascii()))
}

/// The same for several keys, which are looked up before the first of them is read.
#[test]
fn get_many_while_everything_is_recycled() {
    let (act, name) = (get_many, "get many/churn");
    Case { name, geometry: strict(12), setup: filled, act, concurrent: churn_all, exact: true }.run();
}

/// Catches keys that are looked up in the leaf of before a split.
#[test]
fn get_many_while_the_index_grows() {
    let (act, name, geometry) = (get_many, "get many/split", strict(24).small_leaves());
    Case { name, geometry, setup: filled, act, concurrent: many, exact: true }.run();
}

/// The value of a key says its own length and flags.
fn self_describing(c: &Client, state: &mut State, n: u32) -> Result<(), String> {
    let value = vec![b'0' + n as u8; 300 + 40 * n as usize];
    let with = Attributes { flags: n, ttl: if n % 2 == 0 { Ttl::Never } else { Ttl::At(90_000) }, ..Attributes::NONE };
    match c.t_put(b"self", &value, with, crate::engine::When::Always) {
        Ok(_) => drop(state.insert(b"self".to_vec(), value)),
        Err(WriteError::Busy { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}

/// Catches a pin that is taken on a slot whose word came back: same key, same place, another record.
#[test]
fn view_while_the_same_slot_word_returns() {
    fn setup(_: &Fixture, actor: &Client, other: &Client, state: &mut State) {
        set(actor, state, "actor", b"a".to_vec()).unwrap();
        self_describing(other, state, 0).unwrap();
    }
    fn view(c: &Client, _: &mut State) -> Result<(), String> {
        let item = c.t_view(b"self", c.hash(b"self")).map_err(|e| e.to_string())?.ok_or("missed")?;
        let n = item.metadata.flags;
        let good = item.value == vec![b'0' + n as u8; 300 + 40 * n as usize];
        good.then_some(()).ok_or_else(|| {
            format!(
                "a view of {} bytes with flags {n} begins with {}",
                item.value.len(),
                item.value[..3].escape_ascii()
            )
        })
    }
    /// Overwrites until the record is where it was at first, in another generation of its segment.
    fn come_round(c: &Client, state: &mut State) -> Result<(), String> {
        let kh = c.hash(b"self");
        let place = |c: &Client| c.read(b"self", kh, |f| Ok(f.slot)).unwrap().unwrap();
        let first = place(c);
        for n in 1..400 {
            self_describing(c, state, n % 7)?;
            if place(c) == first && n % 7 != 0 {
                break;
            }
        }
        Ok(())
    }
    Case { name: "view/same word", geometry: strict(6), setup, act: view, concurrent: come_round, exact: true }.run();
}

/// Catches a view that is said to be up to date when its key has had another value since: the slot may have its word
/// again, or be one of an index that was cleared.
#[test]
fn ask_whether_a_view_is_up_to_date() {
    fn ask(c: &Client, _: &mut State) -> Result<(), String> {
        let kh = c.hash(b"a0");
        let look = || c.peek(b"a0", kh).map(|found| found.map(|meta| meta.version.0)).map_err(|e| e.to_string());
        let Showing::Pinned(found, pin, root) = c.show_key(b"a0", kh) else { return Ok(()) };
        let before = look();
        let is_up_to_date = c.leads_to(found.slot_offset, found.slot, root);
        let after = look();
        c.unpin(pin);
        let looks = [before?, after?];
        match is_up_to_date && !looks.contains(&Some(found.version())) {
            true => Err(format!("version {} is said to be there, and is not: {looks:?}", found.version())),
            false => Ok(()),
        }
    }
    let case = |name, geometry, concurrent, exact| {
        Case { name, geometry, setup: filled_more, act: ask, concurrent, exact }.run();
    };
    case("up to date/churn", strict(12), churn_all, true);
    case("up to date/clear", strict(12), clear_and_refill, false);
    case("up to date/split", strict(24).small_leaves(), many, true);
}

const DIGIT: &[u8] = b"digit";
/// The version of a bucket before the first write.
const FIRST_VERSION: u64 = 1000;

/// Of a key of its own bucket each write gets the next version: here the value says which one, counted from the first
/// of the store.
fn next_digit(c: &Client, state: &mut State) -> Result<(), String> {
    let next = state.get(DIGIT).map_or(b'1', |value| value[0] + 1);
    let before = c.t_item(DIGIT, c.hash(DIGIT)).map_err(|e| e.to_string())?;
    set(c, state, "digit", vec![next])?;
    if let Some(item) = before.filter(|item| nth(item) + 1 != next - b'0') {
        return Err(format!("another key is in the bucket, whose version is {}", item.metadata.version.0));
    }
    Ok(())
}

/// Which of the versions of a bucket this is, from 1 on.
fn nth(item: &Item) -> u8 {
    (item.metadata.version.0 - FIRST_VERSION) as u8
}

fn a_digit(_: &Fixture, actor: &Client, other: &Client, state: &mut State) {
    next_digit(other, state).unwrap();
    next_digit(actor, state).unwrap();
}

/// Value and version belong together, however the value is read.
fn read_digit(c: &Client, _: &mut State) -> Result<(), String> {
    let kh = c.hash(DIGIT);
    let mut slots = Vec::new();
    for item in [c.t_item(DIGIT, kh), c.t_view(DIGIT, kh)] {
        slots.push(item.map_err(|e| e.to_string())?.ok_or("missed")?);
    }
    match slots.iter().find(|item| item.value != [b'0' + nth(item)]) {
        Some(item) => Err(format!("version {} has the value {}", item.metadata.version.0, item.value.escape_ascii())),
        None => Ok(()),
    }
}

/// Catches a reader that takes the version of before a replacement, and its value.
#[test]
pub(in crate::engine::tests) fn item_while_it_is_replaced_in_place() {
    let (act, name) = (read_digit, "item/replace");
    Case { name, geometry: strict(12), setup: a_digit, act, concurrent: next_digit, exact: true }.run();
}

/// Catches a replacement that can be seen, or left, half done.
#[test]
pub(in crate::engine::tests) fn replace_in_place_while_it_is_read() {
    let (act, name) = (next_digit, "replace/item");
    Case { name, geometry: strict(12), setup: a_digit, act, concurrent: read_digit, exact: true }.run();
}

/// Catches a reader that takes the recycled index of before a clear for damage, or for the index of today.
#[test]
fn get_while_the_store_is_cleared() {
    fn get(c: &Client, state: &mut State) -> Result<(), String> {
        match c.t_get(b"a0") {
            Ok(None) => Ok(()),
            Ok(Some(_)) => get_first(c, state),
            Err(error) => Err(error.to_string()),
        }
    }
    Case {
        name: "get/clear",
        geometry: strict(12),
        setup: filled_more,
        act: get,
        concurrent: clear_and_refill,
        exact: false,
    }
    .run();
}

/// Catches a scan that takes the recycled index of before a clear for damage.
#[test]
fn scan_while_the_store_is_cleared() {
    fn scan(c: &Client, _: &mut State) -> Result<(), String> {
        let pairs = c.t_scan().map_err(|e| format!("scan: {e}"))?;
        let known = |v: &Vec<u8>| v.ends_with(b"w") || v.len() == 1;
        pairs.iter().all(|(_, v)| known(v)).then_some(()).ok_or("the scan returned what was never stored".into())
    }
    Case {
        name: "scan/clear",
        geometry: strict(12).small_leaves(),
        setup: filled_more,
        act: scan,
        concurrent: clear_and_refill,
        exact: false,
    }
    .run();
}

/// Catches a scan that returns a key twice or not at all because leaves split, and a record that was overwritten.
#[test]
pub(in super::super) fn scan_while_the_index_grows() {
    fn scan(c: &Client, state: &mut State) -> Result<(), String> {
        let mut pairs = c.t_scan().map_err(|e| format!("scan: {e}"))?;
        pairs.retain(|(k, _)| !k.starts_with(b"m"));
        let many = pairs.len();
        let seen: State = pairs.into_iter().collect();
        (many == state.len() && seen.keys().eq(state.keys()))
            .then_some(())
            .ok_or_else(|| format!("{many} of {} keys", state.len()))
    }
    Case {
        name: "scan/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act: scan,
        concurrent: many,
        exact: true,
    }
    .run();
}

/// Catches a look-up that misses a present key while its leaf splits and the directory doubles.
#[test]
fn get_while_the_index_grows() {
    Case {
        name: "get/split",
        geometry: strict(24).small_leaves(),
        setup: filled,
        act: get_first,
        concurrent: many,
        exact: true,
    }
    .run();
}
