//! A shard at work: its journal, its store, the apply loop between them, and what runs in the background.
//!
//! - [`shard`]: an open shard, and how it is opened and closed. [`access`]: the way of a command in, and of a view out.
//! - [`apply`]: the loop that applies entries and makes them visible; [`pending`]: the answers that it gives.
//! - [`background`]: the threads that read views and propose commands. [`space`]: how disk space is kept free.
//! - [`directory`]: the folder of a shard on this machine. [`image`]: its whole state as one file. [`damage`]: what was found
//!   damaged in it.
//! - [`sessions`], [`runs`], [`publish`]: what a shard does for one contract besides applying its commands.
//!
//! No handles: what users call is in the crate `statehouse`. Here is one shard, with one owner.

pub mod access;
pub mod apply;
pub mod arrivals;
pub mod background;
pub mod backup_times;
pub mod clock;
pub mod contracts;
mod counting;
pub mod damage;
pub mod directory;
pub mod encoding;
pub mod error;
pub mod follower;
pub mod image;
pub mod images;
mod level;
pub mod meters;
mod naming_view;
pub mod opening;
pub mod options;
pub mod parts;
pub mod pending;
pub mod place;
pub mod publish;
pub mod runs;
pub mod sessions;
pub mod shard;
pub mod shared;
pub mod space;
pub mod tenure;
