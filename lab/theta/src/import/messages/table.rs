//! A whole list of messages in memory, and the log that is made of it.

use super::faulty_lines::FaultyLines;
use super::origin::origin_ns;
use super::rounds::SPAN_NS_MAX;
use super::{
    FaultyLine, LineFault, MessageError, MessageLine, MessageLines, MessageOptions, MessageRounds, PassedOver, TimeUnit,
};
use crate::log::LogWriter;
use ffclock_parquet_input::{guarded, open};
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::file::reader::FileReader;
use parquet::record::Field;
use parquet::schema::types::ColumnDescriptor;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A message whose words are numbers of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TableRow {
    perceived_ns: i64,
    /// Where the messages were perceived at the same time, their order in the list decides.
    number: u64,
    sent_ns: i64,
    words: [u32; 3],
}

impl TableRow {
    const fn took_ns(&self) -> u64 {
        self.perceived_ns.abs_diff(self.sent_ns)
    }
}

/// More messages are refused, as more requests of a capture are.
const MESSAGES_MAX: usize = 1 << 24;

/// All messages of a list that were perceived, in the order of their perception.
#[derive(Debug)]
pub struct MessageTable {
    words: Vec<String>,
    numbers: HashMap<String, u32>,
    rows: Vec<TableRow>,
    lost: u64,
    malformed: u64,
    /// The first lines that are no messages.
    malformed_at: Vec<u64>,
    /// What the source of the list is known to have left out.
    left_out: u64,
    messages_max: usize,
}

impl Default for MessageTable {
    fn default() -> Self {
        MessageTable {
            words: vec![],
            numbers: HashMap::new(),
            rows: vec![],
            lost: 0,
            malformed: 0,
            malformed_at: vec![],
            left_out: 0,
            messages_max: MESSAGES_MAX,
        }
    }
}

impl MessageTable {
    /// An empty list of which this number of parts are known to be missing.
    pub(crate) fn incomplete(left_out: u64) -> Self {
        MessageTable { left_out, ..MessageTable::default() }
    }

    /// No more messages will be added.
    pub(crate) fn finish(&mut self) {
        self.rows.sort_unstable();
    }

    /// Reads text.
    ///
    /// # Errors
    /// [`MessageError`] for what has no header, cannot be read or is too long for memory.
    pub fn from_text(input: impl Read, unit: TimeUnit) -> Result<Self, MessageError> {
        MessageTable::default().with_text(input, unit)
    }

