//! `SUBSCRIBE`, `UNSUBSCRIBE`, the same for patterns, `PUBLISH`, `PUBSUB`.

use super::parse::Args;
use super::pubsub::Subscription;
use super::reply::Reply;
use super::state::{Client, Step};
use crate::turn::Turn;

/// `SUBSCRIBE channel ...`
pub fn subscribe(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    begin(client, turn, args, false)
}

/// `PSUBSCRIBE pattern ...`
pub fn psubscribe(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    begin(client, turn, args, true)
}

/// `UNSUBSCRIBE [channel ...]`
pub fn unsubscribe(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    end(client, turn, args, false)
}

/// `PUNSUBSCRIBE [pattern ...]`
pub fn punsubscribe(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    end(client, turn, args, true)
}

fn tell(reply: &mut Reply<'_>, word: &str, name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word.as_bytes());
    reply.bulk_or_null(name);
    reply.integer(count as i64);
}

fn begin(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>, is_pattern: bool) -> Step {
    let word = if is_pattern { "psubscribe" } else { "subscribe" };
    let resp3 = client.resp3;
    let hub = turn.server.resp.hub.clone();
    let subscription =
        client.subscription.get_or_insert_with(|| Subscription::new(hub, turn.connection, turn.worker, resp3));
    for name in args.from(1) {
        // What came for the names before comes before.
        subscription.take(turn.out);
        let added = subscription.add(name, is_pattern);
        let reply = &mut Reply { out: &mut turn.out.bytes, resp3 };
        match added {
            true => tell(reply, word, Some(name), subscription.count()),
            false => reply.error("ERR a connection has at most 65536 channels and patterns of at most 64 KiB"),
        }
    }
    close_if_empty(client);
    Step::Done
}

fn end(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>, is_pattern: bool) -> Step {
    let word = if is_pattern { "punsubscribe" } else { "unsubscribe" };
    let resp3 = client.resp3;
    let own = client.subscription.as_ref().map_or_else(Vec::new, |subscription| subscription.names(is_pattern));
    let names: Vec<&[u8]> = match args.count() {
        1 => own.iter().map(Vec::as_slice).collect(),
        _ => args.from(1).collect(),
    };
    if let Some(subscription) = &client.subscription {
        subscription.take(turn.out);
    }
    let count = |client: &Client| client.subscription.as_ref().map_or(0, Subscription::count);
    let reply = &mut Reply { out: &mut turn.out.bytes, resp3 };
    if names.is_empty() {
        tell(reply, word, None, count(client));
    }
    for name in names {
        if let Some(subscription) = &mut client.subscription {
            subscription.remove(name, is_pattern);
        }
        tell(reply, word, Some(name), count(client));
    }
    close_if_empty(client);
    Step::Done
}

/// Who listens to nothing is no subscriber.
fn close_if_empty(client: &mut Client) {
    client.subscription.take_if(|subscription| subscription.count() == 0);
}

/// `PUBLISH channel message`.
pub fn publish(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let server = turn.server;
    let count = server.resp.hub.publish(&server.watchers, Some(turn.worker), args.at(1), args.at(2));
    client.reply_to(turn).integer(count as i64);
    Step::Done
}

/// `PUBSUB CHANNELS [pattern]`.
pub fn channels(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if args.count() > 3 {
        client
            .reply_to(turn)
            .error("ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.");
        return Step::Done;
    }
    let names = turn.server.resp.hub.channels((args.count() > 2).then(|| args.at(2)));
    let reply = &mut client.reply_to(turn);
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Step::Done
}

/// `PUBSUB NUMSUB [channel ...]`.
pub fn numsub(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let counts: Vec<_> = args.from(2).map(|name| (name, turn.server.resp.hub.subscribers_of(name))).collect();
    let reply = &mut client.reply_to(turn);
    reply.array(2 * counts.len());
    for (name, count) in counts {
        reply.bulk(name);
        reply.integer(count as i64);
    }
    Step::Done
}

/// `PUBSUB NUMPAT`.
pub fn numpat(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let count = turn.server.resp.hub.patterns();
    client.reply_to(turn).integer(count as i64);
    Step::Done
}

/// `PUBSUB HELP`.
pub fn help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(client, turn, "pubsub");
    Step::Done
}
