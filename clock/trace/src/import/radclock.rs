//! The ASCII stamps of the original RADclock: Ta, Tb, Te, Tf and up to two more columns, whose meaning depends on the
//! age of the file.

use crate::error::{Fault, shortened};
use crate::fields::{Cell, FourStamps, Imported, Scale, words};
use crate::reader::LineParser;
use crate::{ServerIndex, TraceRow, Truth};
use ffclock_units::{Counter, Moment, ServerQuality, Span};

/// Seconds between the NTP epoch and the one of 1970.
const NTP_TO_1970: Span = Span::from_secs(2_208_988_800);

/// The content of the fifth and sixth columns.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Layout {
    /// Not stated in the file: cells with a point are reference times.
    #[default]
    Unstated,
    /// The key that matched request and reply, then the number of the server.
    KeyAndServer,
}

/// Turns stamp lines into rows.
#[derive(Default)]
pub(crate) struct RadclockParser {
    layout: Layout,
    scale: Scale,
    imported: Imported,
}

impl RadclockParser {
    /// Times on the NTP scale, in files from before the change to POSIX seconds, are recognised by their size.
    fn posix(&self, time: Span) -> Span {
        if time > NTP_TO_1970 { time - NTP_TO_1970 } else { time }
    }

    fn time(&self, column: &'static str, text: &[u8]) -> Result<Span, Fault> {
        Ok(self.posix(Cell { column, text }.seconds()?))
    }

    /// A single reference time is that of the reply. Of two, in either order, the earlier is that of the request.
    fn truth(&self, extra: [&[u8]; 2]) -> Result<Option<Truth>, Fault> {
        let [first, second] = extra;
        if first.is_empty() || self.layout == Layout::KeyAndServer || !first.contains(&b'.') {
            return Ok(None);
        }
        let first = self.scale.tai(self.time("reference", first)?);
        if !second.contains(&b'.') {
            return Ok(Some(Truth { sent: None, received: first }));
        }
        let second = self.scale.tai(self.time("reference", second)?);
        Ok(Some(Truth { sent: Some(first.min(second)), received: first.max(second) }))
    }

    fn take_comment(&mut self, comment: &[u8]) {
        let mut after = words(comment).skip_while(|word| *word != b"version:").skip(1);
        if after.next().and_then(|version| crate::decimal::whole(version).ok()).is_some_and(|version| version >= 3) {
            self.layout = Layout::KeyAndServer;
        }
    }
}

impl LineParser for RadclockParser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRow>, Fault> {
        if let Some(comment) = line.strip_prefix(b"%") {
            self.take_comment(comment);
            return Ok(None);
        }
        let sequence = self.imported.begin();
        let mut cells = words(line);
        let mut found = 0;
        let [sent, server_in, server_out, received, fifth, sixth] = std::array::from_fn(|_| {
            let cell = cells.next();
            found += cell.is_some() as usize;
            cell.unwrap_or(&[])
        });
        if found < 4 {
            return Err(Fault::Cells { found, expected: 4, text: shortened(line) });
        }
        let stamps = FourStamps {
            sent: Counter::from_raw(Cell { column: "Ta", text: sent }.whole()?),
            server_in: Moment::from_origin(self.time("Tb", server_in)?),
            server_out: Moment::from_origin(self.time("Te", server_out)?),
            received: Counter::from_raw(Cell { column: "Tf", text: received }.whole()?),
        };
        let truth = self.truth([fifth, sixth])?;
        let server = if truth.is_none() { sixth } else { &[] };
        let exchange = self.scale.exchange(&stamps, ServerQuality::default());
        let row = self.imported.row(sequence, server, Some(exchange))?;
        Ok(Some(TraceRow { truth, ..row }))
    }

    fn server_name(&self, server: ServerIndex) -> Option<&str> {
        self.imported.server_name(server)
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