    fn with_text(self, mut input: impl Read, unit: TimeUnit) -> Result<Self, MessageError> {
        let (mut table, mut lines) = (self, MessageLines::new(unit));
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = match input.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            lines.push(&bytes[..read], &mut |message| table.add(message))?;
        }
        lines.finish(&mut |message| table.add(message))?;
        table.malformed = lines.malformed;
        table.malformed_at = lines.malformed_at;
        table.finish();
        Ok(table)
    }

    /// Reads a Parquet file with these columns. Timestamps have a unit of their own; that of plain numbers is `unit`.
    ///
    /// # Errors
    /// As [`MessageTable::from_text`].
    pub fn from_parquet(file: File, unit: TimeUnit) -> Result<Self, MessageError> {
        let bytes = file.metadata()?.len();
        let file = open(file, bytes)?;
        let mut table = MessageTable::default();
        let names = ["sender", "receiver", "id", "sent", "perceived"];
        let schema = file.metadata().file_metadata().schema_descr();
        let column = |name: &'static str| {
            let mut found = schema.columns().iter().filter(|column| column.path().string() == name);
            let column = found.next().ok_or(MessageError::Header(name))?;
            if found.next().is_some() { Err(MessageError::Doubled(name)) } else { Ok(column) }
        };
        names.into_iter().try_for_each(|name| column(name).map(drop))?;
        let time_unit = |name| unit_of(column(name)?, unit).ok_or(MessageError::OtherTimes(name));
        let units = [time_unit("sent")?, time_unit("perceived")?];
        let mut rows = guarded(|| file.get_row_iter(None))?;
        let mut number = 0;
        while let Some(row) = guarded(|| rows.next().transpose())? {
            number += 1;
            let mut fields: [String; 5] = Default::default();
            for (name, field) in row.get_column_iter() {
                if let Some(place) = names.iter().position(|known| known == name) {
                    fields[place] = text_of(field);
                }
            }
            table.add_fields((number, &fields), units)?;
        }
        table.finish();
        Ok(table)
    }

    fn add_fields(
        &mut self,
        (number, fields): (u64, &[String; 5]),
        [sent_unit, perceived_unit]: [TimeUnit; 2],
    ) -> Result<(), MessageError> {
        let [sender, receiver, id, sent, perceived] = fields;
        let perceived_ns = perceived_unit.parse_ns(perceived);
        let is_whole = ![sender, receiver, id].iter().any(|word| word.is_empty());
        match sent_unit.parse_ns(sent).filter(|_| is_whole && (perceived_ns.is_some() || perceived.is_empty())) {
            Some(sent_ns) => self.add(&MessageLine { number, sender, receiver, id, sent_ns, perceived_ns }),
            None => {
                self.malformed += 1;
                if self.malformed_at.len() < FaultyLine::NAMED_MAX {
                    self.malformed_at.push(number);
                }
                Ok(())
            }
        }
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, message: &MessageLine<'_>) -> Result<(), MessageError> {
        let &MessageLine { number, sender, receiver, id, sent_ns, perceived_ns } = message;
        let Some(perceived_ns) = perceived_ns else {
            self.lost += 1;
            return Ok(());
        };
        if self.rows.len() == self.messages_max {
            return Err(MessageError::TooMany(self.messages_max));
        }
        let words = [sender, receiver, id].map(|word| self.number(word));
        self.rows.push(TableRow { perceived_ns, number, sent_ns, words });
        Ok(())
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let number = self.words.len() as u32;
        self.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }

    fn word(&self, number: u32) -> &str {
        &self.words[number as usize]
    }

    fn line(&self, &TableRow { number, sent_ns, perceived_ns, words }: &TableRow) -> MessageLine<'_> {
        let [sender, receiver, id] = words.map(|word| self.word(word));
        MessageLine { number, sender, receiver, id, sent_ns, perceived_ns: Some(perceived_ns) }
    }

    /// The only receiver.
    ///
    /// # Errors
    /// [`MessageError::Receivers`] for several, [`MessageError::Nothing`] for none.
    pub fn receiver(&self) -> Result<String, MessageError> {
        let mut found = self.distinct(|row| Some(row.words[1]));
        match found.len() {
            0 => Err(MessageError::Nothing("any receiver".to_owned())),
            1 => Ok(found.remove(0)),
            count => Err(MessageError::Receivers { count, example: found.remove(0) }),
        }
    }

    /// Those whom a receiver hears, in the order in which it first does.
    pub fn senders(&self, receiver: &str) -> Vec<String> {
        let Some(&receiver) = self.numbers.get(receiver) else { return vec![] };
        self.distinct(|row| (row.words[1] == receiver).then_some(row.words[0]))
    }

    /// Sender and time of perception, in nanoseconds, of the messages to a receiver, in the order of perception; and
    /// how many are left out: lines that are no messages, and those far from most others.
    pub(crate) fn perceived_by(&self, receiver: &str) -> (Vec<(u32, i64)>, u64) {
        let senders = self.senders(receiver);
        let origin_ns = self.origin_ns(receiver, &senders);
        let is_near = |at_ns: i64| origin_ns.is_some_and(|origin_ns| at_ns.abs_diff(origin_ns) <= SPAN_NS_MAX);
        let near = self.consistent(receiver, &senders).filter(|row| is_near(row.perceived_ns) && is_near(row.sent_ns));
        let near: Vec<(u32, i64)> = near.map(|row| (row.words[0], row.perceived_ns)).collect();
        let number = self.numbers.get(receiver).copied();
        let all = self.rows.iter().filter(|row| Some(row.words[1]) == number).count();
        let left_out = (all - near.len()) as u64 + self.malformed;
        (near, left_out)
    }

    /// The time that most messages to a receiver from these senders are near to [ns].
    fn origin_ns(&self, receiver: &str, senders: &[String]) -> Option<i64> {
        origin_ns(&self.consistent(receiver, senders).map(|row| row.perceived_ns).collect::<Vec<_>>())
    }

    fn distinct(&self, word: impl Fn(&TableRow) -> Option<u32>) -> Vec<String> {
        let (mut seen, mut found) = (vec![false; self.words.len()], vec![]);
        for number in self.rows.iter().filter_map(word) {
            if !std::mem::replace(&mut seen[number as usize], true) {
                found.push(self.word(number).to_owned());
            }
        }
        found
    }

    /// The messages to a receiver from these senders whose own times are near to each other.
    fn consistent(&self, receiver: &str, senders: &[String]) -> impl Iterator<Item = &TableRow> {
        let receiver = self.numbers.get(receiver).copied();
        let mut is_sender = vec![false; self.words.len()];
        senders.iter().filter_map(|name| self.numbers.get(name)).for_each(|&name| is_sender[name as usize] = true);
        let to_it = self.rows.iter().filter(move |row| Some(row.words[1]) == receiver);
        to_it.filter(move |row| is_sender[row.words[0] as usize] && row.took_ns() <= SPAN_NS_MAX)
    }
}

