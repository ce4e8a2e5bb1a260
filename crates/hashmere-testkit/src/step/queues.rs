//! The operations on queues that are stepped through, and what must hold after a death in one of them: every element is
//! in one place, in its order, as if the operation had been done up to one of its steps and the endpoint had been given
//! back then.

use super::image::Image;
use super::judge::Judge;
use super::run::{Case, Counts, Effort};
use super::trace::Stopped;
use super::verify::{is_clean, QUICKLY_NS};
use crate::limits::now_ns;
use crate::rng::Rng;
use crate::scratch::Scratch;
use crate::tiny;
use hashmere::{Options, Store};
use hashmere_queue::{Endpoint, Kind, Pool, PoolOptions, Queue, QueueError, QueueOptions};
use std::path::Path;

const ELEMENTS: u64 = 10;
/// Elements of the queue that is popped from and of the one that is pushed to, before.
const FILLED: [u64; 2] = [5, 2];
/// Elements of a batch.
const BATCH: u64 = 3;

/// One step: it takes effect as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Pop,
    Push,
    PopMany,
    PushMany,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct QueueScenario {
    /// Its name.
    pub name: &'static str,
    kind: Kind,
    /// What the endpoint has done before.
    first: &'static [Step],
    /// What it does.
    act: &'static [Step],
}

/// All of them.
pub const QUEUE_SCENARIOS: &[QueueScenario] = &[
    scenario("queue: pop", Kind::Mpmc, &[], &[Step::Pop]),
    scenario("queue: push", Kind::Mpmc, &[Step::Pop], &[Step::Push]),
    scenario("queue: push, pop", Kind::Mpmc, &[Step::Pop], &[Step::Push, Step::Pop]),
    scenario("queue: pop batch", Kind::Mpmc, &[], &[Step::PopMany]),
    scenario("queue: push batch", Kind::Mpmc, &[Step::PopMany], &[Step::PushMany]),
    scenario("queue: both, batch", Kind::Mpmc, &[Step::PopMany], &[Step::PushMany, Step::PopMany]),
    scenario("queue: pop, MPSC", Kind::Mpsc, &[], &[Step::Pop]),
    scenario("queue: both, SPSC", Kind::Spsc, &[Step::Pop], &[Step::Push, Step::Pop]),
    scenario("queue: batch, SPSC", Kind::Spsc, &[Step::PopMany], &[Step::PushMany, Step::PopMany]),
];

const fn scenario(name: &'static str, kind: Kind, first: &'static [Step], act: &'static [Step]) -> QueueScenario {
    QueueScenario { name, kind, first, act }
}

/// A pool with the endpoint of one process.
struct Seat {
    pool: Pool,
    from: Queue,
    to: Queue,
    endpoint: Endpoint,
}

impl Seat {
    fn take(store: &Store) -> Result<Seat, QueueError> {
        let pool = Pool::open(store, "pool")?;
        let (from, to, endpoint) = (pool.queue("from")?, pool.queue("to")?, pool.endpoint()?);
        Ok(Seat { pool, from, to, endpoint })
    }

    fn queues(&self) -> [&Queue; 3] {
        [self.pool.free(), &self.from, &self.to]
    }
}

/// The numbers of the elements in `free`, `from` and `to`.
type Contents = [Vec<u64>; 3];

/// The traced process: what it did before, a marker, the operation, a marker.
pub(super) fn work(scenario: &QueueScenario, store: &Store, mark: impl Fn()) {
    let mut seat = Seat::take(store).expect("take part");
    for queue in [&seat.from, &seat.to] {
        // The process that was the only producer or consumer before has ended; roles are taken by the first use.
        let popped = seat.endpoint.pop_many(queue, 1).expect("pop");
        assert_eq!((popped, seat.endpoint.push_many(queue, 1).expect("push")), (1, 1));
    }
    match (scenario.first, scenario.act) {
        ([], [Step::Pop]) => {
            mark();
            let element = seat.endpoint.pop(&seat.from).expect("pop");
            mark();
            assert!(element.is_some());
        }
        ([Step::Pop], [Step::Push]) => {
            let element = seat.endpoint.pop(&seat.from).expect("pop").expect("an element");
            mark();
            assert!(element.push(&seat.to).expect("push").is_none());
            mark();
        }
        ([Step::Pop], _) => {
            let element = seat.endpoint.pop(&seat.from).expect("pop").expect("an element");
            mark();
            let next = seat.endpoint.push_pop(element, &seat.to, &seat.from).expect("push and pop");
            mark();
            assert!(matches!(next, Ok(Some(_))));
        }
        ([], _) => {
            mark();
            assert_eq!(seat.endpoint.pop_many(&seat.from, BATCH).expect("pop"), BATCH);
            mark();
        }
        (_, [Step::PushMany]) => {
            assert_eq!(seat.endpoint.pop_many(&seat.from, BATCH).expect("pop"), BATCH);
            mark();
            assert_eq!(seat.endpoint.push_many(&seat.to, BATCH).expect("push"), BATCH);
            mark();
        }
        _ => {
            assert_eq!(seat.endpoint.pop_many(&seat.from, BATCH).expect("pop"), BATCH);
            mark();
            let moved = seat.endpoint.push_pop_many(&seat.to, &seat.from, 2).expect("push and pop");
            mark();
            assert_eq!(moved, (BATCH, 2));
        }
    }
}

