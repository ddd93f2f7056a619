//! The names of a trace's servers, numbered in the order of their first rows.

use crate::{Fault, ServerIndex};

/// More servers than any host asks. It bounds memory for files whose "server" column is really something else.
const SERVERS_MAX: usize = 4096;

/// The names seen so far.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    names: Vec<Box<str>>,
    latest: usize,
}

impl Servers {
    /// The number of the server called `name`; a new name gets the next number.
    #[inline]
    pub(crate) fn index_of(&mut self, name: &[u8]) -> Result<ServerIndex, Fault> {
        match self.names.get(self.latest) {
            // Empty names have their own branch: comparing empty slices costs some processors hundreds of cycles.
            Some(latest) if name.is_empty() && latest.is_empty() => Ok(ServerIndex(self.latest as u32)),
            Some(latest) if latest.as_bytes() == name => Ok(ServerIndex(self.latest as u32)),
            _ => self.search(name),
        }
    }

    #[cold]
    fn search(&mut self, name: &[u8]) -> Result<ServerIndex, Fault> {
        let name = String::from_utf8_lossy(name);
        self.latest = match self.names.iter().position(|known| **known == *name) {
            Some(index) => index,
            None if self.names.len() < SERVERS_MAX => {
                self.names.push(name.into());
                self.names.len() - 1
            }
            None => return Err(Fault::Servers(SERVERS_MAX)),
        };
        Ok(ServerIndex(self.latest as u32))
    }

    /// The name of a server that was seen.
    pub(crate) fn name(&self, index: ServerIndex) -> Option<&str> {
        self.names.get(index.0 as usize).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_numbered_as_they_appear() {
        let mut servers = Servers::default();
        let numbers: Vec<u32> =
            ["b", "a", "b", "c"].iter().map(|name| servers.index_of(name.as_bytes()).unwrap().0).collect();
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!(servers.name(ServerIndex(2)), Some("c"));
        assert_eq!(servers.name(ServerIndex(3)), None);
    }

    #[test]
    fn their_number_is_bounded() {
        let mut servers = Servers::default();
        for number in 0..SERVERS_MAX {
            servers.index_of(number.to_string().as_bytes()).unwrap();
        }
        assert_eq!(servers.index_of(b"one more"), Err(Fault::Servers(SERVERS_MAX)));
        assert_eq!(servers.index_of(b"7"), Ok(ServerIndex(7)));
    }
}