/// The unit of a column of times: its own, or this one where it has none. `None` for a form that only old files have.
fn unit_of(column: &ColumnDescriptor, unit: TimeUnit) -> Option<TimeUnit> {
    if column.physical_type() == Type::INT96 {
        return None;
    }
    Some(match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(own)), _) => match own.unit {
            parquet::basic::TimeUnit::MILLIS => TimeUnit::Milliseconds,
            parquet::basic::TimeUnit::MICROS => TimeUnit::Microseconds,
            parquet::basic::TimeUnit::NANOS => TimeUnit::Nanoseconds,
        },
        (_, ConvertedType::TIMESTAMP_MILLIS) => TimeUnit::Milliseconds,
        (_, ConvertedType::TIMESTAMP_MICROS) => TimeUnit::Microseconds,
        _ => unit,
    })
}

/// A value of a column as the text of a line has it.
fn text_of(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        Field::TimestampMillis(at) | Field::TimestampMicros(at) => at.to_string(),
        other => other.to_string(),
    }
}

/// The outcome of an import.
#[derive(Debug)]
pub struct ImportedMessages {
    /// The rounds of the log.
    pub rounds: MessageRounds,
    /// What was left out, counted.
    pub passed_over: PassedOver,
    /// The first lines that should not have been left out.
    pub faulty: Vec<FaultyLine>,
}

