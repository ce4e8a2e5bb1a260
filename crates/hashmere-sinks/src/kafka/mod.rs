//! Topics of Kafka: every event is a record, its key that of the event, its value the envelope.
//!
//! A batch is one transaction of Kafka. Its last part is the position, as the metadata of an offset that a consumer
//! group commits: so consumers that read what is committed see each event once, and after every kill the position is
//! that of the records. The transaction's name is that of the topic: who asks for the position takes it over, which
//! ends what another process has under way, and makes its next request fail.
//!
//! Requests are asked one after the other; while one is under way the pump reads nothing on.

mod batch;
mod cluster;
mod wire;

use crate::sink::{Position, Sink, SinkError};
use batch::{partition_of, Batch};
use cluster::{Cluster, TIMEOUT_MS};
use hashmere_feed::Event;
use hashmere_tls::ClientTls;
use std::time::{Duration, Instant};
use wire::{succeeded, Body};

/// Where the topic is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KafkaOptions {
    /// Name or address of a server of the cluster.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// For SASL PLAIN.
    pub user: Option<String>,
    /// For SASL PLAIN.
    pub password: Option<String>,
    /// Name of the topic.
    pub topic: String,
    /// Partitions of a topic that is made; the changes of a key are in one.
    pub partitions: u32,
    /// Replicas of a topic that is made; `None`: as many as the cluster makes.
    pub replicas: Option<u32>,
    /// TLS from the first byte; `None`: none.
    pub tls: Option<ClientTls>,
}

impl KafkaOptions {
    /// Consumer group and transaction that keep the position.
    pub fn group(&self) -> String {
        format!("hashmere.{}", self.topic)
    }
}

/// Bytes of records of one partition in a request; a topic takes 1 MiB of them if it is not told otherwise.
const BATCH: usize = 900 << 10;
/// How long a transaction may be open, in milliseconds: the server ends it then.
const TRANSACTION_MS: i32 = 60_000;
/// How long the end of the transaction before is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to write: until another process takes it.
#[derive(Clone, Copy, Debug)]
struct Producer {
    id: i64,
    epoch: i16,
    /// The servers that keep transaction and position.
    transactions: i32,
    positions: i32,
}

/// See the module.
#[derive(Debug)]
pub struct KafkaSink {
    options: KafkaOptions,
    cluster: Option<Cluster>,
    producer: Option<Producer>,
    /// Of each partition: what is to be sent, and the number of the next record.
    batches: Vec<(Batch, i32)>,
    line: Vec<u8>,
}

impl KafkaSink {
    /// Connects when it is asked for its position.
    pub fn new(options: KafkaOptions) -> KafkaSink {
        KafkaSink { options, cluster: None, producer: None, batches: Vec::new(), line: Vec::new() }
    }

    fn connect(&mut self) -> Result<Option<Position>, SinkError> {
        let group = self.options.group();
        let mut cluster = Cluster::new(self.options.clone());
        cluster.look()?;
        let (transactions, positions) = (cluster.coordinator(&group, 1)?, cluster.coordinator(&group, 0)?);
        let mut body = Body::default();
        body.text(&group).i32(TRANSACTION_MS);
        let (id, epoch) = patiently(|| {
            cluster.link(transactions)?.ask(wire::INIT_PRODUCER_ID, &body, |answer| {
                answer.i32()?;
                succeeded(answer.i16()?, "taking the transaction over")?;
                Ok((answer.i64()?, answer.i16()?))
            })
        })?;
        let mut body = Body::default();
        body.text(&group).i32(1).text(&self.options.topic).i32(1).i32(0);
        let stored = cluster.link(positions)?.ask(wire::OFFSET_FETCH, &body, |answer| {
            answer.i32()?;
            let stored = answer.each(|topic| {
                topic.text()?;
                topic.each(|partition| {
                    partition.i32()?;
                    let offset = partition.i64()?;
                    let text = partition.text()?;
                    succeeded(partition.i16()?, "reading the position")?;
                    Ok((offset, text))
                })
            })?;
            succeeded(answer.i16()?, "reading the position")?;
            Ok(stored)
        })?;
        // An offset below zero: none was committed.
        let stored = stored.into_iter().flatten().find(|(offset, _)| *offset >= 0);
        self.batches = cluster.leaders.iter().map(|_| Default::default()).collect();
        (self.cluster, self.producer) = (Some(cluster), Some(Producer { id, epoch, transactions, positions }));
        Position::from_text(stored.map_or(String::new(), |(_, text)| text).as_bytes())
    }

    fn parts(&mut self) -> Result<(&mut Cluster, Producer), SinkError> {
        match (&mut self.cluster, self.producer) {
            (Some(cluster), Some(producer)) => Ok((cluster, producer)),
            _ => Err(SinkError::lost("there is no connection")),
        }
    }

    /// A question about the transaction to the server that keeps it, whose answer is an error code somewhere.
    fn begin(&self, producer: Producer) -> Body {
        let mut body = Body::default();
        body.text(&self.options.group()).i64(producer.id).i16(producer.epoch);
        body
    }