/// What may be found after a death.
pub(super) struct Places {
    /// Behind each step, from before the first to behind the last.
    allowed: Vec<Contents>,
}

/// Tries one operation on queues. `program` is the one that calls [`work_queue`](super::work_queue).
pub fn run_queue(program: &str, scenario: &QueueScenario, effort: Effort, rng: &mut Rng) -> Counts {
    scenario.case(program).try_all(effort, rng)
}

impl QueueScenario {
    /// The store before the operation.
    fn prepare(&self, path: &Path) -> Image {
        let store = tiny().open(path).expect("create a store");
        let options = PoolOptions::new(ELEMENTS, 16).max_queues(3).max_endpoints(3).batch(4);
        let pool = options.create(&store, "pool").expect("create a pool");
        let mut endpoint = pool.endpoint().expect("an endpoint");
        for number in 0..ELEMENTS {
            assert_eq!(endpoint.pop_many(pool.free(), 1).expect("pop"), 1);
            endpoint.batch_mut(0)[..8].copy_from_slice(&number.to_le_bytes());
            assert_eq!(endpoint.push_many(pool.free(), 1).expect("push"), 1);
        }
        for (name, many) in ["from", "to"].into_iter().zip(FILLED) {
            let options = QueueOptions::new().kind(self.kind).bound(ELEMENTS - 1);
            let queue = pool.queue_with(name, options).expect("a queue");
            for _ in 0..many {
                assert_eq!(endpoint.pop_many(pool.free(), 1).expect("pop"), 1);
                assert_eq!(endpoint.push_many(&queue, 1).expect("push"), 1);
            }
        }
        drop((endpoint, pool, store));
        Image::of(path)
    }

    /// What may be found, by a model.
    fn places(&self, before: Contents) -> Places {
        let [free, mut from, mut to] = before;
        // As the process uses both queues once to take their roles.
        from.rotate_left(1);
        to.rotate_left(1);
        let mut state = [free, from, to];
        let mut held = Vec::new();
        self.first.iter().for_each(|step| advance(*step, &mut state, &mut held));
        let mut allowed = vec![given_back(&state, &held, self.kind)];
        for step in self.act {
            // The second batch is of two.
            advance(*step, &mut state, &mut held);
            allowed.push(given_back(&state, &held, self.kind));
        }
        Places { allowed }
    }

    pub(super) fn case<'a>(&'a self, program: &'a str) -> Case<'a, Places> {
        let scratch = Scratch::new("step");
        let path = scratch.store("prepared");
        let before = self.prepare(&path);
        let store = Options::new().create(false).open(&path).expect("open it again");
        let contents = census(&mut Seat::take(&store).expect("take part")).expect("what is there before");
        Case { program, name: self.name, argument: 0, before, judge: self.places(contents), scratch }
    }
}

fn advance(step: Step, [_, from, to]: &mut Contents, held: &mut Vec<u64>) {
    match step {
        Step::Pop => held.push(from.remove(0)),
        Step::Push => to.push(held.remove(0)),
        Step::PopMany => held.extend(from.drain(..from.len().min(BATCH as usize))),
        Step::PushMany => to.append(held),
    }
}

/// A queue with a single producer takes nothing back: then it is `free`.
fn given_back(state: &Contents, held: &[u64], kind: Kind) -> Contents {
    let mut state = state.clone();
    state[usize::from(kind != Kind::Spsc)].extend(held);
    state
}

