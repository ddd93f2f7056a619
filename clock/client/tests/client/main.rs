//! The client against pages in real files, and the C interface against C.

mod c;
mod c_api;
mod clock;
mod common;
mod damage;
mod examples;
mod instant;
mod order;
mod page_header;
mod threads;
