//! Small synthetic worlds whose figures can be worked out by hand.

/// A counter of 1 GHz that runs 20 ppm fast; delays of a constant path with a little noise; a poll every 16 s.
pub struct World {
    pub forward_ns: u64,
    pub backward_ns: u64,
    pub rows: u64,
    pub truth_late_ns: u64,
}

/// Nothing disturbs it.
pub const QUIET: World = World { forward_ns: 150_000, backward_ns: 150_000, rows: 600, truth_late_ns: 0 };

/// The columns of its trace.
pub const HEADER: &str = "seq,Ta,Tb_ns,Te_ns,Tf,true_send_ns,true_recv_ns,epoch,server\n";

/// The counter after this much true time.
pub fn counter(nanos: u64) -> u64 {
    7_000_000_000 + nanos + nanos / 50_000
}

impl World {
    /// One exchange.
    pub fn row(&self, number: u64) -> String {
        const UTC: u64 = 1_700_000_000_000_000_000;
        let noise = |factor: u64| number * factor % 17 * 500;
        let sent = number * 16_000_000_000;
        let server_in = sent + self.forward_ns + noise(7);
        let server_out = server_in + 10_000;
        let received = server_out + self.backward_ns + noise(11);
        format!(
            "{number},{},{},{},{},{},{},0,near\n",
            counter(sent),
            UTC + server_in,
            UTC + server_out,
            counter(received),
            UTC + sent,
            UTC + received + self.truth_late_ns
        )
    }

    /// The whole trace.
    pub fn trace(&self) -> String {
        (0..self.rows).fold(HEADER.to_owned(), |text, number| text + &self.row(number))
    }
}
