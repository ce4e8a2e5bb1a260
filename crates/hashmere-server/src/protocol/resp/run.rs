//! Running a command, whichever way it is performed.

use super::keys;
use super::parse::Args;
use super::slow::SLOWER_THAN;
use super::state::{Client, Command, Step};
use crate::turn::Turn;
use std::time::Instant;

/// Runs a command that is allowed.
pub fn run(client: &mut Client, turn: &mut Turn<'_>, command: &'static Command, args: Args<'_>) -> Step {
    if let Some(direct) = command.direct {
        return match direct(turn, args, client.place.max(1), client.resp3) {
            Some(place) => {
                client.place = place;
                Step::More
            }
            None => {
                client.place = 0;
                Step::Done
            }
        };
    }
    let start = Instant::now();
    let step = match (command.perform, command.session) {
        (Some(perform), _) => {
            keys::alone(turn, perform, args, client.resp3);
            Step::Done
        }
        (None, Some(session)) => session(client, turn, args),
        (None, None) => Step::Done,
    };
    let took = start.elapsed();
    if took >= SLOWER_THAN {
        let (address, name) = (client.address(turn), client.name());
        turn.server.resp.slowlog.add(turn.now, address, name, args, took);
    }
    step
}
