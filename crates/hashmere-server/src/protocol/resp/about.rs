//! What the list of connections shows.

/// What `CLIENT LIST` shows of a connection.
#[derive(Debug, Default)]
pub struct About {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// The client's library.
    pub library: Vec<u8>,
    /// The version of that.
    pub library_version: Vec<u8>,
    /// The account.
    pub user: Vec<u8>,
    /// It speaks RESP3.
    pub resp3: bool,
}

impl About {
    /// A connection with this number.
    pub fn new(id: u64) -> About {
        About { id, user: b"default".to_vec(), ..About::default() }
    }
}
