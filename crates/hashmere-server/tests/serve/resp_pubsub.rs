//! Promise: messages reach the subscribers of this server, in order, and a subscriber that does not take them is
//! closed; keyspace events tell of every change of the store, by whatever process.

use crate::resp::{serve, store_of, Redis};

#[test]
fn messages_reach_all_subscribers() {
    let server = serve(&[]);
    // More than there are event loops.
    let mut clients: Vec<Redis> = (0..4).map(|_| Redis::new(&server)).collect();
    let mut sender = Redis::new(&server);
    for client in &mut clients {
        assert_eq!(client.ask("SUBSCRIBE news"), "*3\n \"subscribe\"\n \"news\"\n :1");
        assert_eq!(client.ask("PSUBSCRIBE n*"), "*3\n \"psubscribe\"\n \"n*\"\n :2");
    }
    assert_eq!(sender.ask("PUBLISH other x"), ":0");
    assert_eq!(sender.ask("PUBSUB NUMSUB news none"), "*4\n \"news\"\n :4\n \"none\"\n :0");
    assert_eq!((sender.ask("PUBSUB CHANNELS n*"), sender.ask("PUBSUB NUMPAT")), ("*1\n \"news\"".into(), ":1".into()));
    for i in 0..50 {
        assert_eq!(sender.ask(&format!("PUBLISH news {i}")), ":8");
    }
    for client in &mut clients {
        for i in 0..50 {
            assert_eq!(client.reply(), format!("*3\n \"message\"\n \"news\"\n \"{i}\""));
            assert_eq!(client.reply(), format!("*4\n \"pmessage\"\n \"n*\"\n \"news\"\n \"{i}\""));
        }
        assert_eq!(client.ask("PING"), "*2\n \"pong\"\n \"\"");
        assert!(client.ask("GET k").starts_with("-ERR Can't execute 'get': only (P|S)SUBSCRIBE"));
        assert_eq!(client.ask("UNSUBSCRIBE"), "*3\n \"unsubscribe\"\n \"news\"\n :1");
        assert_eq!(client.ask("PUNSUBSCRIBE n*"), "*3\n \"punsubscribe\"\n \"n*\"\n :0");
        assert_eq!(client.ask("GET k"), "$-1");
        assert_eq!(client.ask("UNSUBSCRIBE"), "*3\n \"unsubscribe\"\n $-1\n :0");
    }
    assert_eq!(sender.ask("PUBLISH news x"), ":0");
    // In RESP3 other commands go on.
    sender.ask("HELLO 3");
    assert_eq!(sender.ask("SUBSCRIBE own"), ">3\n \"subscribe\"\n \"own\"\n :1");
    assert_eq!(sender.ask("SET k v"), "+OK");
    let mut other = Redis::new(&server);
    assert_eq!(other.ask("PUBLISH own hello"), ":1");
    assert_eq!(sender.reply(), ">3\n \"message\"\n \"own\"\n \"hello\"");
    drop(sender);
    while other.ask("PUBLISH own hello") != ":0" {
        std::thread::yield_now();
    }
}

#[test]
fn a_subscriber_that_takes_nothing_is_closed() {
    let server = serve(&[]);
    let (mut slow, mut sender) = (Redis::new(&server), Redis::new(&server));
    slow.ask("SUBSCRIBE c");
    let message = vec![b'x'; 900_000];
    for _ in 0..200 {
        sender.send(&vec![b"PUBLISH".to_vec(), b"c".to_vec(), message.clone()]);
        if sender.reply() == ":0" {
            break;
        }
    }
    while sender.ask("PUBLISH c x") != ":0" {
        std::thread::yield_now();
    }
}

#[test]
fn keyspace_events_of_every_process() {
    let server = serve(&["--feed", "1m", "--notify-keyspace-events", "KEA"]);
    let (mut listener, mut client) = (Redis::new(&server), Redis::new(&server));
    let store = store_of(&server);
    listener.ask("PSUBSCRIBE __key*__:*");
    client.ask("SET k v");
    store.set("local", b"v").unwrap();
    store.touch("local", hashmere::Ttl::At(1 << 45)).unwrap();
    client.ask("PERSIST local");
    client.ask("DEL k");
    for (event, key) in [("set", "k"), ("set", "local"), ("expire", "local"), ("persist", "local"), ("del", "k")] {
        let by = |channel: String, message: &str| {
            format!("*4\n \"pmessage\"\n \"__key*__:*\"\n \"{channel}\"\n \"{message}\"")
        };
        assert_eq!(listener.reply(), by(format!("__keyspace@0__:{key}"), event));
        assert_eq!(listener.reply(), by(format!("__keyevent@0__:{event}"), key));
    }
    client.ask("FLUSHALL");
    assert!(listener.reply().contains("__keyevent@0__:flushdb"));
    assert_eq!(client.ask("CONFIG GET notify-keyspace-events"), "*2\n \"notify-keyspace-events\"\n \"KEA\"");
}
