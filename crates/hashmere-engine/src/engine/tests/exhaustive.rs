//! The protocol of transactions alone, in every interleaving: two writers that change two keys, a reader, and kills.
//!
//! The models of `models` run the engine itself, on schedules that are drawn. Here the protocol of
//! `docs/internals/transactions.md` is written down once more, one step for each access of shared memory, and every
//! state that it can reach is visited. Each transaction adds one to both keys, so at any moment both are the same.

use hashmere_mem::scenarios;
use std::collections::HashSet;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Broken {
    No,
    /// The commit comes before the second slot names its cell.
    CommitEarly,
    /// A reader takes what the cell says without a second look.
    CellBelieved,
    /// A repair takes every transaction back.
    RepairBackward,
    /// A repair releases the locks before the slots are done.
    LocksFirst,
    /// A writer stores without comparing what it read.
    GuardIgnored,
    /// The slots get their new words before the status says that they count.
    SlotsEarly,
}

const WRITERS: usize = 2;
const KEYS: usize = 2;
/// Transactions of each writer: the first one uses its cells twice.
const ROUNDS: [u8; WRITERS] = [2, 1];
/// How many writers may be killed; one, where not everything is tried.
const KILLS: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Word {
    Value(u8),
    /// The cell of this writer.
    Cell(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    Pending,
    Committed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Writer {
    /// What it does next; see `step`.
    at: u8,
    round: u8,
    alive: bool,
    /// What it read before it locked.
    read: [u8; KEYS],
    number: u8,
    stage: Stage,
    cells: [(u8, u8); KEYS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reader {
    /// How many keys it has read, and where it is in the next one.
    done: u8,
    at: u8,
    word: Word,
    seen: (u8, Stage),
    cell: (u8, u8),
    values: [u8; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    slots: [Word; KEYS],
    locks: [Option<u8>; KEYS],
    writers: [Writer; WRITERS],
    reader: Reader,
    kills: u8,
    /// Transactions that took place.
    committed: u8,
}

impl State {
    fn start() -> State {
        let writer = Writer {
            at: 0,
            round: 0,
            alive: true,
            read: [0; KEYS],
            number: 0,
            stage: Stage::Idle,
            cells: [(0, 0); KEYS],
        };
        let reader =
            Reader { done: 0, at: 0, word: Word::Value(0), seen: (0, Stage::Idle), cell: (0, 0), values: [0; 4] };
        State {
            slots: [Word::Value(0); KEYS],
            locks: [None; KEYS],
            writers: [writer; WRITERS],
            reader,
            kills: 0,
            committed: 0,
        }
    }

    /// What a key is.
    fn value(&self, key: usize) -> u8 {
        match self.slots[key] {
            Word::Value(value) => value,
            Word::Cell(of) => {
                let writer = &self.writers[of as usize];
                let (old, new) = writer.cells[key];
                if writer.stage == Stage::Committed {
                    new
                } else {
                    old
                }
            }
        }
    }
}

/// The next state of a writer that makes one step; `None`: it waits, or is done.
fn step(mut state: State, who: usize, broken: Broken) -> Option<State> {
    let mut me = state.writers[who];
    if !me.alive || me.round == ROUNDS[who] {
        return None;
    }
    let name = Some(who as u8);
    let mut next = me.at + 1;
    match me.at {
        0 | 1 => me.read[usize::from(me.at)] = state.value(usize::from(me.at)),
        2 | 3 => {
            let key = usize::from(me.at - 2);
            match state.locks[key] {
                None => state.locks[key] = name,
                Some(owner) if !state.writers[usize::from(owner)].alive => {
                    return repair(state, usize::from(owner), broken);
                }
                Some(_) => return None,
            }
        }
        4 => {
            let same = (0..KEYS).all(|key| state.slots[key] == Word::Value(me.read[key]));
            if !same && broken != Broken::GuardIgnored {
                // A conflict: it reads again.
                state.locks.iter_mut().filter(|lock| **lock == name).for_each(|lock| *lock = None);
                next = 0;
            }
        }
        5 | 6 => {
            let key = usize::from(me.at - 5);
            me.cells[key] = (me.read[key], me.read[key] + 1);
        }
        7 => (me.number, me.stage) = (me.number + 1, Stage::Pending),
        8 => state.slots[0] = Word::Cell(who as u8),
        9 | 10 if (me.at == 9) == (broken == Broken::CommitEarly) => {
            me.stage = Stage::Committed;
            state.committed += 1;
        }
        9 | 10 => state.slots[1] = Word::Cell(who as u8),
        11 | 12 => state.slots[usize::from(me.at - 11)] = Word::Value(me.cells[usize::from(me.at - 11)].1),
        13 => me.stage = Stage::Idle,
        14 => state.locks[0] = None,
        _ => {
            state.locks[1] = None;
            (next, me.round) = (0, me.round + 1);
        }
    }
    if broken == Broken::SlotsEarly && me.at == 8 {
        state.slots[0] = Word::Value(me.cells[0].1);
    }
    me.at = next;
    state.writers[who] = me;
    Some(state)
}

/// The next step of the repair of a killed writer, by any process: what is done already is not done again.
fn repair(mut state: State, dead: usize, broken: Broken) -> Option<State> {
    let writer = state.writers[dead];
    let name = Some(dead as u8);
    let held = (0..KEYS).find(|key| state.locks[*key] == name);
    let open = (0..KEYS).find(|key| state.slots[*key] == Word::Cell(dead as u8));
    if let Some(key) = held.filter(|_| broken == Broken::LocksFirst) {
        state.locks[key] = None;
    } else if let Some(key) = open {
        let forward = writer.stage == Stage::Committed && broken != Broken::RepairBackward;
        let (old, new) = writer.cells[key];
        state.slots[key] = Word::Value(if forward { new } else { old });
    } else if writer.stage != Stage::Idle {
        state.writers[dead].stage = Stage::Idle;
    } else {
        state.locks[held?] = None;
    }
    Some(state)
}

/// The next state of the reader: it reads the first key, the second, and both again.
fn read(mut state: State, broken: Broken) -> Option<State> {
    let mut me = state.reader;
    if me.done == 4 {
        return None;
    }
    let key = usize::from(me.done) % KEYS;
    let mut value = None;
    match (me.at, me.word) {
        (0, _) => {
            me.word = state.slots[key];
            value = if let Word::Value(value) = me.word { Some(value) } else { None };
        }
        (1, Word::Cell(of)) => {
            let writer = &state.writers[usize::from(of)];
            me.seen = (writer.number, writer.stage);
        }
        (2, Word::Cell(of)) => me.cell = state.writers[usize::from(of)].cells[key],
        (_, Word::Cell(of)) => {
            // The status and the slot are two accesses in the engine; both orders are covered by what others do before.
            let writer = &state.writers[usize::from(of)];
            let same = writer.number == me.seen.0 && writer.stage != Stage::Idle && me.seen.1 != Stage::Idle;
            if same && state.slots[key] == me.word || broken == Broken::CellBelieved {
                value = Some(if me.seen.1 == Stage::Pending { me.cell.0 } else { me.cell.1 });
            } else {
                me.at = u8::MAX;
            }
        }
        (_, Word::Value(_)) => unreachable!("it was taken at once"),
    }
    me.at = me.at.wrapping_add(1);
    if let Some(value) = value {
        me.values[usize::from(me.done)] = value;
        (me.done, me.at) = (me.done + 1, 0);
        // For the next key nothing is left of this one: fewer states.
        (me.word, me.seen, me.cell) = (Word::Value(0), (0, Stage::Idle), (0, 0));
    }
    state.reader = me;
    Some(state)
}

/// What must hold in every state.
fn is_right(state: &State) -> Result<(), String> {
    if state.value(0) != state.value(1) {
        return Err(format!("the keys are {} and {}", state.value(0), state.value(1)));
    }
    if state.value(0) != state.committed {
        return Err(format!("{} of {} transactions are there", state.value(0), state.committed));
    }
    // Under the lock of a key no writer looks for cells of others.
    let has_locks = |writer: &Writer| writer.alive && (4..=8).contains(&writer.at);
    if state.writers.iter().any(has_locks) && state.slots.iter().any(|word| matches!(word, Word::Cell(_))) {
        return Err("a writer that has both locks finds a cell".into());
    }
    let read = &state.reader.values[..usize::from(state.reader.done)];
    if read.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(format!("a reader saw {read:?}, one after the other"));
    }
    match read {
        [a, b, c, d] if a == c && b == d && a != b => Err(format!("a snapshot of {a} and {b}")),
        _ => Ok(()),
    }
}

/// Visits every state. Returns how many there are, or what is wrong in one.
fn explore(broken: Broken, kills: u8) -> Result<usize, String> {
    let mut seen = HashSet::from([State::start()]);
    let mut open = vec![State::start()];
    while let Some(state) = open.pop() {
        is_right(&state).map_err(|error| format!("{error}: {state:?}"))?;
        let mut next: Vec<State> = (0..WRITERS).filter_map(|who| step(state, who, broken)).collect();
        next.extend(read(state, broken));
        for who in 0..WRITERS {
            if state.writers[who].alive && state.kills < kills {
                let mut killed = state;
                killed.writers[who].alive = false;
                killed.kills += 1;
                next.push(killed);
            }
            // A third process opens the store.
            if !state.writers[who].alive {
                next.extend(repair(state, who, broken));
            }
        }
        let ended = |who: usize| !state.writers[who].alive || state.writers[who].round == ROUNDS[who];
        if next.is_empty() && !((0..WRITERS).all(ended) && state.locks == [None; KEYS]) {
            return Err(format!("nothing goes on: {state:?}"));
        }
        open.extend(next.into_iter().filter(|state| seen.insert(*state)));
    }
    Ok(seen.len())
}

#[test]
#[cfg_attr(miri, ignore)]
fn every_interleaving_of_two_transactions_is_right() {
    let states = explore(Broken::No, if scenarios::whole() { KILLS } else { 1 }).unwrap();
    println!("{states} states");
    assert!(states > 10_000);
}

#[test]
#[cfg_attr(miri, ignore)]
fn every_fault_of_the_protocol_shows() {
    let faults = [
        Broken::CommitEarly,
        Broken::CellBelieved,
        Broken::RepairBackward,
        Broken::LocksFirst,
        Broken::GuardIgnored,
        Broken::SlotsEarly,
    ];
    for broken in faults {
        let error = explore(broken, KILLS).expect_err(&format!("{broken:?} does not show"));
        println!("{broken:?}: {error}");
    }
}
