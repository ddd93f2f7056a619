//! The places of the fields of a tracing event, read from the event's file `format`.

use thiserror::Error;

/// A file that is longer is none of the kernel's.
const LONGEST_FILE: usize = 1 << 16;
/// An event with more fields is none of the kernel's.
const MOST_FIELDS: usize = 128;

/// Why a `format` file cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// It is far longer than any of the kernel's.
    #[error("longer than {LONGEST_FILE} bytes")]
    TooLong,
    /// It does not say by which number the event is known.
    #[error("no line \"ID: N\"")]
    NoId,
    /// A line about a field lacks its name, its offset or its size.
    #[error("cannot understand the line \"{0}\"")]
    Field(String),
    /// There are far more fields than any event has.
    #[error("more than {MOST_FIELDS} fields")]
    TooManyFields,
}

/// One field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    offset: usize,
    size: usize,
}

/// The layout of one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    id: u16,
    fields: Vec<Field>,
}

impl EventFormat {
    /// Reads the text of a `format` file.
    ///
    /// # Errors
    /// The text is not such a file.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        if text.len() > LONGEST_FILE {
            return Err(FormatError::TooLong);
        }
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        let lines = text.lines().map(str::trim).filter(|line| line.starts_with("field:"));
        let fields: Vec<Field> = lines.take(MOST_FIELDS + 1).map(field).collect::<Result<_, _>>()?;
        if fields.len() > MOST_FIELDS {
            return Err(FormatError::TooManyFields);
        }
        Ok(EventFormat { id: id.ok_or(FormatError::NoId)?, fields })
    }

    /// By which number events of this kind are known in the buffer.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Its value in an event, taken as an unsigned number; `None` where the event is too short or the field no number.
    pub fn number(&self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        match bytes.len() {
            1 => Some(u64::from(bytes[0])),
            2 => Some(u64::from(u16::from_ne_bytes(*bytes.first_chunk()?))),
            4 => Some(u64::from(u32::from_ne_bytes(*bytes.first_chunk()?))),
            8 => Some(u64::from_ne_bytes(*bytes.first_chunk()?)),
            _ => None,
        }
    }

    /// Its text in an event, for a field of variable length (`__data_loc`): the field holds where the text lies
    /// (lower 16 bits) and how long it is, with its terminating zero (upper 16 bits).
    pub fn text<'a>(&self, event: &'a [u8]) -> Option<&'a str> {
        let place = u32::try_from(self.number(event)?).ok()?;
        let (offset, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let bytes = event.get(offset..offset + length)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        core::str::from_utf8(&bytes[..end]).ok()
    }
}

/// A line such as `field:unsigned int len; offset:16; size:4; signed:0;`, with tabs between its parts.
fn field(line: &str) -> Result<Field, FormatError> {
    let value = |key: &str| line.split(';').find_map(|part| part.trim().strip_prefix(key));
    let number = |key| value(key).and_then(|text| text.parse::<u16>().ok()).map(usize::from);
    let name = value("field:").and_then(|declaration| declaration.split_whitespace().next_back());
    match (name, number("offset:"), number("size:")) {
        (Some(name), Some(offset), Some(size)) => {
            let name = name.split('[').next().unwrap_or(name).to_owned();
            Ok(Field { name, offset, size })
        }
        _ => Err(FormatError::Field(line.chars().take(120).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: net_dev_xmit\nID: 2306\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int len;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n\n\
        print fmt: \"dev=%s\", __get_str(name)\n";

    fn event() -> Vec<u8> {
        let mut bytes = vec![0; 24];
        bytes[16..20].copy_from_slice(&90_u32.to_ne_bytes());
        bytes[20..24].copy_from_slice(&(24 | (6_u32 << 16)).to_ne_bytes());
        bytes.extend_from_slice(b"veth0\0");
        bytes
    }

    #[test]
    fn fields_are_found_where_the_kernel_says() {
        let format = EventFormat::parse(TEXT).expect("a format of the kernel");
        assert_eq!(format.id(), 2306);
        assert_eq!(format.field("len").expect("there").number(&event()), Some(90));
        assert_eq!(format.field("name").expect("there").text(&event()), Some("veth0"));
        assert!(format.field("comm").is_some(), "an array is known by its bare name");
        assert_eq!(format.field("nothing"), None);
    }

    #[test]
    fn an_event_that_is_cut_off_has_no_values() {
        let format = EventFormat::parse(TEXT).expect("a format of the kernel");
        let event = event();
        assert_eq!(format.field("len").expect("there").number(&event[..18]), None);
        assert_eq!(format.field("name").expect("there").text(&event[..26]), None);
        assert_eq!(format.field("comm").expect("there").number(&event), None, "no number has 16 bytes");
    }

    #[test]
    fn what_is_no_format_is_refused() {
        assert_eq!(EventFormat::parse("nothing"), Err(FormatError::NoId));
        let broken = "ID: 1\nfield:int x;\toffset:a;\tsize:4;";
        assert!(matches!(EventFormat::parse(broken), Err(FormatError::Field(_))));
        let many = format!("ID: 1\n{}", "field:int x;\toffset:0;\tsize:4;\n".repeat(200));
        assert_eq!(EventFormat::parse(&many), Err(FormatError::TooManyFields));
        assert_eq!(EventFormat::parse(&" ".repeat(70_000)), Err(FormatError::TooLong));
    }
}