    /// What is going to be written: every partition, and the position.
    fn open_transaction(&mut self) -> Result<(), SinkError> {
        let (_, producer) = self.parts()?;
        let mut partitions = self.begin(producer);
        let count = self.batches.len() as i32;
        partitions.i32(1).text(&self.options.topic).i32(count);
        (0..count).for_each(|n| _ = partitions.i32(n));
        let mut offsets = self.begin(producer);
        offsets.text(&self.options.group());
        let (cluster, _) = self.parts()?;
        // The end of the transaction before may still be on its way to the partitions.
        patiently(|| {
            cluster.link(producer.transactions)?.ask(wire::ADD_PARTITIONS_TO_TXN, &partitions, |answer| {
                answer.i32()?;
                let codes = answer.each(|topic| {
                    topic.text()?;
                    topic.each(|partition| {
                        partition.i32()?;
                        partition.i16()
                    })
                })?;
                codes.into_iter().flatten().try_for_each(|code| succeeded(code, "beginning a transaction"))
            })
        })?;
        patiently(|| {
            cluster.link(producer.transactions)?.ask(wire::ADD_OFFSETS_TO_TXN, &offsets, |answer| {
                answer.i32()?;
                succeeded(answer.i16()?, "beginning a transaction")
            })
        })
    }

    fn add(&mut self, event: &Event) -> Result<(), SinkError> {
        self.line.clear();
        event.write_json(&mut self.line);
        let count = self.batches.len() as i32;
        let partitions = match event {
            Event::Read(change) | Event::Change(change) => {
                let partition = partition_of(&change.key, count);
                partition..partition + 1
            }
            // What concerns every key is in each.
            _ => 0..count,
        };
        for partition in partitions {
            let (batch, _) = &self.batches[partition as usize];
            if !batch.is_empty() && batch.len() + self.line.len() > BATCH {
                self.produce(partition)?;
            }
            self.batches[partition as usize].0.add(event, &self.line);
        }
        Ok(())
    }

    /// Sends what a partition is to get.
    fn produce(&mut self, partition: i32) -> Result<(), SinkError> {
        let (cluster, producer) = match (&mut self.cluster, self.producer) {
            (Some(cluster), Some(producer)) => (cluster, producer),
            _ => return Err(SinkError::lost("there is no connection")),
        };
        let (batch, sequence) = &mut self.batches[partition as usize];
        let mut body = Body::default();
        body.text(&self.options.group()).i16(-1).i32(TIMEOUT_MS);
        body.i32(1).text(&self.options.topic).i32(1).i32(partition).i32(batch.len() as i32);
        batch.write((producer.id, producer.epoch, *sequence), &mut body.0);
        let leader = cluster.leaders[partition as usize];
        cluster.link(leader)?.ask(wire::PRODUCE, &body, |answer| {
            let codes = answer.each(|topic| {
                topic.text()?;
                topic.each(|partition| {
                    partition.i32()?;
                    let code = partition.i16()?;
                    // Offset, time and first offset.
                    partition.skip(24)?;
                    Ok(code)
                })
            })?;
            codes.into_iter().flatten().try_for_each(|code| succeeded(code, "writing records"))
        })?;
        *sequence = sequence.wrapping_add(batch.count()) & i32::MAX;
        batch.clear();
        Ok(())
    }

    fn commit(&mut self, position: Option<Position>) -> Result<(), SinkError> {
        let (_, producer) = self.parts()?;
        let mut text = Vec::new();
        Position::text(position, &mut text);
        let group = self.options.group();
        let mut offset = Body::default();
        offset.text(&group).text(&group).i64(producer.id).i16(producer.epoch);
        offset.i32(1).text(&self.options.topic).i32(1).i32(0).i64(0).text(&String::from_utf8_lossy(&text));
        let mut end = self.begin(producer);
        end.i8(1);
        let (cluster, _) = self.parts()?;
        cluster.link(producer.positions)?.ask(wire::TXN_OFFSET_COMMIT, &offset, |answer| {
            answer.i32()?;
            let codes = answer.each(|topic| {
                topic.text()?;
                topic.each(|partition| {
                    partition.i32()?;
                    partition.i16()
                })
            })?;
            codes.into_iter().flatten().try_for_each(|code| succeeded(code, "noting the position"))
        })?;
        cluster.link(producer.transactions)?.ask(wire::END_TXN, &end, |answer| {
            answer.i32()?;
            succeeded(answer.i16()?, "ending a transaction")
        })
    }
}

/// Asks again while the transaction before is not over.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, SinkError>) -> Result<T, SinkError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Err(error) if error.is_temporary() && !error.is_again() && Instant::now() < end && is_early(&error) => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

fn is_early(error: &SinkError) -> bool {
    matches!(error, SinkError::Lost(error) if error.to_string().ends_with(wire::NOT_OVER))
}

impl Sink for KafkaSink {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        (self.cluster, self.producer) = (None, None);
        self.connect()
    }

    fn send(&mut self, events: &[Event]) -> Result<(), SinkError> {
        self.batches.iter_mut().for_each(|(batch, _)| batch.clear());
        self.open_transaction()?;
        events.iter().try_for_each(|event| self.add(event))?;
        for partition in 0..self.batches.len() {
            if !self.batches[partition].0.is_empty() {
                self.produce(partition as i32)?;
            }
        }
        self.commit(events.last().and_then(Position::behind))
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        // Every transaction is over when `send` returns.
        self.parts()?.0.is_alive()
    }
}
