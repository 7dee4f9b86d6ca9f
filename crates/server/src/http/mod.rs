//! Everything that is HTTP: which routes there are, how a request becomes a call, and how an answer becomes a response.
//!
//! - [`table`]: every route in one table: what it honours, reads or writes, how it waits, and which call it is. The router, the
//!   OpenAPI document, the labels of metrics, admission and the list in the documentation come from it.
//! - [`entry`]: what a row of the table says. [`head`]: the headers and the query of a request, each honoured or refused.
//! - [`dispatch`]: decode, call, encode. [`encode`]: answers as responses.
//!
//! Keeps: a header or a parameter that a route does not honour is refused by name, never ignored, if it could change what the
//! request means.

pub(crate) mod dispatch;
pub(crate) mod encode;
pub(crate) mod entry;
pub(crate) mod head;
pub(crate) mod table;