/// What is where. Everything is popped and pushed to its place again.
fn census(seat: &mut Seat) -> Result<Contents, String> {
    let mut contents = Contents::default();
    let Seat { pool, from, to, endpoint } = seat;
    for (queue, found) in [pool.free(), from, to].into_iter().zip(&mut contents) {
        for _ in 0..queue.len() {
            let text = |error: QueueError| format!("moving what is in {}: {error}", queue.name());
            if endpoint.pop_many(queue, 1).map_err(text)? == 1 {
                let bytes = endpoint.batch(0);
                found.push(bytes.first_chunk().map_or(u64::MAX, |eight| u64::from_le_bytes(*eight)));
                if endpoint.push_many(queue, 1).map_err(text)? != 1 {
                    return Err(format!("{} does not take back what was in it", queue.name()));
                }
            }
        }
    }
    Ok(contents)
}

fn is_conserved(contents: &Contents) -> bool {
    let mut all = contents.concat();
    all.sort_unstable();
    all == (0..ELEMENTS).collect::<Vec<_>>()
}

impl Places {
    fn look(&self, seat: &mut Seat, returned: bool) -> Result<u64, String> {
        let begin = now_ns();
        seat.pool.recover().map_err(|error| format!("recovering: {error}"))?;
        let contents = census(seat)?;
        let waited = now_ns() - begin;
        if waited > QUICKLY_NS {
            return Err(format!("recovering took {} ms", waited / 1_000_000));
        }
        let fits = if returned { self.allowed.last() == Some(&contents) } else { self.allowed.contains(&contents) };
        if !fits {
            return Err(format!("the queues hold {contents:?}, none of {:?}", self.allowed));
        }
        let stats = seat.pool.stats();
        if (stats.held, stats.endpoints) != (0, 1) {
            return Err(format!("{} elements and {} endpoints are not given back", stats.held, stats.endpoints - 1));
        }
        match seat.pool.queues().iter().find(|queue| !seat.queues().iter().any(|known| known.name() == queue.name())) {
            Some(queue) => Err(format!("there is a queue {} that was never made", queue.name())),
            None => Ok(waited),
        }
    }
}

/// A client that was there all the time.
pub(super) struct Survivor {
    seat: Seat,
    store: Store,
}

impl Judge for Places {
    type Survivor = Survivor;

    fn attend(&self, store: Store) -> Result<Survivor, String> {
        let seat = Seat::take(&store).map_err(|error| format!("taking part: {error}"))?;
        Ok(Survivor { seat, store })
    }

    fn verify(&self, survivor: &mut Survivor, copy: &Path, returned: bool) -> Result<u64, String> {
        let waited = self.verify_copy(survivor.store.path(), copy)?;
        let waited = waited.max(self.look(&mut survivor.seat, returned)?);
        is_clean(&survivor.store)?;
        Ok(waited)
    }

    fn verify_copy(&self, path: &Path, copy: &Path) -> Result<u64, String> {
        Image::of(path).write(copy);
        let store = Options::new().create(false).open(copy).map_err(|error| format!("reopening: {error}"))?;
        let mut seat = Seat::take(&store).map_err(|error| format!("taking part again: {error}"))?;
        let waited = self.look(&mut seat, false)?;
        is_clean(&store)?;
        Ok(waited)
    }

    /// Others go on with every element but those that it holds, and with the queues that are not its own.
    fn verify_beside(&self, survivor: &mut Survivor, stopped: Stopped) -> Result<u64, String> {
        let begin = now_ns();
        let seat = &mut survivor.seat;
        for queue in [seat.pool.free(), &seat.from, &seat.to] {
            for _ in 0..3 {
                let popped = match seat.endpoint.pop_many(queue, 1) {
                    Err(QueueError::Taken(_)) => continue,
                    other => other.map_err(|error| error.to_string())?,
                };
                let pushed = match seat.endpoint.push_many(queue, popped) {
                    Err(QueueError::Taken(_)) => seat.endpoint.push_many(seat.pool.free(), popped),
                    other => other,
                };
                if pushed.map_err(|error| error.to_string())? != popped {
                    return Err("beside a stopped process, an element found no place".into());
                }
            }
        }
        let took = now_ns() - begin;
        if took > QUICKLY_NS {
            return Err(format!("moving elements took {} ms beside a stopped process", took / 1_000_000));
        }
        stopped.finish();
        seat.pool.recover().map_err(|error| error.to_string())?;
        let contents = census(seat)?;
        if !is_conserved(&contents) {
            return Err(format!("after it went on, the queues hold {contents:?}"));
        }
        is_clean(&survivor.store)?;
        Ok(took)
    }
}
