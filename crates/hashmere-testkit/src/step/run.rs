//! Kills a traced operation behind each of its instructions, and looks at what is left.

use super::followed::Followed;
use super::image::Image;
use super::judge::Judge;
use super::route::Route;
use super::scenario::Scenario;
use super::trace::{stay_on_one_processor, Stop, Tracee};
use super::verify::{dump, Frame};
use crate::rng::Rng;
use crate::scratch::Scratch;
use hashmere::Options;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What a writer waits for a process that is stopped. (One that is dead is noticed before.)
const BUSY: Duration = Duration::from_millis(20);

/// How much is tried of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many deaths are tried at most. An operation of more instructions is killed behind every few of them.
    pub deaths: u64,
    /// Whether one run goes through all instructions, with a look at the file whenever one of them has changed it.
    pub walk: bool,
    /// At how many instructions it is stopped for a while instead.
    pub stops: u64,
}

/// What was tried of one operation, and found.
#[derive(Debug)]
pub struct Counts {
    /// The operation.
    pub name: &'static str,
    /// Instructions that it has.
    pub instructions: u64,
    /// Deaths that were tried.
    pub deaths: u64,
    /// Instructions behind which the file was looked at without killing.
    pub walked: u64,
    /// Different files that all these left behind.
    pub states: u64,
    /// Stops that were tried.
    pub stops: u64,
    /// The longest that a survivor waited for the key of the killed process.
    pub longest_wait: Duration,
    /// What went wrong: how often, and behind which instruction first.
    pub failures: BTreeMap<String, (u64, u64)>,
}

impl Counts {
    pub(super) fn add(&mut self, at: u64, outcome: Result<u64, String>) {
        match outcome {
            Ok(waited) => self.longest_wait = self.longest_wait.max(Duration::from_nanos(waited)),
            Err(text) => self.failures.entry(text).or_insert((0, at)).0 += 1,
        }
    }
}

/// What every death of one operation starts from.
pub(super) struct Case<'a, J> {
    pub(super) program: &'a str,
    pub(super) name: &'static str,
    pub(super) argument: u64,
    pub(super) before: Image,
    pub(super) judge: J,
    pub(super) scratch: Scratch,
}

/// Tries one operation. `program` is the one that calls [`work`](super::work).
pub fn run(program: &str, scenario: &Scenario, effort: Effort, rng: &mut Rng) -> Counts {
    let case = of_keys(program, scenario, 0);
    if scenario.has_feed {
        case.judged(Followed).try_all(effort, rng)
    } else {
        case.try_all(effort, rng)
    }
}

/// The case of an operation on keys, with this many others in the store.
pub(super) fn of_keys<'a>(program: &'a str, scenario: &Scenario, others: u64) -> Case<'a, Frame> {
    let scratch = Scratch::new("step");
    let (before, argument) = scenario.prepare(&scratch.store("prepared"), others);
    let path = scratch.store("after");
    before.write(&path);
    let store = Options::new().create(false).open(&path).expect("open a copy");
    if !scenario.cold {
        (scenario.first)(&store, argument);
    }
    let seen = dump(&store).expect("what is there before");
    (scenario.act)(&store, argument);
    let judge = Frame { before: seen, after: dump(&store).expect("after"), key: (scenario.key)(argument) };
    Case { program, name: scenario.name, argument, before, judge, scratch }
}

impl<'a, J: Judge> Case<'a, J> {
    /// The same, judged by more.
    fn judged<K>(self, judge: impl FnOnce(J) -> K) -> Case<'a, K> {
        let Case { program, name, argument, before, judge: less, scratch } = self;
        Case { program, name, argument, before, judge: judge(less), scratch }
    }

    pub(super) fn try_all(&self, effort: Effort, rng: &mut Rng) -> Counts {
        stay_on_one_processor();
        let (route, instructions) = self.follow();
        // Some more than counted: an operation may take a few instructions more or less from one run to the next.
        let most = instructions + 8;
        let stride = most.div_ceil(effort.deaths.max(1));
        let mut counts = Counts {
            name: self.name,
            instructions,
            deaths: 0,
            walked: 0,
            states: 0,
            stops: 0,
            longest_wait: Duration::ZERO,
            failures: BTreeMap::new(),
        };
        if effort.walk {
            self.walk(&mut counts);
        }
        let mut last = None;
        for at in (rng.below(stride)..most).step_by(stride as usize).filter(|at| route.is_worth_it(*at)) {
            let outcome = self.die_behind(&route, at, &mut last, &mut counts);
            counts.add(at, outcome);
        }
        for _ in 0..effort.stops {
            let at = rng.below(instructions);
            let outcome = self.stop_behind(&route, at);
            counts.stops += 1;
            counts.add(at, outcome);
        }
        counts
    }

    pub(super) fn start(&self, path: &Path) -> Tracee {
        Tracee::start(self.program, &["work", self.name, &self.argument.to_string()], path)
    }

    /// The way of the operation, and how many instructions it has.
    pub(super) fn follow(&self) -> (Route, u64) {
        let path = self.scratch.store("followed");
        self.before.write(&path);
        Route::of(&self.start(&path))
    }

    /// The process at its k-th instruction, and a client that was there before it.
    fn at(&self, route: &Route, at: u64, path: &Path) -> Result<(Tracee, Stop, J::Survivor), String> {
        self.before.write(path);
        let options = Options::new().create(false).busy_timeout(BUSY);
        let survivor = self.judge.attend(options.open(path).map_err(|error| error.to_string())?)?;
        let tracee = self.start(path);
        let stop = route.lead(&tracee, at);
        Ok((tracee, stop, survivor))
    }

    /// A death that leaves the same file as the one before it is not looked at again.
    fn die_behind(&self, route: &Route, at: u64, last: &mut Option<Image>, counts: &mut Counts) -> Result<u64, String> {
        let path = self.scratch.store("killed");
        let (tracee, stop, mut survivor) = self.at(route, at, &path)?;
        drop(tracee);
        counts.deaths += 1;
        let image = Image::of(&path).without_labels();
        if stop == Stop::Stepped && last.as_ref() == Some(&image) {
            return Ok(0);
        }
        *last = Some(image);
        counts.states += 1;
        self.judge.verify(&mut survivor, &self.scratch.store("copy"), stop == Stop::Marker)
    }

    /// It is stopped behind an instruction instead, and goes on later.
    fn stop_behind(&self, route: &Route, at: u64) -> Result<u64, String> {
        let path = self.scratch.store("stopped");
        let (tracee, _, mut survivor) = self.at(route, at, &path)?;
        self.judge.verify_beside(&mut survivor, tracee.leave_stopped())
    }
}