/// Makes a log in `directory` of the messages to a receiver. The longest of them sets `longest_ns`, and all rounds are
/// remembered. A line that is far from most others is left out, wherever it is.
///
/// # Errors
/// [`MessageError`].
pub fn import_messages(
    table: &MessageTable,
    options: MessageOptions,
    directory: &Path,
) -> Result<ImportedMessages, MessageError> {
    let longest_ns = table.consistent(&options.receiver, &options.senders).map(TableRow::took_ns).max().unwrap_or(0);
    let origin_ns = table.origin_ns(&options.receiver, &options.senders);
    let chosen = options.receiver.clone();
    let mut rounds = MessageRounds::new(MessageOptions { longest_ns, rounds_open: usize::MAX, ..options })?;
    rounds.count_from(origin_ns);
    if !table.rows.iter().any(|row| table.word(row.words[1]) == chosen) {
        return Err(MessageError::Nothing(chosen));
    }
    let mut writer = LogWriter::create(directory, &rounds.run())?;
    writer.clock(MessageRounds::clock());
    let mut faulty = FaultyLines::default();
    table.malformed_at.iter().for_each(|&line| faulty.note(line, LineFault::Malformed));
    for row in &table.rows {
        let before = rounds.passed_over();
        rounds.take(&table.line(row), &mut |event| writer.event(event))?;
        if let Some(reason) = rounds.passed_over().fault_since(&before) {
            faulty.note(row.number, reason);
        }
    }
    if rounds.taken() == 0 {
        writer.discard()?;
        return Err(MessageError::Nothing(chosen));
    }
    let mut passed_over = rounds.passed_over();
    passed_over.lost += table.lost;
    passed_over.malformed += table.malformed;
    writer.run_mut().unrecorded = passed_over.damage() + table.left_out;
    writer.finish()?;
    Ok(ImportedMessages { rounds, passed_over, faulty: faulty.first() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::column::writer::ColumnWriter;
    use parquet::data_type::{ByteArray, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use std::sync::Arc;

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let text = |messages| {
            let row = |number| format!("a,b,{number},{number},{}\n", number + 100);
            "sender,receiver,id,sent,perceived\n".to_owned() + &(0..messages).map(row).collect::<String>()
        };
        let short = || MessageTable { messages_max: 1000, ..MessageTable::default() };
        let list = short().with_text(text(1000).as_bytes(), TimeUnit::Microseconds);
        assert_eq!(list.map(|list| list.rows.len()).map_err(|error| error.to_string()), Ok(1000));
        let error = short().with_text(text(1001).as_bytes(), TimeUnit::Microseconds).unwrap_err();
        assert_eq!(error.to_string(), "more than 1000 messages: cut the list into parts");
        assert_eq!(MessageTable::default().messages_max, 1 << 24);
    }

    const WORDS: &str = "required binary sender; required binary receiver; required binary id; ";

    /// One message, sent at 5 ms and perceived 102 us later, in whole numbers of `per_us` to a microsecond.
    fn list(times: &str, per_us: i64) -> Result<MessageTable, MessageError> {
        list_of(WORDS, times, per_us)
    }

    fn list_of(words: &str, times: &str, per_us: i64) -> Result<MessageTable, MessageError> {
        let text = format!("message list {{ {words} required {times}; }}");
        let schema = Arc::new(parquet::schema::parser::parse_message_type(&text)?);
        let mut bytes = vec![];
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default())?;
        let mut group = writer.next_row_group()?;
        let mut times = [5_000, 5_102].into_iter();
        while let Some(mut column) = group.next_column()? {
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(words) => words.write_batch(&[ByteArray::from("a")], None, None)?,
                _ => column.typed::<Int64Type>().write_batch(&[times.next().expect("two") * per_us], None, None)?,
            };
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        let path = std::env::temp_dir().join(format!("ffclock-table-{}-{per_us}", std::process::id()));
        std::fs::write(&path, bytes)?;
        let file = File::open(&path)?;
        std::fs::remove_file(&path)?;
        MessageTable::from_parquet(file, TimeUnit::Seconds)
    }

    #[test]
    fn a_column_of_timestamps_has_its_own_unit() {
        for (unit, per_us) in [("MICROS", 1), ("NANOS", 1000)] {
            let time = |name: &str| format!("int64 {name} (TIMESTAMP({unit},true))");
            let table = list(&format!("{}; required {}", time("sent"), time("perceived")), per_us).expect("a list");
            assert_eq!((table.rows[0].sent_ns, table.rows[0].perceived_ns), (5_000_000, 5_102_000), "{unit}");
        }
        let table = list("int64 sent; required int64 perceived", 2).expect("a list");
        assert_eq!(table.rows[0].sent_ns, 10_000 * 1_000_000_000, "plain numbers are of the unit that was named");
    }

    #[test]
    fn a_column_that_is_missing_or_there_twice_is_named() {
        let times = "int64 sent; required int64 perceived";
        let missing = list_of(&WORDS.replace("sender", "client"), times, 3);
        assert!(matches!(missing, Err(MessageError::Header("sender"))), "{missing:?}");
        let twice = list_of(&format!("{WORDS}required binary id; "), times, 4);
        assert!(matches!(twice, Err(MessageError::Doubled("id"))), "{twice:?}");
    }
}
