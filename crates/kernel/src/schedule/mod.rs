//! What happens by itself: what is due, in which order, and the tick that does it. It serves every contract.

pub(crate) mod due;
pub(crate) mod tick;
pub(crate) mod window;
pub mod windows;
