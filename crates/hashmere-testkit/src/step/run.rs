//! Kills a traced operation behind each of its instructions, and looks at what is left.

use super::image::Image;
use super::scenario::Scenario;
use super::trace::{stay_on_one_processor, Stand, Tracee};
use super::verify::{dump, Frame};
use crate::rng::Rng;
use crate::scratch::Scratch;
use hashmere::Options;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How much is tried of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Most instructions that may be executed in all, which is what takes the time; an operation of `n` instructions needs
    /// `n * n / 2` of them to be killed behind each. Longer ones are killed behind every few.
    pub instructions: u64,
    /// Whether one run goes through all instructions, with a look at the file whenever one of them has changed it.
    pub walk: bool,
    /// At how many instructions it is stopped for a while instead.
    pub stops: u64,
}

/// What was tried of one operation, and found.
#[derive(Debug)]
pub struct Tally {
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
    /// The longest that a survivor waited for the key of the dead.
    pub longest_wait: Duration,
    /// What went wrong: how often, and behind which instruction first.
    pub failures: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    pub(super) fn add(&mut self, at: u64, outcome: Result<u64, String>) {
        match outcome {
            Ok(waited) => self.longest_wait = self.longest_wait.max(Duration::from_nanos(waited)),
            Err(text) => self.failures.entry(text).or_insert((0, at)).0 += 1,
        }
    }
}

/// What every death of one operation starts from.
pub(super) struct Case<'a> {
    pub(super) program: &'a str,
    pub(super) scenario: &'a Scenario,
    pub(super) argument: u64,
    pub(super) before: Image,
    pub(super) frame: Frame,
    pub(super) scratch: Scratch,
}

/// Tries one operation. `program` is the one that calls [`work`](super::work).
pub fn run(program: &str, scenario: &Scenario, effort: Effort, rng: &mut Rng) -> Tally {
    stay_on_one_processor();
    let case = Case::new(program, scenario, 0);
    let instructions = case.length();
    let stride = (instructions * instructions / 2).div_ceil((effort.instructions * scenario.share).max(1)).max(1);
    let mut tally = Tally {
        name: scenario.name,
        instructions,
        deaths: 0,
        walked: 0,
        states: 0,
        stops: 0,
        longest_wait: Duration::ZERO,
        failures: BTreeMap::new(),
    };
    if effort.walk {
        case.walk(&mut tally);
    }
    let mut last = None;
    // Some more than counted: an operation may take a few instructions more or less from one run to the next.
    for at in (rng.below(stride)..instructions + 8).step_by(stride as usize) {
        let outcome = case.die_behind(at, &mut last, &mut tally);
        tally.add(at, outcome);
    }
    for _ in 0..effort.stops {
        let at = rng.below(instructions);
        let outcome = case.stand_behind(at);
        tally.stops += 1;
        tally.add(at, outcome);
    }
    tally
}

impl Case<'_> {
    pub(super) fn new<'a>(program: &'a str, scenario: &'a Scenario, others: u64) -> Case<'a> {
        let scratch = Scratch::new("step");
        let (before, argument) = scenario.prepare(&scratch.store("prepared"), others);
        let path = scratch.store("after");
        before.write(&path);
        let store = Options::new().existing_only().open(&path).expect("open a copy");
        if !scenario.cold {
            (scenario.first)(&store, argument);
        }
        let seen = dump(&store).expect("what is there before");
        (scenario.act)(&store, argument);
        let frame = Frame { before: seen, after: dump(&store).expect("after"), key: (scenario.key)(argument) };
        Case { program, scenario, argument, before, frame, scratch }
    }

    pub(super) fn start(&self, path: &Path) -> Tracee {
        Tracee::start(self.program, &["work", self.scenario.name, &self.argument.to_string()], path)
    }

    /// How many instructions the operation has.
    pub(super) fn length(&self) -> u64 {
        let path = self.scratch.store("counted");
        self.before.write(&path);
        let (count, stand) = self.start(&path).steps(u64::MAX);
        assert_eq!(stand, Stand::Marker);
        count
    }

    /// A death that leaves the same file as the one before it is not looked at again.
    fn die_behind(&self, at: u64, last: &mut Option<Image>, tally: &mut Tally) -> Result<u64, String> {
        let path = self.scratch.store("killed");
        self.before.write(&path);
        let live = Options::new().existing_only().open(&path).map_err(|error| error.to_string())?;
        let tracee = self.start(&path);
        let (_, stand) = tracee.steps(at);
        drop(tracee);
        tally.deaths += 1;
        let image = Image::of(&path).without_labels();
        if stand == Stand::Stepped && last.as_ref() == Some(&image) {
            return Ok(0);
        }
        *last = Some(image);
        tally.states += 1;
        self.frame.verify(&live, &self.scratch.store("copy"), stand == Stand::Marker)
    }
}
