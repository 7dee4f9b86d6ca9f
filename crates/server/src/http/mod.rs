//! The HTTP layer: the routes, decoding requests into calls, and encoding answers as responses.
//!
//! - [`table`]: every route in one table: what it honours, reads or writes, how it waits, and which call it makes. The
//!   router, the OpenAPI document, the metric labels, admission and the list in the documentation are derived from it.
//! - [`entry`]: a row of the table. [`head`]: the headers and the query of a request, each honoured or refused.
//! - [`dispatch`]: decode, call, encode. [`encode`]: answers as responses.
//!
//! Keeps: a header or a parameter that could change the meaning of a request, but that its route does not honour, is
//! refused by name, never ignored.

pub(crate) mod dispatch;
pub(crate) mod encode;
pub(crate) mod entry;
pub(crate) mod head;
pub(crate) mod table;
