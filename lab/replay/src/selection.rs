//! Which server of a trace is replayed.

use ffclock_trace::{ServerIndex, TraceReader};

/// How many names a message lists.
const LISTED: u32 = 20;

/// The choice, and what was seen on the way.
pub(crate) struct Selection {
    wanted: Option<String>,
    latest: Option<(ServerIndex, bool)>,
    chosen: Option<ServerIndex>,
    servers: u32,
}

impl Selection {
    /// The first server of the trace where none is wanted by name or number.
    pub(crate) fn new(wanted: Option<String>) -> Self {
        Selection { wanted, latest: None, chosen: None, servers: 0 }
    }

    /// Whether the rows of this server are replayed.
    pub(crate) fn takes(&mut self, reader: &TraceReader, server: ServerIndex) -> bool {
        match self.latest {
            Some((latest, taken)) if latest == server => taken,
            _ => {
                let taken = self.decide(reader, server);
                self.latest = Some((server, taken));
                taken
            }
        }
    }

    fn decide(&mut self, reader: &TraceReader, server: ServerIndex) -> bool {
        self.servers = self.servers.max(server.0.saturating_add(1));
        if let Some(chosen) = self.chosen {
            return chosen == server;
        }
        let taken = match (&self.wanted, reader.server_name(server)) {
            (None, _) => true,
            (Some(wanted), Some(name)) => wanted == name,
            (Some(wanted), None) => *wanted == server.0.to_string(),
        };
        if taken {
            self.chosen = Some(server);
        }
        taken
    }

    /// The server that is replayed, once a row of it was seen.
    pub(crate) fn chosen(&self) -> Option<ServerIndex> {
        self.chosen
    }

    /// How many servers the trace has.
    pub(crate) fn servers(&self) -> u32 {
        self.servers
    }

    /// Why there is nothing to replay.
    pub(crate) fn explain(&self, reader: &TraceReader) -> String {
        let Some(wanted) = &self.wanted else { return "the trace has no rows".to_owned() };
        let name =
            |number: u32| reader.server_name(ServerIndex(number)).map_or_else(|| number.to_string(), str::to_owned);
        let names: Vec<String> = (0..self.servers.min(LISTED)).map(name).collect();
        format!("the trace has no server \"{wanted}\"; it has {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(wanted: Option<&str>) -> (Vec<u64>, String) {
        let text = "Ta,Tb,Te,Tf,server\n1,1,1,2,b\n3,3,3,4,a\n5,5,5,6,b\n";
        let mut reader = TraceReader::from_reader(Box::new(text.as_bytes())).unwrap();
        let mut selection = Selection::new(wanted.map(str::to_owned));
        let mut taken = Vec::new();
        while let Some(row) = reader.next() {
            let row = row.unwrap();
            if selection.takes(&reader, row.server) {
                taken.push(row.sequence);
            }
        }
        assert_eq!(selection.servers(), 2);
        (taken, selection.explain(&reader))
    }

    #[test]
    fn one_server_is_replayed_the_first_unless_another_is_named() {
        assert_eq!(replayed(None).0, [0, 2]);
        assert_eq!(replayed(Some("a")).0, [1]);
        assert_eq!(replayed(Some("c")), (vec![], "the trace has no server \"c\"; it has b, a".to_owned()));
    }
}
