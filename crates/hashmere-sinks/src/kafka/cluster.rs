//! The servers of a cluster: which leads what, and one connection to each that is needed.

use super::wire::{self, succeeded, Body, Link};
use super::KafkaOptions;
use crate::net::{Connection, TIMEOUT};
use crate::sink::SinkError;
use std::collections::BTreeMap;

/// How long servers may take for what is asked, in milliseconds: less than is waited for the answer.
pub const TIMEOUT_MS: i32 = TIMEOUT.as_millis() as i32 - 2000;

/// Host and port.
type Address = (String, u16);

#[derive(Debug)]
pub struct Cluster {
    options: KafkaOptions,
    /// By the server's number.
    addresses: BTreeMap<i32, Address>,
    links: BTreeMap<Address, Link>,
    /// The server that leads each partition.
    pub leaders: Vec<i32>,
}

impl Cluster {
    pub fn new(options: KafkaOptions) -> Cluster {
        Cluster { options, addresses: BTreeMap::new(), links: BTreeMap::new(), leaders: Vec::new() }
    }

    fn first(&self) -> Address {
        (self.options.host.clone(), self.options.port)
    }

    fn link_to(&mut self, address: &Address) -> Result<&mut Link, SinkError> {
        if !self.links.contains_key(address) {
            let mut connection = Connection::open(&address.0, address.1)?;
            if let Some(tls) = &self.options.tls {
                connection = connection.secured(tls, &address.0)?;
            }
            let mut link = Link::new(connection);
            if let (Some(user), Some(password)) = (&self.options.user, &self.options.password) {
                authenticate(&mut link, user, password)?;
            }
            self.links.insert(address.clone(), link);
        }
        self.links.get_mut(address).ok_or_else(|| SinkError::lost("there is no connection"))
    }

    /// The connection to a server that leads something.
    pub fn link(&mut self, server: i32) -> Result<&mut Link, SinkError> {
        let address = self.addresses.get(&server).cloned();
        self.link_to(&address.ok_or_else(|| SinkError::lost("a server that is not known leads the partition"))?)
    }

    /// Looks at the topic, and makes it if it is not there.
    pub fn look(&mut self) -> Result<(), SinkError> {
        match self.ask_topic()? {
            3 => {
                self.create()?;
                succeeded(self.ask_topic()?, "looking for the topic")
            }
            code => succeeded(code, "looking for the topic"),
        }
    }

    fn ask_topic(&mut self) -> Result<i16, SinkError> {
        let mut body = Body::default();
        // One topic; it is not to be made by this question.
        body.i32(1).text(&self.options.topic).i8(0);
        let first = self.first();
        let (addresses, topics) = self.link_to(&first)?.ask(wire::METADATA, &body, |answer| {
            answer.i32()?;
            let addresses = answer.each(|server| {
                let found = (server.i32()?, (server.text()?, server.i32()? as u16));
                server.text()?;
                Ok(found)
            })?;
            answer.text()?;
            answer.i32()?;
            let topics = answer.each(|topic| {
                let code = topic.i16()?;
                topic.text()?;
                topic.skip(1)?;
                let partitions = topic.each(|partition| {
                    let found = (partition.i16()?, partition.i32()?, partition.i32()?);
                    partition.each(|replica| replica.i32())?;
                    partition.each(|replica| replica.i32())?;
                    Ok(found)
                })?;
                Ok((code, partitions))
            })?;
            Ok((addresses, topics))
        })?;
        self.addresses = addresses.into_iter().collect();
        let Some((code, mut partitions)) = topics.into_iter().next() else { return Ok(3) };
        partitions.sort_by_key(|(_, index, _)| *index);
        for (code, ..) in &partitions {
            succeeded(*code, "looking for the topic's partitions")?;
        }
        self.leaders = partitions.into_iter().map(|(_, _, leader)| leader).collect();
        Ok(code)
    }

    fn create(&mut self) -> Result<(), SinkError> {
        let mut body = Body::default();
        let replicas = self.options.replicas.map_or(-1, |replicas| replicas as i16);
        body.i32(1).text(&self.options.topic).i32(self.options.partitions as i32).i16(replicas);
        // No assignments, no configuration; not only to see whether it would work.
        body.i32(0).i32(0).i32(TIMEOUT_MS).i8(0);
        let first = self.first();
        let made = self.link_to(&first)?.ask(wire::CREATE_TOPICS, &body, |answer| {
            answer.i32()?;
            answer.each(|topic| {
                topic.text()?;
                let code = topic.i16()?;
                topic.text()?;
                Ok(code)
            })
        })?;
        // 36: another process has made it.
        made.into_iter().filter(|code| *code != 36).try_for_each(|code| succeeded(code, "making the topic"))
    }

    /// The server that keeps the transaction (1) or the positions (0) of this name.
    pub fn coordinator(&mut self, name: &str, kind: i8) -> Result<i32, SinkError> {
        let mut body = Body::default();
        body.text(name).i8(kind);
        let first = self.first();
        let (code, server, address) = self.link_to(&first)?.ask(wire::FIND_COORDINATOR, &body, |answer| {
            answer.i32()?;
            let code = answer.i16()?;
            answer.text()?;
            Ok((code, answer.i32()?, (answer.text()?, answer.i32()? as u16)))
        })?;
        succeeded(code, "looking for the coordinator")?;
        self.addresses.insert(server, address);
        Ok(server)
    }

    /// Whether every connection is still there.
    pub fn is_alive(&mut self) -> Result<(), SinkError> {
        for link in self.links.values_mut() {
            if link.has_input()? {
                return Err(SinkError::lost("the server has sent something unasked"));
            }
        }
        Ok(())
    }
}

fn authenticate(link: &mut Link, user: &str, password: &str) -> Result<(), SinkError> {
    let mut body = Body::default();
    body.text("PLAIN");
    let code = link.ask(wire::SASL_HANDSHAKE, &body, |answer| answer.i16())?;
    succeeded(code, "authenticating")?;
    let mut body = Body::default();
    body.bytes(format!("\0{user}\0{password}").as_bytes());
    let code = link.ask(wire::SASL_AUTHENTICATE, &body, |answer| answer.i16())?;
    succeeded(code, "authenticating")
}
