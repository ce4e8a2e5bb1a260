//! A disk under the heap: which versions of which pages a power cut may leave.
//!
//! Every store is noted. Between two flushes the kernel may write any page at any time, so after a power cut each
//! sector of 512 bytes is as it was at *some* moment since the last flush: the stores to it up to some point, in their
//! order. Sectors of a page are chosen one by one (a torn page), or page by page, or all as of one moment. The size of
//! the file is any that it had, too. Words are never torn.

use hashmere_mem::{HeapMem, Mem};
use hashmere_os::random::SplitMix64;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR: u64 = 512;
const PAGE: u64 = 4096;

/// What happens to the memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A word is stored.
    Store(u64, u64),
    /// A range is punched out.
    Zero(u64, u64),
    /// The file reaches at least to here.
    Size(u64),
    /// Everything before is on the disk.
    Flush,
}

/// Everything that happened, from the start.
pub(super) struct Disk {
    capacity: u64,
    base: Vec<u64>,
    base_size: u64,
    events: Mutex<Vec<Event>>,
    /// The disk fails from now on.
    broken: AtomicBool,
}

/// How the versions are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Nothing was written since the last flush.
    Old,
    /// Everything was.
    New,
    /// Each sector as of a moment of its own.
    Sectors,
    /// Each page as of a moment of its own.
    Pages,
    /// Each page as of the last flush, or as of now.
    OldOrNew,
    /// Everything as of one moment.
    Moment,
    /// One page as of the last flush, the others as of now.
    OneOld,
    /// The other way round.
    OneNew,
    /// Records as of the last flush, everything else as of now; or the other way round.
    Halves,
}

pub(super) const CHOICES: [Choice; 9] = [
    Choice::Old,
    Choice::New,
    Choice::Sectors,
    Choice::Pages,
    Choice::OldOrNew,
    Choice::Moment,
    Choice::OneOld,
    Choice::OneNew,
    Choice::Halves,
];

/// Random numbers from a seed.
pub(super) struct Dice(SplitMix64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(SplitMix64(seed))
    }
    pub(super) fn next(&mut self) -> u64 {
        self.0.next()
    }
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

impl Disk {
    pub(super) fn new(capacity: u64) -> Arc<Disk> {
        Disk::with(capacity, vec![0; (capacity / 8) as usize], 0)
    }

    /// A disk that holds this already.
    pub(super) fn of(heap: &HeapMem) -> Arc<Disk> {
        let words = (0..heap.capacity()).step_by(8).map(|off| heap.load(off, Ordering::Relaxed)).collect();
        let size = (0..heap.capacity()).step_by(PAGE as usize).filter(|page| heap.has_memory(*page)).last();
        Disk::with(heap.capacity(), words, size.map_or(0, |page| page + PAGE))
    }

    fn with(capacity: u64, base: Vec<u64>, base_size: u64) -> Arc<Disk> {
        let (events, broken) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Arc::new(Disk { capacity, base, base_size, events, broken })
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, event: Event) {
        self.events().push(event);
    }

    /// How much has happened: a moment.
    pub(super) fn now(&self) -> usize {
        self.events().len()
    }

    /// The size of the file as it is now.
    pub(super) fn size(&self) -> u64 {
        let ends = self.events().iter().map(|event| if let Event::Size(end) = event { *end } else { 0 }).max();
        ends.unwrap_or(0).max(self.base_size)
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk of the test is broken"));
        }
        self.note(Event::Flush);
        Ok(())
    }

    /// From now on nothing can be flushed.
    pub(super) fn break_down(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Images after power cuts at these moments, which rise. `make` gets each with its size and what was chosen.
    pub(super) fn cuts(
        &self,
        moments: &[(usize, Choice)],
        dice: &mut Dice,
        mut make: impl FnMut(usize, Choice, HeapMem, u64),
    ) {
        let events = self.events().clone();
        let (mut disk, mut size, mut done) = (self.base.clone(), self.base_size, 0);
        for (moment, choice) in moments {
            let flushed =
                events[..*moment].iter().rposition(|event| matches!(event, Event::Flush)).map_or(0, |f| f + 1);
            for event in &events[done..flushed.max(done)] {
                apply(&mut disk, &mut size, *event);
            }
            done = flushed.max(done);
            let (image, len) = self.cut(&disk, size, &events[done..*moment], *choice, dice);
            make(*moment, *choice, image, len);
        }
    }

    fn cut(&self, disk: &[u64], size: u64, since: &[Event], choice: Choice, dice: &mut Dice) -> (HeapMem, u64) {
        // The stores to each sector, each with its moment.
        let mut sectors: BTreeMap<u64, Vec<(usize, Event)>> = BTreeMap::new();
        let mut sizes = vec![size];
        for (at, event) in since.iter().enumerate() {
            match *event {
                Event::Store(off, _) => sectors.entry(off / SECTOR).or_default().push((at, *event)),
                Event::Zero(off, len) => {
                    for sector in off / SECTOR..(off + len).div_ceil(SECTOR) {
                        let (from, to) = (off.max(sector * SECTOR), (off + len).min((sector + 1) * SECTOR));
                        sectors.entry(sector).or_default().push((at, Event::Zero(from, to - from)));
                    }
                }
                Event::Size(end) => sizes.push(end.max(sizes[sizes.len() - 1])),
                Event::Flush => {}
            }
        }
        let end = since.len();
        let mut words = disk.to_vec();
        let (moment, odd) = (dice.below(end as u64 + 1) as usize, dice.next());
        let pages: Vec<u64> = sectors.keys().map(|sector| sector * SECTOR / PAGE).collect();
        let one = if pages.is_empty() { 0 } else { dice.pick(&pages) };
        let mut until = BTreeMap::new();
        for (sector, stores) in &sectors {
            let page = sector * SECTOR / PAGE;
            let is_log = sector * SECTOR >= hashmere_format::header::at::DATA;
            let moment = match choice {
                Choice::Old => 0,
                Choice::New => end,
                Choice::Sectors => dice.below(end as u64 + 1) as usize,
                Choice::Pages => *until.entry(page).or_insert_with(|| dice.below(end as u64 + 1) as usize),
                Choice::OldOrNew => *until.entry(page).or_insert_with(|| if dice.one_in(2) { 0 } else { end }),
                Choice::Moment => moment,
                Choice::OneOld => {
                    if page == one {
                        0
                    } else {
                        end
                    }
                }
                Choice::OneNew => {
                    if page == one {
                        end
                    } else {
                        0
                    }
                }
                Choice::Halves => {
                    if is_log == (odd & 1 == 0) {
                        0
                    } else {
                        end
                    }
                }
            };
            let kept = stores.iter().take_while(|(at, _)| *at < moment);
            kept.for_each(|(_, event)| apply(&mut words, &mut 0, *event));
        }
        let len = match choice {
            Choice::Old => size,
            Choice::New => sizes[sizes.len() - 1],
            _ => dice.pick(&sizes),
        };
        (self.heap(&words, len), len)
    }

    fn heap(&self, words: &[u64], len: u64) -> HeapMem {
        let heap = HeapMem::new(self.capacity);
        heap.back(0, len).unwrap();
        let pages = words[..(len / 8) as usize].chunks((PAGE / 8) as usize).zip((0..).step_by(PAGE as usize));
        // Of a file with many holes most pages.
        for (page, start) in pages.filter(|(page, _)| page.iter().any(|word| *word != 0)) {
            page.iter().zip((start..).step_by(8)).for_each(|(word, off)| heap.store(off, *word, Ordering::Relaxed));
        }
        heap
    }
}

fn apply(words: &mut [u64], size: &mut u64, event: Event) {
    match event {
        Event::Store(off, value) => words[(off / 8) as usize] = value,
        Event::Zero(off, len) => words[(off / 8) as usize..((off + len) / 8) as usize].fill(0),
        Event::Size(end) => *size = (*size).max(end),
        Event::Flush => {}
    }
}
